"""Grading a folder of students' notebooks: `python -m transformer_lesson.grading FOLDER`.

A student's code runs in its own process and is never judged there: `run_student` records what the
functions return, and `judge` compares it with the right answers in another process, by the rules of
`check`. So nothing that a notebook prints, patches or stores can make a wrong function pass.
`sandbox` describes the other restrictions.
"""
