"""Lesson 00, Start here: what only this lesson uses.

- `exercises.py`: the loop that turns guesses of the next word into a translation
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
"""
