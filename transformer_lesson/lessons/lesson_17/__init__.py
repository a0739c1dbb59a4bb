"""Lesson 17, Your own: what only this lesson uses.

- `exercises.py`: `control`, `false_alarms`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `figures.py`: the lists of signs and the forecast, drawn
- `controls.py`: three claims, and a judge of their controls
- `claims.py`, `.json` (by `measure_claims.py`): claims and their runs, stored
"""
