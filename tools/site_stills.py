"""Explorables and attention views as HTML for a page without a kernel.

A page holds an explorable's controls and the numbers of its states; its pictures are files beside
the page. `docs/site/_static/site.js` shows the state that the controls say.
"""

import base64
import hashlib
import html
import io
import json
import re
import shutil
from pathlib import Path

from PIL import Image

from transformer_lesson import explorables
from transformer_lesson.explorables.html import front_ends, model_key, place, weights_script
from transformer_lesson.explorables.trained import TRANSLATOR
from transformer_lesson.figures.attention_view.view import frame

FOLDER, MODELS = "../_static/stills", "_static/models"  # from a lesson's page, from the first one
MODEL = re.compile('"IPY_MODEL_([0-9a-f]+)"')
MOVES_IN_LAB = re.compile(rf"({'|'.join(explorables.__all__)})\(")


def still_as_html(still: dict, page_id: str) -> str:
    """Return what stands in the page for one stored still.

    Args:
        still: the drawing of an attention view, or an explorable's states as
            `explorables.stills.pre_rendered` gives them.
        page_id: a word that no other still of the page has.
    """
    if "values" in still:
        return place(still)
    if "kind" in still:
        return frame(**still)
    controls = [
        control_as_html(control, f"{page_id}-{i}") for i, control in enumerate(still["controls"])
    ]
    now = 0
    for control in still["controls"]:
        now = now * len(control["options"]) + control["start"]
    picture, text = still["states"][now]
    files = [f"{FOLDER}/{file_name(data)}" for data in still["pictures"]]
    width, height = size(still["pictures"][picture])
    data = json.dumps({"states": still["states"], "pictures": files}, separators=(",", ":"))
    alt = html.escape(text)
    return (
        f'<div class="still" role="group" aria-label="{still["name"]}">'
        f'<script type="application/json">{data.replace("<", chr(92) + "u003c")}</script>'
        f'<div class="still-controls">{"".join(controls)}</div>'
        f'<div class="still-picture"><img src="{files[picture]}" alt="{alt}" '
        f'width="{width}" height="{height}"></div>'
        f'<p role="status">{alt}</p>'
        '<p class="still-note">Drawn beforehand for some values; JupyterLab has them all.</p></div>'
    )


def scripts(stills: list[dict], root: str) -> str:
    """Return what brings the explorables of one page to life, to stand once, after the last.

    Args:
        stills: what the page shows.
        root: the way from the page to the first one: "", or "../".
    """
    alive = [still for still in stills if "values" in still]
    keys = {key for still in alive for key in MODEL.findall(json.dumps(still["values"]))}
    models = [f'<script defer src="{root}{MODELS}/{key}.js"></script>' for key in sorted(keys)]
    module = front_ends(still["kind"] for still in alive)
    return "".join([*models, f'<script type="module">{module}</script>']) if alive else ""


def write_models(stills: Path, folder: Path) -> None:
    """Write the weights of the explorables' models as scripts, and remove what is none of them."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for path in [TRANSLATOR, *stills.glob("*/*.safetensors")]:
        data = path.read_bytes()
        key = model_key(data)
        (folder / f"{key}.js").write_text(weights_script({key: data}), encoding="utf-8")


def control_as_html(control: dict, name: str) -> str:
    """Return a control that the keyboard reaches and a screen reader can name."""
    label, options, start = html.escape(control["label"]), control["options"], control["start"]
    words = [html.escape(option) for option in options]
    if control["kind"] == "range":
        return (
            f'<label>{label} <input type="range" data-control min="0" max="{len(options) - 1}" '
            f'value="{start}" data-options="{html.escape(json.dumps(options))}" '
            f'aria-valuetext="{words[start]}" autocomplete="off"> '
            f"<output>{words[start]}</output></label>"
        )
    if control["kind"] == "checkbox":
        checked = " checked" if start else ""
        return (
            f'<label><input type="checkbox" data-control{checked} autocomplete="off"> '
            f"{label}</label>"
        )
    buttons = [
        f'<label><input type="radio" name="{name}" value="{i}" autocomplete="off"'
        f"{' checked' if i == start else ''}> {word}</label>"
        for i, word in enumerate(words)
    ]
    return f"<fieldset data-control><legend>{label}</legend>{''.join(buttons)}</fieldset>"


def file_name(data: str) -> str:
    """Return a name that only this picture has."""
    return f"{hashlib.sha256(data.encode()).hexdigest()[:16]}.webp"


def size(data: str) -> tuple[int, int]:
    """Return the width and the height of a stored picture, in pixels."""
    return Image.open(io.BytesIO(base64.b64decode(data))).size


def write_pictures(stills: Path, folder: Path) -> None:
    """Write the pictures of all states, and remove what is none of them."""
    folder.mkdir(exist_ok=True)
    wanted = set()
    for path in stills.glob("*/*.json"):
        for data in json.loads(path.read_text(encoding="utf-8")).get("pictures", []):
            wanted.add(name := file_name(data))
            if not (folder / name).exists():
                (folder / name).write_bytes(base64.b64decode(data))
    for path in folder.iterdir():
        if path.name not in wanted:
            path.unlink()
