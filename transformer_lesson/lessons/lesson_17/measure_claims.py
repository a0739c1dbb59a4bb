"""Test two claims with `claim`, and store them with all their runs.

python -m transformer_lesson.lessons.lesson_17.measure_claims
    about half an hour on one busy core; writes claims.json
python -m transformer_lesson.lessons.lesson_17.measure_claims rotary
    one of them
"""

import json
import sys
from dataclasses import asdict

import torch

from transformer_lesson.capstone import claim
from transformer_lesson.lessons.lesson_17.claims import STORED
from transformer_lesson.lessons.lesson_17.controls import sinusoids_in_each_block

CLAIMS = {
    "fall": {
        "says": "A fall at the end beats a cosine",
        "baseline": {"schedule": "cosine"},
        "change": {"schedule": "wsd"},
        "control": {"schedule": "constant"},
        "predicts": "lower",
    },
    "rotary": {
        "says": "Rotary positions beat sinusoidal ones",
        "baseline": {"positions": "sinusoidal"},
        "change": {"positions": "rotary"},
        "control": {"positions": "sinusoidal", "edit": sinusoids_in_each_block},
        "predicts": "lower",
        "rates": (0.0025, 0.005, 0.01),
        "seeds": 5,
        "steps": 100,
    },
}


def main() -> None:
    """Test the claims that were asked for, or all, and store what came out; an edit by its name."""
    torch.set_num_threads(1)
    claims = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for name in sys.argv[1:] or CLAIMS:
        claims[name] = asdict(claim(**CLAIMS[name], minutes=60))
    text = json.dumps(claims, indent=1, default=lambda edit: edit.__name__)
    STORED.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
