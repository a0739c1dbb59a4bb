"""Lesson 08, Training: what only this lesson uses.

- `exercises.py`: `loss_gradient`, `adam_step`; behind the lesson `projection_gradient`,
  `softmax_gradient`, `layer_norm_gradient`, `head_gradient`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `backward.py`: the gradients from W_L back through one head, and a step of Adam
- `rates.py`, `rates.json` (by `measure_rates.py`): small translators at several rates, with and
  without warm-up, in batches of three sizes
- `training_replay.py`, `.js`: explorable: a training run, snapshot by snapshot
"""
