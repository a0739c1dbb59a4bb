"""Lesson 07, Decoder: what only this lesson uses.

- `exercises.py`: `causal_mask`, `cross_attention`, `decoder_forward`; behind the lesson
  `leaks_future` and `patches`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `second_half.py`: sentences whose verb has two parts, and one part, up to where the half is due
- `leak_probe.py`, `.js`: explorable: replace one token and see which outputs move
- `vision.py`: a small vision transformer on drawn digits, and a linear rival
- `scenes.py`: small pictures of two shapes, with captions
- `captions.py`, `.json` (by `measure_captions.py`): a model that captions them, three seeds
- `patch_explorer.py`, `.js`: explorable: from pixels to tokens
"""
