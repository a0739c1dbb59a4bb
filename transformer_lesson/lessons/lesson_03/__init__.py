"""Lesson 03, Attention: what only this lesson uses.

- `exercises.py`: `attention_scores`, `causal_mask`, `padding_mask`, `scaled_dot_product_attention`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `long_range.py`: a recurrent and an attending reader of the same size, by distance
- `mask_explorer.py`, `.js`: explorable: the masks of a typed batch and how they combine
"""
