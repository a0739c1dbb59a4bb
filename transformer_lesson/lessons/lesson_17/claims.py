"""Claims and their runs, stored; and what sides come to before any run."""

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from transformer_lesson.capstone import Claim
from transformer_lesson.capstone.claim import Side, Text, build
from transformer_lesson.stored import read_stored
from transformer_lesson.training import validation_loss

STORED = Path(__file__).with_name("claims.json")


def stored_claim(name: str) -> Claim:
    """Return a claim that `measure_claims.py` has tested.

    Raises:
        ValueError: the file is missing or damaged.
    """

    def make(claims: dict) -> Claim:
        """Return one of the claims."""
        facts = claims[name]
        return Claim(**facts | {field: tuple(facts[field]) for field in ("rates", "added")})

    return read_stored(STORED, f"{__package__}.measure_claims", make)


def untrained(sides: Mapping[str, Side], seeds: int = 3) -> dict[str, float]:
    """Return each side's mean held-out loss before training, nats per character of the manual.

    Args:
        sides: by name, what differs from the course's small GPT.
        seeds: the first weights come from so many.
    """
    text = Text("manual")
    return {
        name: fmean(validation_loss(build(side, text, i), text.validation) for i in range(seeds))
        for name, side in sides.items()
    }
