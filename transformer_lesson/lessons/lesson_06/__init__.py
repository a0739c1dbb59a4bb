"""Lesson 06, Encoder: what only this lesson uses.

- `exercises.py`: its exercises, each with its wrong turns
- `figures.py`: its figures
- `questions.toml`: its predictions
- `words.toml`: what is said of each wrong turn
"""
