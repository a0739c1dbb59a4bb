"""Mistakes in lesson 05: the norm, the feed-forward network, residual branches."""

import torch

from transformer_lesson.exercises.specification import Mistake


def norm_by_hand(x, gamma, beta, epsilon, axis=-1, correction=0, outside=False, power=0.5):
    """Layer norm from means and variances, with places for a bug."""
    mean = x.mean(axis, keepdim=True)
    variance = x.var(axis, keepdim=True, correction=correction)
    spread = variance**power + epsilon if outside else (variance + epsilon) ** power
    return (x - mean) / spread * gamma + beta


def _norm_in_place(x, gamma, beta, epsilon):
    x -= x.mean(dim=-1, keepdim=True)
    return x / (x.square().mean(dim=-1, keepdim=True) + epsilon).sqrt() * gamma + beta


def _no_mean(x, gamma, beta, epsilon):
    return x / (x.square().mean(dim=-1, keepdim=True) + epsilon).sqrt() * gamma + beta


def _beta_scaled(x, gamma, beta, epsilon):
    return (norm_by_hand(x, 1, 0, epsilon) + beta) * gamma


def two_maps(x, W_1, b_1, W_2, b_2, middle=torch.relu, end=lambda y: y):
    """The feed-forward network with places for other activations."""
    return end(middle(x @ W_1 + b_1) @ W_2 + b_2)


def _bias_after_activation(x, W_1, b_1, W_2, b_2):
    return ((x @ W_1).relu() + b_1) @ W_2 + b_2


def post(x, sublayer, norm):
    """The residual branch of 2017: the norm comes last."""
    return norm(x + sublayer(x))


def _post_in_place(x, sublayer, norm):
    x += sublayer(x)
    return norm(x)


def _pre_in_place(x, sublayer, norm):
    x += sublayer(norm(x))
    return x


