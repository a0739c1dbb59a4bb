"""Lesson 15, Scaling up: what only this lesson uses.

- `exercises.py`: `attention_costs`, `online_softmax`, `attention_in_blocks`, `accumulate`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `scaling_law.py`, `.json` (by `measure_scaling_law.py`): small GPTs on several amounts of text
- `roofline.py`: a machine's limits, what a layer asks of it, and its speed
- `figures.py`: what is drawn of these, and of the law
- `online_softmax.py`, `.js`: explorable: a softmax block by block
- `budget_explorer.py`, `.js`: explorable: a compute budget on the map of a scaling law
- `pipeline_explorer.py`, `.js`: explorable: a model over several devices
- `will_it_fit.py`, `.js`: explorable: memory of training and writing
"""
