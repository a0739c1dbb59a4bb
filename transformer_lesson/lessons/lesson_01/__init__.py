"""Lesson 01, Tokens and embeddings: what only this lesson uses.

- `exercises.py`: `apply_byte_pairs`, `train_byte_pairs`, `nearest_neighbors`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `neighbors.py`: the function of `nearest_neighbors`
- `figures.py`: ids and the rows of the table that they pick
- `noun_neighbors.py`, `.js`: explorable: the nearest nouns in the table, and what they share
- `tokenizer_explorer.py`, `.js`: explorable: one text as words, characters and byte pairs
"""