BRANCH_MISTAKES = {
    "layer_norm": (
        Mistake(
            "epsilon outside the root",
            "Added to the deviation, 1e-5 protects less than its root, 0.003, would: where a "
            "token's numbers are all alike the gradient explodes, and loaded weights give other "
            "numbers. Add it to the variance, before you take the root.",
            lambda *inputs: norm_by_hand(*inputs, outside=True),
        ),
        Mistake(
            "the unbiased deviation",
            "`x.var()` and `x.std()` divide by d_model - 1 unless told otherwise, so your numbers "
            "come out slightly too small. The paper's norm divides by d_model: see the argument "
            "`correction`.",
            lambda *inputs: norm_by_hand(*inputs, correction=1),
        ),
        Mistake(
            "a norm over the tokens",
            "Each feature is compared with the same feature of the other tokens, so a token's "
            "vector depends on the length of the sentence, and a decoder sees the future. Which "
            "axis holds one token's own numbers?",
            lambda *inputs: norm_by_hand(*inputs, axis=1),
        ),
        Mistake(
            "a norm over tokens and features together",
            "One mean for a whole sentence lets each token depend on all others, padding and "
            "future included. Every token has a mean of its own: name one axis only.",
            lambda *inputs: norm_by_hand(*inputs, axis=(1, 2)),
        ),
        Mistake(
            "a norm over the batch",
            "This is batch norm: a sentence's output depends on which sentences happen to come "
            "with it. Layer norm looks at one token alone, whatever the batch.",
            lambda *inputs: norm_by_hand(*inputs, axis=(0, 1)),
        ),
        Mistake(
            "a norm without gamma",
            "Every feature is held at the same size, and the model cannot learn that one matters "
            "more. Multiply by `gamma` before you add `beta`.",
            lambda x, gamma, beta, epsilon: norm_by_hand(x, 1, beta, epsilon),
        ),
        Mistake(
            "beta multiplied by gamma",
            "You add `beta` too early, so `gamma` scales it too, and weights of a trained model "
            "give other numbers. First scale, then shift.",
            _beta_scaled,
        ),
        Mistake(
            "a norm that does not subtract the mean",
            "This is close to RMS norm, which newer models use (lesson 13). Layer norm first "
            "moves each token's mean to 0: subtract it above the fraction bar too.",
            _no_mean,
        ),
        Mistake(
            "dividing by the variance instead of its root",
            "Large vectors become small ones and small ones large, where all should get the size "
            "1. The variance is a square: what brings it back to the unit of `x`?",
            lambda *inputs: norm_by_hand(*inputs, power=1),
        ),
        Mistake(
            "a norm without epsilon",
            "Where all numbers of a token are equal, the variance is 0 and the division gives "
            "NaN, which spreads to every weight. Add `epsilon` to the variance.",
            lambda x, gamma, beta, epsilon: norm_by_hand(x, gamma, beta, 0.0),
        ),
        Mistake(
            "subtracting the mean in place",
            "The result is right, but `x -= mean` writes into the caller's tensor, and the "
            "residual path still needs it. Give the difference a name of its own.",
            _norm_in_place,
        ),
    ),
    "feed_forward": (
        Mistake(
            "two maps without an activation",
            "Two linear maps in a row are one linear map, so d_ff hidden numbers buy nothing. "
            "What stands between the two products in max(0, x W_1 + b_1) W_2 + b_2?",
            lambda *inputs: two_maps(*inputs, middle=lambda x: x),
        ),
        Mistake(
            "the activation at the end",
            "Between the maps it is missing, and after them it cuts off all negative numbers, so "
            "the block could only ever add to its input. Which of the two products does max(0, "
            "...) enclose?",
            lambda *inputs: two_maps(*inputs, middle=lambda x: x, end=torch.relu),
        ),
        Mistake(
            "a second activation",
            "ReLU at the end leaves no negative number, so the residual path can only grow. The "
            "second map is the last step: only the hidden numbers pass through max(0, ...).",
            lambda *inputs: two_maps(*inputs, end=torch.relu),
        ),
        Mistake(
            "the first bias after the activation",
            "The bias decides from where on a hidden number is switched on. Added afterwards, it "
            "moves no threshold: all thresholds are at 0. Where does b_1 stand in the formula's "
            "max?",
            _bias_after_activation,
        ),
        Mistake(
            "leaving out the first bias",
            "All hidden numbers then switch on at exactly 0, so x and 2x always switch on the "
            "same ones. Add `b_1` before the activation.",
            lambda x, W_1, b_1, W_2, b_2: two_maps(x, W_1, 0, W_2, b_2),
        ),
        Mistake(
            "leaving out the second bias",
            "A token whose hidden numbers are all 0 gets nothing added. The second map has a bias "
            "too: what stands at the end of the formula?",
            lambda x, W_1, b_1, W_2, b_2: two_maps(x, W_1, b_1, W_2, 0),
        ),
        Mistake(
            "a GELU in the place of ReLU",
            "Later models such as GPT-2 use it, and it works well, but the paper's formula is "
            "max(0, ...), which has a sharp bend at 0.",
            lambda *inputs: two_maps(*inputs, middle=torch.nn.functional.gelu),
        ),
        Mistake(
            "a residual connection inside the network",
            "The block around it adds x already, so x would count twice and grow from layer to "
            "layer. Return what the two maps give, nothing more.",
            lambda x, *weights: x + two_maps(x, *weights),
        ),
    ),
    "residual_branch": (
        Mistake(
            "pre-norm where post-norm is asked for",
            "Most models since GPT-2 do this and train more easily, but the 2017 paper, and "
            "weights trained by it, normalize the sum. The norm is the last thing that happens.",
            lambda x, f, norm: x + f(norm(x)),
        ),
        Mistake(
            "a branch without its residual",
            "Nothing carries x past the sub-layer, so gradients shrink from layer to layer, and a "
            "deep stack hardly learns. What is added to the sub-layer's output?",
            lambda x, f, norm: norm(f(x)),
        ),
        Mistake(
            "the norm before the sum",
            "You normalize the sub-layer's share alone, and the sum grows with every layer. In "
            "post-norm the brackets of the norm enclose the whole sum.",
            lambda x, f, norm: x + norm(f(x)),
        ),
        Mistake(
            "a branch without its norm",
            "The numbers grow with every layer, until softmax saturates and training breaks off. "
            "Which of the three arguments does your function never call?",
            lambda x, f, norm: x + f(x),
        ),
        Mistake(
            "adding to x in place",
            "The result is right, but `x += ...` changes the caller's tensor, and autograd may "
            "refuse it. Write the sum as a new value, `x + ...`.",
            _post_in_place,
        ),
    ),
    "residual_branch_pre": (
        Mistake(
            "post-norm where pre-norm is asked for",
            "Here the norm sits on the residual path, so gradients pass through it at every "
            "layer, and deep stacks need a warm-up. In pre-norm only the sub-layer's input is "
            "normalized.",
            post,
        ),
        Mistake(
            "a residual of the normalized x",
            "The path that should carry x untouched through all layers is normalized at each of "
            "them. Did you overwrite `x` with `norm(x)`? The sum needs the old one.",
            lambda x, f, norm: norm(x) + f(norm(x)),
        ),
        Mistake(
            "a branch without its norm",
            "The sub-layer reads numbers that grow from layer to layer, and softmax saturates. "
            "What should x pass through on its way into the sub-layer?",
            lambda x, f, norm: x + f(x),
        ),
        Mistake(
            "a branch without its residual",
            "Only the sub-layer's output goes on: what it does not pass on is lost, and so is the "
            "short way for gradients. What has to be added?",
            lambda x, f, norm: f(norm(x)),
        ),
        Mistake(
            "a norm behind the sub-layer",
            "The sub-layer reads raw x, and its share is normalized afterwards, so it can never "
            "be small. Pre-norm means: before the sub-layer.",
            lambda x, f, norm: x + norm(f(x)),
        ),
        Mistake(
            "adding to x in place",
            "The result is right, but `x += ...` writes into the caller's tensor, and every other "
            "reader of it gets the sum. Return a new value.",
            _pre_in_place,
        ),
    ),
}
