"""Lesson 05, Add & norm, feed-forward: what only this lesson uses.

- `exercises.py`: its exercises, each with its wrong turns
- `questions.toml`: its predictions
- `words.toml`: what is said of each wrong turn
"""
