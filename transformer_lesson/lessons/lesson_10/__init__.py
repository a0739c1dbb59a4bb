"""Lesson 10, A language model: what only this lesson uses.

- `exercises.py`: `gpt_forward`, `write_on`, `fit_power_law`, `bits_per_character`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `solutions.py`: the power law's fit as the lesson shows it
- `figures.py`: counting against learning, losses by size and by position, stories with mistakes
- `size_and_text.py`, `.json` (by `measure_size_and_text.py`): several sizes, several texts
- `storyteller.py`: a model that learns stories with checkable facts, and a rival that counts
"""
