"""The attention weights that a model recorded, with the words of their queries and keys.

`collect_parts` turns a `run`, an output of transformers or a list of tensors into named parts that
can be drawn: it takes one sentence of the batch and rejects what is not attention.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from transformer_lesson.files import printable

MAX_WEIGHTS = 100_000
"""Most weights in a view: a browser draws one line each, and many more make it unresponsive."""

LONGEST = 20  # characters of a word that fit into a picture
RECORDED_NAME = re.compile(r"(encoder|decoder)\.(\d+)\.(self|cross)_attention\.weights")


class Part(NamedTuple):
    """One kind of attention in a model, with the words of its queries and keys."""

    name: str
    layers: list[int]
    weights: Float[Tensor, "layer head query key"]
    query_tokens: list[str]
    key_tokens: list[str]


def collect_parts(attention, tokens, target_tokens, part, sentence) -> list[Part]:
    """Sort the recorded weights into parts, each with its words."""
    recorded = _recorded(attention, "self" if target_tokens is None else "cross")
    two_texts = "cross" in recorded
    if part is not None:
        recorded = {known("part", part, list(recorded)): recorded[part]}
    if two_texts and target_tokens is None and list(recorded) != ["encoder"]:
        raise ValueError(
            "target_tokens is missing, but the model reads two texts: give the words of the "
            "target text, or part='encoder'."
        )
    if target_tokens is not None and not two_texts:
        raise ValueError("target_tokens is given, but the model reads one text: leave it out.")
    target = target_tokens if two_texts else tokens
    words = {"encoder": (tokens, tokens), "self": (tokens, tokens)}
    words |= {"decoder": (target, target), "cross": (target, tokens)}
    parts = [_part(name, recorded[name], *words[name], sentence) for name in recorded]
    sizes = {p.name: f"layers {p.layers} of {p.weights.shape[1]} heads" for p in parts}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the parts differ, {sizes}: choose one, for example part='cross'.")
    return parts


HOW = "record the model's call, `with record(model) as run: model(ids)`, and pass run"
EAGER = (
    "the model has computed no weights that can be read: load it with attn_implementation='eager' "
    "and call it with output_attentions=True."
)
LISTS = {  # of transformers' outputs: the name of the part
    "attentions": "self",
    "encoder_attentions": "encoder",
    "decoder_attentions": "decoder",
    "cross_attentions": "cross",
}


def _recorded(attention, name_of_list: str) -> dict[str, dict[int, Tensor]]:
    """Return the weights by part and layer number, in the order the model ran."""
    if isinstance(attention, Mapping) and not LISTS.keys() & attention.keys():
        layers: dict[str, dict[int, Tensor]] = {}
        for name, weights in attention.items():
            if match := RECORDED_NAME.fullmatch(str(name)):
                part = "cross" if match[3] == "cross" else match[1]
                layers.setdefault(part, {})[int(match[2])] = _tensor(weights)
        if not layers:
            names = printable(", ".join(map(str, attention)), 60) or "nothing"
            library = "of a model of transformers pass an output with output_attentions=True"
            raise ValueError(f"attention holds no weights, but {names}: {HOW}; {library}.")
        return layers
    lists = {part: _field(attention, name) for name, part in LISTS.items()}
    if layers := {
        part: _layers(entries)
        for part, entries in lists.items()
        if entries is not None and len(entries)
    }:
        return layers
    if any(_has(attention, name) for name in LISTS):  # None, or an empty tuple
        raise ValueError(f"attention is an output without attentions: {EAGER}")
    return {name_of_list: _layers(attention)}


def _field(output, name: str):
    return output.get(name) if isinstance(output, Mapping) else getattr(output, name, None)


def _has(output, name: str) -> bool:
    return name in output if isinstance(output, Mapping) else hasattr(output, name)


def _layers(attention) -> dict[int, Tensor]:
    """Return each layer's weights, from a list or a single tensor."""
    if isinstance(attention, Tensor | np.ndarray):
        attention = attention if attention.ndim > 4 else [attention]
    if not isinstance(attention, Tensor | np.ndarray | list | tuple):
        raise ValueError(
            f"attention is of type {type(attention).__name__}, which holds no weights: {HOW}; or "
            "give an output of transformers or a list with a tensor (batch, head, query, key) for "
            "each layer."
        )
    if len(attention) == 0 or any(entry is None for entry in attention):
        raise ValueError(
            f"attention holds {len(attention)} layers, and some hold no weights: {EAGER}"
        )
    if any(isinstance(entry, list | tuple) for entry in attention):
        raise ValueError(
            "attention has a list for each step, as generate returns it: call the model once, with "
            "the whole text, and pass what that returns."
        )
    return dict(enumerate(map(_tensor, attention)))


