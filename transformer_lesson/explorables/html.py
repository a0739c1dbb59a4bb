"""Explorables as HTML that works without a kernel: for the web site, exports and single files.

A page contains each explorable's values as JSON, its models' weights as base64 in a script, and all
front ends in one inline module, because a page on disk can neither fetch nor import files.
"""

import base64
import hashlib
import html
import json
from collections.abc import Iterable

from ipywidgets import DOMWidget, Widget
from traitlets import TraitType

from transformer_lesson import explorables
from transformer_lesson.explorables import MODULES
from transformer_lesson.explorables.bundle import bundle

POLICY = "default-src 'none'; img-src data:; style-src {styles}; script-src {scripts}"
MARK = '<meta name="generator" content="transformer_lesson">'
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
{mark}
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>{title}</title>
<style>{style}</style>
<main>{body}</main>
{scripts}
</html>
"""
STYLE = """body { margin: 12px; background: #fff; }
@media (prefers-color-scheme: dark) { body { background: #14191f; } }"""
REFERENCE = "IPY_MODEL_"  # prefix with which a saved widget refers to another
NOT_DRAWN = ("layout", "tabbable", "tooltip")


def saved_state(explorable: Widget) -> dict[str, dict]:
    """Return an explorable and the widgets it needs, by id, as in a saved notebook."""
    held = [getattr(explorable, name) for name in explorable.traits(sync=True)]
    widgets = [explorable, *(part for part in held if isinstance(part, Widget))]
    return Widget.get_manager_state(widgets=widgets)["state"]


def is_explorable(saved: dict) -> bool:
    """Return whether a saved widget is one of these explorables."""
    module, _, kind = saved["state"].get("_anywidget_id", "").rpartition(".")
    return "transformer_lesson." in module and kind in MODULES


def values_in_page(saved: dict, state: dict[str, dict]) -> tuple[dict, dict[str, bytes]]:
    """Return what a page needs of a saved explorable, and the weights it refers to.

    Args:
        saved: one of the widgets of `state`.
        state: all saved widgets, by id.
    """
    values, weights = {}, {}
    for name, value in saved["state"].items():
        if name.startswith("_") or name in NOT_DRAWN:
            continue
        held = value.removeprefix(REFERENCE) if isinstance(value, str) else value
        if held != value and held in state:  # else somebody typed it
            data = base64.b64decode(state[held]["buffers"][0]["data"])
            key = model_key(data)
            weights[key], value = data, f"{REFERENCE}{key}"
        values[name] = value
    kind = saved["state"]["_anywidget_id"].rpartition(".")[2]
    return {"kind": kind, "values": values}, weights


def shown(explorable: Widget) -> tuple[dict, dict[str, bytes]]:
    """Return what a page needs of an explorable, and the weights it refers to."""
    state = saved_state(explorable)
    return values_in_page(state[explorable.model_id], state)


def model_key(data: bytes) -> str:
    """Return the key that a page's explorables use for a model's weights."""
    return hashlib.sha256(data).hexdigest()[:16]


def place(explorable: dict) -> str:
    """Return the element in which a page shows an explorable.

    Args:
        explorable: from `values_in_page`.
    """
    data = json.dumps(explorable, separators=(",", ":")).replace("<", "\\u003c")
    return f'<div class="explorable"><script type="application/json">{data}</script></div>'


def weights_script(weights: dict[str, bytes]) -> str:
    """Return a script that gives the page weights, by key."""
    lines = ["globalThis.explorableWeights ??= {};"]
    for key, data in weights.items():
        lines.append(f'explorableWeights["{key}"] = "{base64.b64encode(data).decode()}";')
    return "\n".join(lines)


def free_names(kind: type) -> list[str]:
    """Return the names of what a reader may set in an explorable of this class, facts left out."""
    every = {name: member for base in reversed(kind.__mro__) for name, member in vars(base).items()}
    of_widgets = set(DOMWidget.class_trait_names())
    return sorted(
        name
        for name, member in every.items()
        if isinstance(member, TraitType) and name[0] != "_" and name not in of_widgets
        if member.metadata.get("sync") and not member.metadata.get("fact")
    )


def front_ends(kinds: Iterable[str]) -> str:
    """Return the module that runs a page's explorables.

    Args:
        kinds: their class names.
    """
    kinds = sorted(set(kinds))
    text = bundle(*(MODULES[kind].rpartition(".")[2] for kind in kinds), "host")
    free = json.dumps({kind: free_names(getattr(explorables, kind)) for kind in kinds})
    return f"{text}\nstart({{ {', '.join(kinds)} }}, {free});\n"


def whole_page(explorables: list[dict], weights: dict[str, bytes], title: str = "") -> str:
    """Return a self-contained page with these explorables, one below the other.

    Args:
        explorables: from `values_in_page`.
        weights: of the models they refer to.
        title: of the page; by default the kinds of its explorables.
    """
    kinds = [explorable["kind"] for explorable in explorables]
    scripts = {"": weights_script(weights), ' type="module"': front_ends(kinds)}
    policy = POLICY.format(
        styles=source_of(STYLE), scripts=" ".join(map(source_of, scripts.values()))
    )
    return PAGE.format(
        mark=MARK,
        title=html.escape(title or ", ".join(kinds)),
        policy=policy,
        style=STYLE,
        body="".join(map(place, explorables)),
        scripts="\n".join(f"<script{kind}>{text}</script>" for kind, text in scripts.items()),
    )


def source_of(text: str) -> str:
    """Return the hash with which a content security policy allows an inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
