"""Lesson 16, After pretraining: what only this lesson uses.

- `exercises.py`: `dpo_loss`, `grpo_loss`, `asking`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `figures.py`: comparisons and rewards step by step; a low-rank adapter's matrices
- `manners.py`: tuning a translator by examples, comparisons and rewards
- `orders.py`: what an attempt has after its adverb, and what it is praised for
- `after_pretraining.json` (by `measure_after_pretraining.py`): its results with three seeds
- `additions.py`: a decoder that learns to add, with work written out or a calculator
- `group_explorer.py`, `.js`, `group.json` (by `measure_group.py`): explorable: GRPO
- `reward_clinic.py`, `.js`: explorable: runs of GRPO that went wrong
- `sick_rewards.py`, `.toml`, `.json` (by `measure_sick_rewards.py`): its faults, cases and probes
- `leash.py`, `.js`, `.json` (by `measure_leash.py`): explorable: a reward that can be fooled
"""
