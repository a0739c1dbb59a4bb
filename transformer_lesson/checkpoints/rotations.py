"""How queries and keys are rotated, as config.json says it: read into our fields, and written.

Llama, its relatives and GPT-NeoX say it in the same words.
"""

import math
from typing import Any

import torch

from transformer_lesson.checkpoints.family import Facts, require
from transformer_lesson.model.config import ModelConfig, Rule, is_number, positive
from transformer_lesson.model.positions import rotary_angles, stretched_frequencies

FULL, LOCAL = "full_attention", "sliding_attention"
few = Rule("an int from 1 to 16,384", lambda x: is_number(x, int) and 1 <= x <= 2**14)
"""What a tuple may be as long as before the file's tensors are known."""


def rotation(facts: Facts, d_head: int, partial: bool) -> dict[str, Any]:
    """Return our fields of how queries and keys are rotated.

    Args:
        facts: config.json; the library's newer files have rope_parameters, for all layers or for
            each kind of layer, older ones rope_theta and rope_scaling.
        d_head: numbers of a query or key.
        partial: whether the family can rotate a part of each query and key.

    Raises:
        ValueError: positions that are stretched otherwise than ours, or not a number.
    """
    rope, older = facts.get("rope_parameters") or {}, facts.get("rope_scaling") or {}
    far, near = rope.get(FULL) or rope, rope.get(LOCAL) or {}
    base = far.get("rope_theta", facts["rope_theta"])
    positive.check("rope_theta", base)
    share = far.get("partial_rotary_factor", facts.get("partial_rotary_factor", 1.0))
    if not partial:
        require({"partial_rotary_factor": share}, partial_rotary_factor=1.0)
    d_rotary = int(d_head * share)
    name = "rope_scaling" if older else "rope_parameters"
    require({f"{name} of {LOCAL}": _kind(near)}, **{f"{name} of {LOCAL}": "default"})
    return {
        "rotary_base": float(base),
        "rotary_divisors": _divisors(older or far, d_rotary, base, name),
        "d_rotary": None if d_rotary == d_head else d_rotary,
        "window_rotary_base": real(
            dict(facts) | near, "rope_theta" if near else "rope_local_base_freq"
        ),
    }


def rope_parameters(config: ModelConfig, says_all: bool = False) -> dict[str, Any]:
    """Undo `rotation`: return the field rope_parameters.

    Args:
        config: of one of our models.
        says_all: whether the field says it, too, if whole queries and keys are rotated: in
            GPT-NeoX, a missing share means another one.
    """
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": config.rotary_base}
    if config.rotary_divisors:
        rope |= _stretching(config)
    if config.d_rotary or says_all:
        rope["partial_rotary_factor"] = share_of(config.d_rotary or config.d_head, config.d_head)
    if config.window_rotary_base is None:
        return rope
    return {FULL: rope, LOCAL: {"rope_type": "default", "rope_theta": config.window_rotary_base}}


def _divisors(rope: Facts, d_head: int, base: float, name: str) -> tuple[float, ...]:
    """Return what each pair's frequency is divided by, or () if they are as they are.

    Args:
        rope: what config.json says of the stretching: "linear" divides all by a factor, "llama3"
            some, see `stretched_frequencies`, and "longrope" each by a number of its own, which
            is read only if it is the same for short and for long texts.
        d_head: how many numbers of a query or key are rotated.
        base: of the rotary angles.
        name: of the field that says so.

    Raises:
        ValueError: another kind.
    """
    kind = _kind(rope)
    if kind == "default":
        return ()
    few.check("head_dim", d_head)
    if kind == "linear":
        return (real(rope, "factor"),) * (d_head // 2)
    if kind == "llama3":
        fields = "original_max_position_embeddings", "factor", "low_freq_factor", "high_freq_factor"
        stretched = stretched_frequencies(d_head, base, *(rope[field] for field in fields))
        usual = rotary_angles(torch.tensor([1]), d_head, base)[0]
        return tuple((usual / stretched).tolist())
    if kind == "longrope" and rope.get("attention_factor") == 1:
        if rope["long_factor"] == rope["short_factor"]:
            return tuple(rope["long_factor"])
    raise ValueError(
        f"{name} has rope_type {kind!r}, but our rotary positions are 'default', 'linear' or "
        "'llama3': this checkpoint would compute something else."
    )


def real(facts: Facts, name: str) -> float | None:
    """Return a field that is a number > 0, if it is there.

    Raises:
        ValueError: it is something else.
    """
    value = facts.get(name)
    return None if value is None else float(positive.check(name, value))


def _kind(rope: Facts) -> str:
    return rope.get("rope_type", rope.get("type", "default"))


def share_of(d_rotary: int, d_head: int) -> float:
    """Return the partial_rotary_factor whose product with d_head, rounded down, is d_rotary."""
    share = d_rotary / d_head
    return share if int(d_head * share) == d_rotary else math.nextafter(share, 1.0)


def _stretching(config: ModelConfig) -> dict[str, Any]:
    """Undo `_divisors`: return what rope_parameters say of them."""
    each = list(config.rotary_divisors)
    if len(set(each)) == 1:
        return {"rope_type": "linear", "factor": each[0]}
    factors = {"short_factor": each, "long_factor": each, "attention_factor": 1.0, "factor": 1.0}
    return factors | {
        "rope_type": "longrope",
        "original_max_position_embeddings": config.max_len,
    }
