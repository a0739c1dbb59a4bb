"""Lesson 16, After pretraining: what only this lesson uses.

- `exercises.py`: `dpo_loss`, `grpo_loss`, `pass_at_k`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `figures.py`: a low-rank adapter's matrices
- `manners.py`: tuning a translator by examples, comparisons and rewards
- `after_pretraining.json` (by `measure_after_pretraining.py`): its results with three seeds
- `additions.py`: a decoder that learns to add, with work written out or a calculator
- `chosen_and_rejected.py`, `.js`, `preference.json` (by `measure_preference.py`): explorable: DPO
- `group_explorer.py`, `.js`, `group.json` (by `measure_group.py`): explorable: GRPO
- `leash.py`, `.js`, `.json` (by `measure_leash.py`): explorable: a reward that can be fooled
"""
