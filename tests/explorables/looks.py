"""What a reader sees of an explorable: measured by `looks.js`, led on by `drive.js`."""

from pathlib import Path

from tests.explorables.shown import MODEL, RESTED

LOOKS, DRIVE = (
    Path(__file__).with_name(f"{name}.js").read_text("utf-8") for name in ("looks", "drive")
)
LOOK = f"(() => {{ {LOOKS}\nreturn looksOf(root); }})()"
"""For `Shown.read`: how tall the explorable is and which texts are cut, overprinted or pale."""
DRIVEN = f"""async () => {{
    {LOOKS}\n{DRIVE}
    return driven(await ({RESTED})(), {RESTED}, {MODEL}, looksOf);
}}"""
"""The same of every state: opened, played, after each move, and on a walk."""


def faults(found: list[dict]) -> dict[str, str]:
    """Return what is wrong, each fault once, and by what it came."""
    return {
        f"{kind}: {text}": one["state"]
        for one in found
        for kind in ("cut", "overlapping", "covered", "pale")
        for text in one[kind]
    }
