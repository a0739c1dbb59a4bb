"""Lesson 14: functions with a published bug, the repaired ones, and their exercises.

`bugs_1` and `bugs_2` hold the functions as a learner finds them, `repairs_1` and `repairs_2` the
same ones repaired.
"""
