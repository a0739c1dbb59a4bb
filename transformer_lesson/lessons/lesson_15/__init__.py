"""Lesson 15, Scaling up: what only this lesson uses.

- `exercises.py`: `online_softmax`, `attention_in_blocks`, `accumulate`, `misfit_at`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `scaling_law.py`, `.json` (by `measure_scaling_law.py`): small GPTs on several amounts of text
- `roofline.py`: the machine's limits: operations and bytes per second
- `online_softmax.py`, `.js`: explorable: a softmax block by block
- `budget_explorer.py`, `.js`: explorable: a compute budget on the map of a scaling law
- `pipeline_explorer.py`, `.js`: explorable: a model over several devices
- `will_it_fit.py`, `.js`: explorable: memory of training and writing
"""
