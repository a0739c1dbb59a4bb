"""What makes a control of a claim: three claims, and a judge of the controls that learners write.

A control brings all that the change brings, but for what is believed to help.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from torch import nn

from transformer_lesson.capstone.claim import ALIKE, Side, whole
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.model.transformers import DecoderOnlyTransformer

VOCABULARY = 100  # of Python's manual, in characters
BELIEVED: dict[str, tuple[Side, Side]] = {
    "fall": ({"schedule": "cosine"}, {"schedule": "wsd"}),
    "bell": ({"activation": "relu"}, {"activation": "gelu"}),
    "deep": ({"n_layers": 2}, {"n_layers": 3}),
}
"""By what is believed to be the reason, in a word: a claim's baseline and its change."""
FAIR, TWO = "a control", "two things at once"


def sinusoids_in_each_block(model: DecoderOnlyTransformer) -> None:
    """Hand sinusoidal positions to the queries and keys of every block, as rotary ones are.

    But added to what they are made of, not turned by an angle.

    Args:
        model: changed in place.
    """
    code = sinusoidal_encoding(model.config.max_len, model.config.d_model)

    def hand(attention: nn.Module, inputs: tuple) -> tuple:
        """Add positions to what queries and keys are made of."""
        query, key, *rest = inputs
        return query + code[: query.size(1)], key + code[: key.size(1)], *rest

    for block in model.decoder:
        block.self_attention.register_forward_pre_hook(hand)


def judged(believed: str, control: Any) -> str:
    """Return `FAIR`, or what is wrong with a control.

    Args:
        believed: one of `BELIEVED`.
        control: what differs from the course's small GPT.
    """
    if not isinstance(control, Mapping):
        return "not a dict of what differs"
    baseline, change = BELIEVED[believed]
    try:
        mine = _fields(control)
    except ValueError as error:
        return str(error)
    first, second = _fields(baseline), _fields(change)
    if mine == first:
        return "the baseline again"
    if mine == second:
        return "the change again"
    differs = {name for name in mine if mine[name] != first[name]}
    return _JUDGES[believed](mine, differs)


def _fields(side: Side) -> dict[str, Any]:
    """Return all that a side has, by name."""
    model, training, edit = whole(side)
    return asdict(model) | asdict(training) | {"edit": edit}


def _fall(mine: dict[str, Any], differs: set[str]) -> str:
    if mine["schedule"] in ("linear", "wsd"):
        return "it falls to zero, too"
    if mine["schedule"] != "constant":
        return "it falls all along, and the change stays high for most of the run"
    return FAIR if differs == {"schedule"} else TWO


def _bell(mine: dict[str, Any], differs: set[str]) -> str:
    if mine["activation"] in ("gelu", "gelu_tanh"):
        return "it has the bell's curve, too"
    if mine["activation"] == "relu":
        return "it bends as sharply as the baseline, and the change is smooth"
    return FAIR if differs == {"activation"} and mine["activation"] == "swish" else TWO


def _deep(mine: dict[str, Any], differs: set[str]) -> str:
    if mine["n_layers"] > 2:
        return "it is deeper, too"
    if len(differs) > 1:
        return TWO
    model = ModelConfig(**{name: mine[name] for name in ModelConfig.__dataclass_fields__})
    sizes = [
        count_parameters(DecoderOnlyTransformer(replace(config, vocab_size=VOCABULARY)))
        for config in (model, whole(BELIEVED["deep"][1])[0])
    ]
    if abs(sizes[0] / sizes[1] - 1) > ALIKE:
        return f"{sizes[0]:,} parameters, and the change has {sizes[1]:,}"
    return FAIR


_JUDGES = {"fall": _fall, "bell": _bell, "deep": _deep}


def control(believed: str) -> Side:
    """Return a control for a claim: all that the change brings, but for what is believed to help.

    Args:
        believed: "fall" (the rate falls to zero at the end), "bell" (GELU's curve is that of the
            normal distribution), "deep" (three blocks, one after the other).
    """
    return {
        "fall": {"schedule": "constant"},  # stays as high, and never falls
        "bell": {"activation": "swish"},  # as smooth, another curve
        "deep": {"d_ff": 450},  # as many parameters, two blocks
    }[believed]
