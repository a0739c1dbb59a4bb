"""Lesson 06, Encoder: what only this lesson uses.

- `exercises.py`: `encoder_block`, `padding_mask`, `encoder_forward`, `swap`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `figures.py`: one word's vectors in many sentences, block by block
"""
