"""Lesson 05, Add & norm, feed-forward: what only this lesson uses.

- `exercises.py`: `feed_forward`, `layer_norm`, `residual_branch`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `sublayers.py`: figures of what a norm averages, where it may go, and of the stream's size
- `learning.py`: figures of what several runs learn
- `norm_explorer.py`, `.js`: explorable: a norm step by step, and which tokens a change reaches
- `stream_explorer.py`, `.js`: explorable: one word's residual stream, sub-layer by sub-layer
"""
