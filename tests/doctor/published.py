"""Strangers' scripts, published faults, and designs that are none, as changes of their text.

`published/HOST.py` is a sound script as somebody else writes one. Each table of `HOST.toml` is a
fault: where it was published, what it does, what the doctor should call it (written down before the
doctor first saw it; a name of a later probe was added with the probe), and what it did. Each of
`HOST_sound.toml` is a design that is meant. `pairs.toml` names two faults of one script at a time.
"""

import tomllib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("published")
HOSTS = sorted(path.stem for path in FOLDER.glob("*.py"))


@cache
def changes(host: str, sound: bool = False) -> dict[str, dict]:
    """Return a host's faults by name, or the designs that are none."""
    path = FOLDER / f"{host}{'_sound' if sound else ''}.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def script(host: str, change: dict | None = None) -> str:
    """Return the text of a host, changed.

    Raises:
        ValueError: what is to be replaced does not occur exactly once.
    """
    text = (FOLDER / f"{host}.py").read_text(encoding="utf-8")
    for old, new in _pairs(change or {"old": [], "new": []}):
        if text.count(old) != 1:
            raise ValueError(f"{host}: this occurs {text.count(old)} times: {old!r}")
        text = text.replace(old, new)
    return text


def pairs(which: str) -> list[list[str]]:
    """Return [host, fault, fault] of pairs: "repaired_on", "held_out" or "first_seen"."""
    text = FOLDER.with_name("pairs.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)[which]


def together(host: str, *names: str) -> dict:
    """Return several faults as one change."""
    some = [pair for name in names for pair in _pairs(changes(host)[name])]
    return {"old": [old for old, _ in some], "new": [new for _, new in some]}


def _pairs(change: dict) -> list[tuple[str, str]]:
    old, new = ([one] if isinstance(one, str) else one for one in (change["old"], change["new"]))
    return list(zip(old, new, strict=True))
