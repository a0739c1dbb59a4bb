"""Lesson 07, Decoder: what only this lesson uses.

- `exercises.py`: cross-attention, the decoder block, the whole decoder, finding a leak
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: two of these solutions as the lesson shows them
- `leak_probe.py`, `.js`: explorable: replace one token and see which outputs move
"""
