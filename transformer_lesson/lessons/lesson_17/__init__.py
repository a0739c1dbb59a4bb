"""Lesson 17, Your own: what only this lesson uses.

- `exercises.py`: `patches`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `vision.py`: a small vision transformer on drawn digits, and a linear rival
- `scenes.py`: small pictures of two shapes, with captions
- `captions.py`, `.json` (by `measure_captions.py`): a model that captions them, three seeds
- `patch_explorer.py`, `.js`: explorable: from pixels to tokens
"""
