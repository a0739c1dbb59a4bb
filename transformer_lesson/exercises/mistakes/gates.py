"""Mistakes in lesson 13: the gated network and the shared heads."""

import torch
import torch.nn.functional as F

from transformer_lesson.exercises.specification import Mistake


def gated(x, W_gate, W_up, W_down, activation=F.silu):
    """A gated feed-forward network with a place for another activation."""
    return (activation(x @ W_gate) * (x @ W_up)) @ W_down


GATE_MISTAKES = {
    "swiglu": (
        Mistake(
            "a sigmoid as the gate",
            "That is GLU, the first of the family. Swish is z times sigmoid(z), so the gate's own "
            "size counts too. What is missing in front of your sigmoid?",
            lambda *inputs: gated(*inputs, activation=torch.sigmoid),
        ),
        Mistake(
            "gate and up in each other's place",
            "Swish belongs to `W_gate`. A model trained your way would learn as well, but loaded "
            "weights have their roles already.",
            lambda x, W_gate, W_up, W_down: gated(x, W_up, W_gate, W_down),
        ),
        Mistake(
            "a sum instead of a product",
            "A gate lets pass or closes, and that takes a product: a sum of two maps is one map "
            "more. Multiply number by number, with `*`.",
            lambda x, W_gate, W_up, W_down: (F.silu(x @ W_gate) + x @ W_up) @ W_down,
        ),
        Mistake(
            "swish over the product",
            "You multiply first and activate afterwards. Only the gate is activated; what it lets "
            "pass stays as it is, negative numbers too.",
            lambda x, W_gate, W_up, W_down: F.silu((x @ W_gate) * (x @ W_up)) @ W_down,
        ),
        Mistake(
            "a ReLU as the gate",
            "That is ReGLU: a gate that is closed for every negative number. Swish lets a little "
            "of them through, and a gradient with it.",
            lambda *inputs: gated(*inputs, activation=F.relu),
        ),
        Mistake(
            "a GELU as the gate",
            "That is GEGLU, which T5 and Gemma use. SwiGLU takes z * sigmoid(z) instead; the "
            "curves look alike, the numbers differ.",
            lambda *inputs: gated(*inputs, activation=F.gelu),
        ),
        Mistake(
            "a gate without an activation",
            "A product of two linear maps is the bilinear variant in the same paper. It learns "
            "too, but nothing is ever closed. Which of the two goes through swish?",
            lambda *inputs: gated(*inputs, activation=lambda z: z),
        ),
        Mistake(
            "a network without `W_up`",
            "That is the network of 2017 with swish in place of ReLU. What the gate should let "
            "pass is `x @ W_up`.",
            lambda x, W_gate, W_up, W_down: F.silu(x @ W_gate) @ W_down,
        ),
    ),
    "repeat_kv": (
        Mistake(
            "the heads in turns",
            "`repeat` writes heads 0, 1, 0, 1, so that neighboring query heads read different "
            "keys. Trained weights expect neighbors to share: 0, 0, 1, 1. No shape tells you.",
            lambda x, n_groups: x.repeat(1, n_groups, 1, 1),
        ),
        Mistake(
            "repeated tokens",
            "You repeat along n, so each token stands there several times, and the heads are as "
            "few as before. Which axis of (batch, kv_head, n, d_head) are the heads?",
            lambda x, n_groups: x.repeat_interleave(n_groups, dim=2),
        ),
        Mistake(
            "a repeated batch",
            "You repeat along the batch: more sentences, as few heads as before. Which axis of "
            "(batch, kv_head, n, d_head) are the heads?",
            lambda x, n_groups: x.repeat_interleave(n_groups, dim=0),
        ),
        Mistake(
            "longer heads",
            "You repeat along d_head, so that keys are longer than queries, and their dot product "
            "fails. Which axis of (batch, kv_head, n, d_head) are the heads?",
            lambda x, n_groups: x.repeat_interleave(n_groups, dim=3),
        ),
        Mistake(
            "heads divided by n_groups",
            "Sharing does not make a key smaller: every query head reads the whole of it. Repeat "
            "the numbers as they are.",
            lambda x, n_groups: x.repeat_interleave(n_groups, dim=1) / n_groups,
        ),
        Mistake(
            "groups of two whatever was asked",
            "The argument `n_groups` is not used. It is n_heads / n_kv_heads, which differs from "
            "model to model.",
            lambda x, n_groups: x.repeat_interleave(2, dim=1),
        ),
        Mistake(
            "n before head",
            "The numbers are right, their axes are not: attention expects (batch, head, n, "
            "d_head), as `split_heads` returns it.",
            lambda x, n_groups: x.repeat_interleave(n_groups, dim=1).transpose(1, 2),
        ),
    ),
}
