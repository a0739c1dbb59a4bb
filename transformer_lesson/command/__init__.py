"""What `transformer-lesson` does, the command that an installed course brings along.

`__main__` finds the command that was asked for. `lab` opens the lessons in JupyterLab. `my_lessons`
makes the learner's copies and `editions` merges a newer course into them; `lesson_files` knows
where the course's own notebooks are, `hosted` which cell of them is for Colab and Kaggle only.
`check` checks a file without a notebook, `assistant` hands that to assistants, for whom
`for_assistants.md` has the rules, and `progress` writes a page of what was built. Grading, the
doctor and the weights have packages of their own.
"""
