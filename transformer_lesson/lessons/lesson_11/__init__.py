"""Lesson 11, What heads learn: what only this lesson uses.

For the lesson:

- `exercises.py`: `smallest_circuit`, `continue_by_hand`
- `words.toml`: what `check` says about each wrong turn
- `questions.toml`: the predictions
- `figures.py`: where heads look, what their weights say, features as arrows
- `induction.py`, `circuits.json` (by `measure_circuits.py`): attention-only models, three seeds
- `unknown.py`: a model to crack with forty runs, and the check of a rule
- `cracked.py`: what was measured on the first of them, beside its controls
- `hidden_rules.py`, `unknown.safetensors` (by `train_unknown.py`): thirty rules behind them
- `circuit_graph.py`, `.js`, `circuit_pass.js`: explorable: cut edges between parts of a model

For the notebooks behind it, `notebooks/deeper/11_….ipynb`:

- `programmed_induction.py`: the same circuit with its weights written by hand (a known circuit)
- `particles.py`: sentences that differ in one verb and in the German particle
- `patching_grid.py`, `.js`: explorable: put one vector of the clean run into the other (with these)
- `superposition.py`, `sparse_autoencoder.py`: more features than dimensions, and finding them

The search for a circuit and its edges ("0.0.v") are in `interpretability/circuits.py`: learners
import it from there, as they do the other tools of that room.
"""
