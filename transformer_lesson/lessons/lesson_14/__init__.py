"""Lesson 14, Bug hunt: what only this lesson uses.

- `exercises.py`: `next_probe`, `shifted_loss`, `rate_at`, `sees_later`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the verdicts on three cases
- `faulty.py`, `repaired.py`: three functions with bugs, and without; a sick cache; a probe
- `sick_runs.py`: the clinic's program, faults and cases (`sick_program.txt`, `sick_runs.toml`)
- `handed.py`: the clinic's program as `transformer_lesson.doctor` takes it
- `probes.py`: the clinic's probes, each a question and a measurement
- `symptoms.py`, `sick_runs.json` (by `measure_sick_runs.py`): what the probes measured
- `figures.py`: what each probe sees, and what it can't
- `clinic.py`, `.js`: explorable: take probes and accuse a suspect
"""
