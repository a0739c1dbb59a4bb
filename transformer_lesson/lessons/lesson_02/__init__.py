"""Lesson 02, Positional encoding: what only this lesson uses.

- `exercises.py`: `sinusoidal_encoding`, `rotation_between`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `rotation.py`: `rotation_between`, from two codes to the rotation between them
- `figures.py`: positions as hands of clocks; accuracy by the position of the first word
- `positional_encoding_explorer.py`, `.js`: explorable: clock hands, waves, dot products
"""