def _tensor(weights) -> Tensor:
    """Return one layer's weights with a batch axis, added if missing."""
    if isinstance(weights, np.ndarray) and weights.dtype.kind in "fiub":
        weights = torch.from_numpy(weights)
    if not isinstance(weights, Tensor):
        raise ValueError(
            f"attention holds a {type(weights).__name__} where a layer's weights should be, a "
            f"tensor (batch, head, query, key): {HOW}."
        )
    return weights[None] if weights.ndim == 3 else weights


def _part(name, layers: dict[int, Tensor], query_tokens, key_tokens, sentence: int) -> Part:
    """Check one part's weights against its words and take one sentence of the batch."""
    for words in (query_tokens, key_tokens):
        if isinstance(words, str) or not isinstance(words, Iterable):
            shown = printable(repr(words), 40)
            raise ValueError(f"tokens are {shown}, but must be a list of words, one per position.")
    for token in [*query_tokens, *key_tokens]:
        if not isinstance(token, str):
            raise ValueError(f"token {token!r} is not text: pass words, not ids.")
    expected = (len(query_tokens), len(key_tokens))
    if 0 in expected:
        raise ValueError(f"{name} has {expected} query and key tokens: give at least one of each.")
    for number, weights in layers.items():
        where = f"{name} layer {number} has weights of shape {tuple(weights.shape)}"
        if weights.ndim != 4:
            raise ValueError(f"{where}: pass (batch, head, query, key), one tensor per layer.")
        if weights.shape[2:] != expected:
            raise ValueError(
                f"{where}, but there are {expected[0]} query and {expected[1]} key tokens: give "
                "one token per position, special and padding tokens too."
            )
        known("sentence", sentence, list(range(len(weights))))
    if len({weights.shape for weights in layers.values()}) > 1:
        raise ValueError(f"the layers of {name} differ in batch or heads: pass one of them.")
    chosen = torch.stack([weights[sentence].detach().double().cpu() for weights in layers.values()])
    _check_weights(name, chosen)
    return Part(name, list(layers), chosen, _labels(query_tokens), _labels(key_tokens))


def _check_weights(name: str, weights: Float[Tensor, "layer head query key"]) -> None:
    sums = weights.sum(-1)  # (layer, head, query); a row with every key masked is all zeros
    wrong = ~(((sums - 1).abs() < 0.01) | (sums == 0)) | (weights < 0).any(-1)
    if wrong.any():
        raise ValueError(
            f"a row of {name} adds up to {sums[wrong][0]:.3f}, not 1: pass the weights after "
            "softmax, not scores, and without NaN."
        )
    if weights.numel() > MAX_WEIGHTS:
        raise ValueError(
            f"{name} has {weights.numel()} weights, more than the {MAX_WEIGHTS} lines that a "
            "browser can draw: pass fewer layers or a shorter text."
        )


def known(what: str, value, choices: list):
    """Return the value if it is one of the choices; else raise a ValueError that lists them."""
    if value not in choices:
        raise ValueError(f"{what} {value!r} does not exist here: choose from {choices}.")
    return value


def _labels(tokens: Sequence[str]) -> list[str]:
    """Escape invisible characters and shorten words that do not fit the picture."""
    return [printable(token, LONGEST) for token in tokens]
