"""Explorables: values in Python, pictures that live in the page; one in each file.

`from transformer_lesson.explorables import MaskExplorer` loads ipywidgets and that one file, from
here or from the folder of the one lesson that shows it. `__all__` names the explorables.
"""

from importlib import import_module
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def _modules() -> dict[str, str]:
    """Return the module of each explorable by its name: each has a front end of the same name."""
    here = Path(__file__).parent
    kit = [path for path in here.glob("*.py") if (here / "web" / f"{path.stem}.js").exists()]
    of_lessons = [path.with_suffix(".py") for path in PACKAGE.glob("lessons/*/*.js")]
    files = kit + [path for path in of_lessons if path.exists()]
    names = {path: "".join(map(str.capitalize, path.stem.split("_"))) for path in files}
    dotted = {path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in files}
    return {names[path]: dotted[path] for path in sorted(files, key=names.get)}


MODULES = _modules()
_BESIDE = {"ReplayRecorder": MODULES["TrainingReplay"], "task": "explorables.in_page"}
"""What explorables are made with."""

__all__ = sorted(MODULES)


def __getattr__(name: str):
    module = MODULES.get(name) or _BESIDE.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{PACKAGE.name}.{module}"), name)


def __dir__() -> list[str]:
    return [*__all__, *_BESIDE]
