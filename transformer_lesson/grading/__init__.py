"""Grading a folder of students' notebooks: `python -m transformer_lesson.grading FOLDER`.

A student's code runs in a process of its own, and is never judged there. The judge calls it with
the inputs of the checks, gets plain data back and compares them in its own process, with the same
rules as `check`. So nothing that a notebook prints, patches or stores can make a wrong function
pass. `sandbox` says what else the process is kept from.
"""
