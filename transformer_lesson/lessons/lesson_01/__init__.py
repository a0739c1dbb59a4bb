"""Lesson 01, Tokens and embeddings: what only this lesson uses.

- `exercises.py`: `apply_byte_pairs`, `train_byte_pairs`, `nearest_neighbors`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `figures.py`: texts cut into tokens, and tokens as points of a plane
- `tokenizer_explorer.py`, `.js`: explorable: one text as words, characters and byte pairs
"""
