"""Lesson 13, Since 2017: what only this lesson uses.

- `exercises.py`: `rms_norm`, `apply_rotary`, `swiglu`, `repeat_kv`, `cut_off`, `route`,
  `linear_attention_step`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `figures.py`: differences seed by seed, losses along a text, heads that look at token 0
- `since_2017.py`, `.json` (by `measure_paper_vs_practice.py`): 2017 and 2026 at the same size
- `variants.py`, `.json` (by `measure_variants.py`): changes since Llama, one at a time
- `longer.py`, `.json`, `reader.safetensors` (by `measure_longer.py`): train on 64, read 256
- `paper_vs_practice.py`, `.js`, `.json` (by the same): explorable: predict which settings learn
- `length_explorer.py`, `.js`: explorable: rotary positions or a window beyond the trained length
- `cache_calculator.py`, `.js`: explorable: memory of keys and values
"""
