"""Lesson 14: functions with a published bug, the repaired ones, and their exercises.

`bugs` holds the functions as a learner finds them, `repairs` the same ones repaired.
"""
