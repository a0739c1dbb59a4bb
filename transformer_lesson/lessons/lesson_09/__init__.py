"""Lesson 09, Inference: what only this lesson uses.

- `exercises.py`: its exercises, each with its wrong turns
- `figures.py`: its figures
- `questions.toml`: its predictions
- `solutions.py`: solutions as the lesson shows them, where the package's own say more
- `words.toml`: what is said of each wrong turn
"""
