"""A doctor for anybody's Transformer: it changes tokens, looks at what moves, and names causes.

Nothing of the model's code is read, and none of its parts must be ours. Every probe is a small
function of a `Patient`, which asks the model through its owner's functions:

- `stability`: does a call repeat itself, and is each text of a batch independent?
- `visibility`: which tokens does each output depend on?
- `attention`, `padding`, `positions`: softmax and scale; what padding moves; whether order matters
- `gradients`: weights that learn nothing, and weights that nobody lists
- `wiring`: layers that are one, norms that do not normalize, blocks without residual
- `paths`: residuals, what sublayers read, and gates, also in plain functions
- `first_weights`: do a fresh model's weights suit each other?
- `labels`, `hidden_words`, `steps`, `evaluation`, `schedules`: what the loss asks for, what a step
  uses, what is reported, what the rate does
- `updates`: what an optimizer of one's own does with gradients that are known
- `writing`: cache, greedy writing, sampling

`findings.toml` holds what can be said; `python -m transformer_lesson.doctor script.py` examines a
script in a process of its own.
"""

from transformer_lesson.doctor.examination import examine
from transformer_lesson.doctor.findings import Finding
from transformer_lesson.doctor.report import Report

__all__ = ["Finding", "Report", "examine"]
