"""Write one page of what a learner has built, and take in what was built on another machine.

The page, `my_lessons/my_page.html`, is whole in itself: what is done of each lesson, the functions
that passed, models with their cards, the claim, and what the questions before and after say.
"""

import argparse
import base64
import os
import shutil
from collections.abc import Iterator
from html import escape
from pathlib import Path

from transformer_lesson.course import LESSONS, MINE, learners_folder
from transformer_lesson.exercises import gain, progress
from transformer_lesson.exercises.engine.collection import FOLDER, add_collected
from transformer_lesson.exercises.engine.inventory import asked, given
from transformer_lesson.exercises.engine.progress import (
    FILE,
    PLACE,
    parse_progress,
    read_progress,
    remember,
)
from transformer_lesson.files import printable, write_atomically

PAGE, CLAIM, MODELS, TRANSLATOR = (
    "my_page.html",
    "my_claim.html",
    "my_own",
    "translator.safetensors",
)
STYLE = """body { font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }
pre { overflow-x: auto; background: #f4f4f4; padding: 0.5em } td, th { padding: 0.1em 0.8em }
iframe { width: 100%; height: 40em; border: 1px solid #ccc } img { max-width: 100% }"""


def page_of(mine: Path) -> str:
    """Return the page as HTML.

    Args:
        mine: the learner's `my_lessons/`.
    """
    parts = [f"<h2>Lessons</h2>{progress()._repr_html_()}", *_code(mine), *_models(mine)]
    if (mine / CLAIM).is_file():
        claim = (mine / CLAIM).read_text(encoding="utf-8", errors="replace")
        parts.append(f'<h2>A claim, tested</h2><iframe sandbox srcdoc="{escape(claim)}"></iframe>')
    parts += _gain(mine)
    head = f'<meta charset="utf-8"><title>My Transformer</title><style>{STYLE}</style>'
    body = "\n".join(["<h1>What I built</h1>", *parts])
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _code(mine: Path) -> Iterator[str]:
    files = [(number, mine / FOLDER / f"lesson_{number}.py") for number in LESSONS]
    shown = [(number, file) for number, file in files if file.is_file()]
    if shown:
        yield "<h2>Functions that passed</h2>"
    for number, file in shown:
        code = escape(printable(file.read_text(encoding="utf-8", errors="replace"), keep="\n\t"))
        title = f"{number} {escape(LESSONS[number].title)}"
        yield f"<details><summary>{title}</summary><pre>{code}</pre></details>"


def _models(mine: Path) -> Iterator[str]:
    cards = sorted((mine / MODELS).glob("*/README.md"))
    translator = mine / FOLDER / TRANSLATOR
    if cards or translator.is_file():
        yield "<h2>Models</h2>"
    if translator.is_file():
        size = translator.stat().st_size / 1e6
        yield f"<p>The translator of lesson 08, {size:.1f} MB: {FOLDER}/{TRANSLATOR}.</p>"
    for card in cards:
        text = escape(printable(card.read_text(encoding="utf-8", errors="replace"), keep="\n\t"))
        name = escape(printable(card.parent.name))
        yield f"<details><summary>{name}</summary><pre>{text}</pre></details>"


def _gain(mine: Path) -> Iterator[str]:
    predicted = read_progress(mine / FILE)["predicted"]
    if all(len(given(predicted, when)) == len(asked(when)) for when in ("before", "after")):
        picture = gain()
        image = base64.b64encode(picture.png()).decode()
        alt = escape(picture.alt)
        yield f'<h2>What I know now</h2><img alt="{alt}" src="data:image/png;base64,{image}">'


def take_in(mine: Path, other: Path) -> Iterator[str]:
    """Add what another machine's `my_lessons/` has and this one lacks; yield what was added.

    What both have stays as it is here. Notebooks are left alone.

    Raises:
        ValueError, RecursionError: its progress file is damaged.
    """
    if (other / FILE).is_file():
        theirs, ours = parse_progress(other / FILE), read_progress(mine / FILE)
        for section, entries in theirs.items():
            new = {name: value for name, value in entries.items() if name not in ours[section]}
            for name, value in new.items():
                remember(section, name, value)
            yield f"{len(new)} {section}"
    added = add_collected(mine / FOLDER, other / FOLDER)
    yield f"functions: {', '.join(added) or 'none'}"
    models = [model.relative_to(other) for model in sorted((other / MODELS).glob("*/"))]
    for place in (Path(FOLDER, TRANSLATOR), Path(CLAIM), *models):
        if (other / place).exists() and not (mine / place).exists():
            (mine / place).parent.mkdir(exist_ok=True)
            copy = shutil.copytree if (other / place).is_dir() else shutil.copyfile
            copy(other / place, mine / place)
            yield place.as_posix()


def main(arguments: list[str]) -> str | None:
    """Write the page and say where; return any problem, in a sentence."""
    parser = argparse.ArgumentParser("transformer-lesson progress", description=__doc__)
    about = "another machine's my_lessons/, to take in what is not here"
    parser.add_argument("--merge", type=Path, metavar="FOLDER", help=about)
    other = parser.parse_args(arguments).merge
    mine = learners_folder() / MINE
    if not mine.is_dir():
        return (
            f"There is no {mine}: call this where your copies are, or `transformer-lesson` first."
        )
    os.environ[PLACE] = str(mine / FILE)
    try:
        if other is not None:
            if not other.is_dir():
                return f"There is no folder {other}: name another machine's {MINE}/."
            other = other / MINE if (other / MINE).is_dir() else other
            if not any((other / name).exists() for name in (FILE, FOLDER, MODELS, CLAIM)):
                return f"In {other} is nothing that a learner built: name another my_lessons/."
            for sentence in take_in(mine, other):
                print(f"from {other}: {sentence}")
        write_atomically(mine / PAGE, page_of(mine).encode())
    except (OSError, ValueError, RecursionError) as error:
        return f"{error}."
    print(f"The page is {mine / PAGE}.")
    return None
