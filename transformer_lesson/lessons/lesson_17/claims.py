"""Claims and their runs, stored."""

from pathlib import Path

from transformer_lesson.capstone import Claim
from transformer_lesson.stored import read_stored

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
