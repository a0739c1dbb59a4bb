"""Lesson 14, Bug hunt: what only this lesson uses.

- `exercises.py`: `next_probe`, `shifted_loss`, `decay_groups`, `rate_at`, `evaluation_loss`,
  `cached_step`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `faulty.py`, `repaired.py`: the five functions with their bugs, and without
- `sick_runs.py`: the clinic's program, faults and cases (`sick_program.txt`, `sick_runs.toml`)
- `probes.py`: the clinic's probes, each a question and a measurement
- `symptoms.py`, `sick_runs.json` (by `measure_sick_runs.py`): what the probes measured
- `figures.py`: a probe's result, sick beside healthy
- `clinic.py`, `.js`: explorable: take probes and accuse a suspect
"""
