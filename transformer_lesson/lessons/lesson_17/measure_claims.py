"""Test two claims with `claim`, and store them with all their runs.

python -m transformer_lesson.lessons.lesson_17.measure_claims
    about half an hour on one busy core; writes claims.json
"""

import json
from dataclasses import asdict

import torch

from transformer_lesson.capstone import claim
from transformer_lesson.lessons.lesson_17.claims import STORED

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
        "control": {"positions": "learned"},
        "predicts": "lower",
        "rates": (0.0025, 0.005, 0.01),
        "seeds": 5,
        "steps": 100,
    },
}


def main() -> None:
    """Test every claim, and store what came out."""
    torch.set_num_threads(1)
    claims = {name: asdict(claim(**one, minutes=60)) for name, one in CLAIMS.items()}
    STORED.write_text(json.dumps(claims, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
