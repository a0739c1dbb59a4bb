"""Grading a folder of students' notebooks: `python -m transformer_lesson.grading FOLDER`.

A student's code runs in a process of its own, and is never judged there: `run_student` writes down
what the functions give, and `judge` compares it with the right answers elsewhere, by the rules of
`check`. So nothing that a notebook prints, patches or stores can make a wrong function pass.
`sandbox` says what else the process is kept from.
"""
