"""Solutions as a lesson shows them: the formula alone, without what a library needs besides.

One module a lesson, with functions that are called as their exercises. Where an exercise has none
here, `solution` shows the package's own function. Each runs by itself and passes its check.
"""
