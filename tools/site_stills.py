"""Explorables and attention views as HTML for a page without a kernel."""

import json
import re
import shutil
from pathlib import Path

from transformer_lesson.checkpoints.translator import TRANSLATOR
from transformer_lesson.explorables.html import front_ends, model_key, place, weights_script
from transformer_lesson.figures.attention_view.view import frame

MODELS = "_static/models"
MODEL = re.compile('"IPY_MODEL_([0-9a-f]+)"')


def still_as_html(still: dict) -> str:
    """Return the HTML for what a lesson has stored.

    Args:
        still: an explorable's kind and values, or the drawing of an attention view.
    """
    return place(still) if "values" in still else frame(**still)


def scripts(stills: list[dict], root: str) -> str:
    """Return what brings the explorables of one page to life, to be put once after the last.

    Args:
        stills: what the page shows.
        root: the path from the page to the site's root: "", or "../".
    """
    alive = [still for still in stills if "values" in still]
    keys = {key for still in alive for key in models_of(still)}
    models = [f'<script defer src="{root}{MODELS}/{key}.js"></script>' for key in sorted(keys)]
    module = front_ends(still["kind"] for still in alive)
    return "".join([*models, f'<script type="module">{module}</script>']) if alive else ""


def models_of(still: dict) -> list[str]:
    """Return the keys of the models that a stored explorable runs."""
    return MODEL.findall(json.dumps(still["values"]))


def stored_weights(stills: Path) -> dict[str, bytes]:
    """Return the weights of all explorables' models, by the keys that explorables know."""
    files = [path.read_bytes() for path in [TRANSLATOR, *stills.glob("*/*.safetensors")]]
    return {model_key(data): data for data in files}


def write_models(stills: Path, folder: Path) -> None:
    """Write the weights of the explorables' models as scripts, and remove all other files."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for key, data in stored_weights(stills).items():
        (folder / f"{key}.js").write_text(weights_script({key: data}), encoding="utf-8")
