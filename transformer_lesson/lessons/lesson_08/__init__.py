"""Lesson 08, Training: what only this lesson uses.

- `exercises.py`: `label_smoothed_loss`, `loss_gradient`, `training_step`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `small_runs.py`: translators small enough to train in seconds at different learning rates
- `training_replay.py`, `.js`: explorable: a training run, snapshot by snapshot
"""
