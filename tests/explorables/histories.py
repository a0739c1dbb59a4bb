"""Short trainings, for what draws curves."""

import re
from decimal import ROUND_HALF_UP, Context, Decimal


def short(value: float | str) -> str:
    """A value in four digits, as JavaScript writes a number."""
    if isinstance(value, str):
        return value
    rounded = Context(prec=4, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
    text = repr(float(rounded)).removesuffix(".0")
    if 1e-7 < abs(value) < 1e-4:  # written out there
        text = f"{float(text):.15f}".rstrip("0")
    return re.sub(r"e-0(\d)", r"e-\1", text)
