"""Lesson 10, A language model: what only this lesson uses.

- `exercises.py`: `gpt_forward`, `write_on`, `fit_power_law`, `bits_per_character`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: the power law's fit as the lesson shows it
- `figures.py`: counting against learning, losses by size, stories with mistakes
- `counting.py`: tables of characters, one and mixed
- `size_and_text.py`, `.json` (by `measure_size_and_text.py`): several sizes, several texts
- `storyteller.py`: stories with checkable facts, told by a model and by a rival that counts
"""
