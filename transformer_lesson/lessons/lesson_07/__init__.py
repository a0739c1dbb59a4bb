"""Lesson 07, Decoder: what only this lesson uses.

- `exercises.py`: `causal_mask`, `cross_attention`, `decoder_forward`; behind the lesson
  `leaks_future`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `second_half.py`: sentences whose verb has two parts, and one part, up to where the half is due
- `leak_probe.py`, `.js`: explorable: replace one token and see which outputs move
"""
