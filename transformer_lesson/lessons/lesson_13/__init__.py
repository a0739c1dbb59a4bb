"""Lesson 13, Since 2017: what only this lesson uses.

- `exercises.py`: `repeat_kv`, `apply_rotary`, `counts`, `at_their_best`, `cut_off`, `route`,
  `linear_attention_step`, `gemma_block`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: solutions as the lesson shows them
- `figures.py`: differences seed by seed, losses by rate and along a text, heads and token 0
- `since_2017.py`: 2017 and 2026 at the same size, and the rule that compares them
- `variants.py`, `.json` (by `measure_variants.py`): changes, one at a time, each at several rates
- `longer.py`, `.json`, `reader.safetensors` (by `measure_longer.py`): train on 64, read 256
- `sinks.py`, `.json` (by `measure_sinks.py`): what a window takes from SmolLM2
- `gemma_block.py`: Gemma 3's block as a formula
- `gemma.py`, `.json` (by `measure_gemma.py`): what Gemma 3 270M loses without one of its parts
- `length_explorer.py`, `.js`: explorable: rotary positions or a window beyond the trained length
- `cache_calculator.py`, `.js`: explorable: memory of keys and values
"""
