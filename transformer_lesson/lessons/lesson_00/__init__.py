"""Lesson 00, Start here: what only this lesson uses.

- `exercises.py`: `write_translation`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
"""
