"""Lesson 04, Multi-head attention: what only this lesson uses.

- `exercises.py`: `role_head`, `split_heads`, `merge_heads`, `multi_head_attention`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `head_ablation.py`, `.js`: explorable: take heads out and see what it costs
"""
