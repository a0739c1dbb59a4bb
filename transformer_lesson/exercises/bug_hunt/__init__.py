"""Lesson 14: functions with a published bug, and the repaired ones.

`bugs` holds the functions as a learner finds them, `repairs` the same ones repaired; `inputs` and
`rules` are what they are checked with.
"""
