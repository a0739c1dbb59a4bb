"""Mistakes in lesson 13: norms and rotations, the gated network, shared heads."""

import torch
import torch.nn.functional as F

from transformer_lesson.exercises.specification import Mistake


def rms(x, gamma, epsilon, axes=-1):
    """RMSNorm, with a place for a bug."""
    return x / ((x * x).mean(dim=axes, keepdim=True) + epsilon).sqrt() * gamma


def _mean_subtracted(x, gamma, epsilon):
    return F.layer_norm(x, gamma.shape, gamma, None, epsilon)


def _deviation(x, gamma, epsilon):
    return x / (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt() * gamma


def _unit_length(x, gamma, epsilon):
    return x / ((x * x).sum(dim=-1, keepdim=True) + epsilon).sqrt() * gamma


def _norm_in_place(x, gamma, epsilon):
    x /= ((x * x).mean(dim=-1, keepdim=True) + epsilon).sqrt()
    return x * gamma


def angles(x, positions, base, over=2):
    """The angle of each position and pair; `over` is 2 where the exponent is 2j / d_head."""
    half = x.size(-1) // 2
    return positions[:, None] * base ** (-torch.arange(half) * over / x.size(-1))


def turned(x, angle, signs=(-1, 1)):
    """Rotate the pairs (j, j + d_head / 2); the signs are those of the two sines."""
    (a, b), (cos, sin) = x.chunk(2, dim=-1), (angle.cos(), angle.sin())
    return torch.cat([a * cos + signs[0] * b * sin, b * cos + signs[1] * a * sin], dim=-1)


def _neighbors(x, positions, base):
    pairs = torch.cat([x[..., ::2], x[..., 1::2]], dim=-1)
    first, second = turned(pairs, angles(x, positions, base)).chunk(2, dim=-1)
    return torch.stack([first, second], dim=-1).flatten(-2)


def _added(x, positions, base):
    angle = angles(x, positions, base)
    return x + torch.cat([angle.sin(), angle.cos()], dim=-1)


def gated(x, W_gate, W_up, W_down, activation=F.silu):
    """A gated feed-forward network with a place for another activation."""
    return (activation(x @ W_gate) * (x @ W_up)) @ W_down


MODERN_MISTAKES = {
    "rms_norm": (
        Mistake(
            "subtracting the mean",
            "That is LayerNorm without beta. RMSNorm leaves the mean in, which is what saves it "
            "one pass over the numbers. What do you square, x or its distance from the mean?",
            _mean_subtracted,
        ),
        Mistake(
            "dividing by the standard deviation",
            "The deviation is measured from the mean, the root mean square from zero. They agree "
            "only where the mean is 0. `x.var` subtracts the mean; `(x * x).mean` does not.",
            _deviation,
        ),
        Mistake(
            "the sum of the squares instead of their mean",
            "Each token then gets length 1, and its numbers shrink as d_model grows. With the mean "
            "a typical number stays near 1 at any width.",
            _unit_length,
        ),
        Mistake(
            "epsilon outside the root",
            "Added to the root, epsilon is compared with the size of a number; added inside, with "
            "its square. Loaded weights expect the second. Where does the bracket close?",
            lambda x, gamma, e: x / ((x * x).mean(-1, keepdim=True).sqrt() + e) * gamma,
        ),
        Mistake(
            "a mean over the tokens",
            "One token's output now depends on the others, so what comes later changes what came "
            "before. Each token is measured by its own numbers: which axis are they?",
            lambda x, gamma, e: rms(x, gamma, e, axes=-2),
        ),
        Mistake(
            "one mean over everything",
            "Without an axis `mean` runs over batch and tokens too, and a sentence's output "
            "depends on its neighbors in the batch. Say `dim=-1, keepdim=True`.",
            lambda x, gamma, e: rms(x, gamma, e, axes=(0, 1, 2)),
        ),
        Mistake(
            "a norm without gamma",
            "Every dimension then leaves with the same size, and the model cannot make one count "
            "more than another. Multiply by gamma at the end.",
            lambda x, gamma, e: rms(x, torch.ones_like(gamma), e),
        ),
        Mistake(
            "the mean square without its root",
            "Dividing by the square overshoots: large tokens come out smaller than small ones. "
            "Squares are taken back by a root.",
            lambda x, gamma, e: x / ((x * x).mean(-1, keepdim=True) + e) * gamma,
        ),
        Mistake(
            "a factor of 1 + gamma",
            "Gemma stores gamma that way, counted from 1. Here gamma itself is the factor, as in "
            "Llama and `nn.RMSNorm`.",
            lambda x, gamma, e: rms(x, 1 + gamma, e),
        ),
        Mistake(
            "dividing x in place",
            "The output is right, but `x /= ...` changes the caller's tensor, and that is the "
            "residual path. Write `x = x / ...`, which makes a new one.",
            _norm_in_place,
        ),
    ),
    "apply_rotary": (
        Mistake(
            "pairing neighbors",
            "The paper on rotary positions pairs numbers 2j and 2j + 1, as you do. Llama's code, "
            "and this course, pair j with j + d_head / 2. Either works if queries and keys agree, "
            "but weights trained for one fail with the other.",
            _neighbors,
        ),
        Mistake(
            "a turn in the other direction",
            "Your sines have each other's sign. Distances come out right, their sign does not, so "
            "loaded weights take left for right. Which of the two sums has the minus?",
            lambda x, p, base=10000.0: turned(x, -angles(x, p, base)),
        ),
        Mistake(
            "two plus signs",
            "(a cos + b sin, b cos + a sin) is no rotation: lengths change, and the product of a "
            "query and a key depends on more than their distance. One of the sines is subtracted.",
            lambda x, p, base=10000.0: turned(x, angles(x, p, base), (1, 1)),
        ),
        Mistake(
            "positions counted from 0 whatever was asked",
            "The argument `positions` is not used. With a cache the new token comes alone, and it "
            "stands at the end of the text, not at 0.",
            lambda x, p, base=10000.0: turned(x, angles(x, torch.arange(x.size(-2)), base)),
        ),
        Mistake(
            "half of the exponent",
            "The exponent is 2j / d_head and runs from 0 to nearly 1. Yours is j / d_head and ends "
            "at one half, so the slowest pair turns 100 times too fast. The pairs are d_head / 2: "
            "divide j by that.",
            lambda x, p, base=10000.0: turned(x, angles(x, p, base, over=1)),
        ),
        Mistake(
            "a base of 10,000 whatever was asked",
            "The argument `base` is not used. Models for long texts raise it (Llama 3: 500,000), "
            "so that the slow pairs do not come round.",
            lambda x, p, base=10000.0: turned(x, angles(x, p, 10000.0)),
        ),
        Mistake(
            "adding the sines instead of turning",
            "That is the encoding of 2017, added to each vector. Here nothing is added: each pair "
            "is turned, and its length stays.",
            _added,
        ),
        Mistake(
            "the two halves in each other's place",
            "The pairs are turned rightly and put back the wrong way round. `torch.cat` takes the "
            "first half first.",
            lambda x, p, base=10000.0: turned(x, angles(x, p, base)).roll(x.size(-1) // 2, -1),
        ),
    ),
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
