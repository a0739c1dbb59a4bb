"""Lesson 14, second part: half repairs and other bugs in blocks and in the loss."""

import torch
import torch.nn.functional as F
from torch import nn

from transformer_lesson.exercises.bug_hunt import bugs_2
from transformer_lesson.exercises.mistakes.bug_hunt_2_reading import BUG_HUNT_2_READING_MISTAKES
from transformer_lesson.exercises.mistakes.bug_hunt_2_text import BUG_HUNT_2_TEXT_MISTAKES
from transformer_lesson.exercises.specification import Mistake


def mixed(labels, n_classes, even, label):
    """Return targets: `even` for all classes, and `label` more at the label."""
    return torch.full((len(labels), n_classes), float(even)) + label * F.one_hot(labels, n_classes)


def label_written(labels, n_classes, smoothing):
    """Fill with the share of all, then write over the label instead of adding to it."""
    left = 1 - smoothing - smoothing / n_classes
    return mixed(labels, n_classes, smoothing / n_classes, left)


def all_positions(x, W, b):
    """The projection at every position."""
    return x @ W + b


def new_norm(x, branch, block):
    """The block's own dropout, but a norm that is made on the fly."""
    return nn.LayerNorm(x.size(-1))(x + block.dropout(branch))


def new_dropout(x, branch, block):
    """The block's own norm, but a dropout that is made on the fly."""
    return block.norm(x + nn.Dropout(0.3)(branch))


BUG_HUNT_2_MISTAKES = {
    "add_and_norm": (
        Mistake(
            "dropout after the norm",
            "It makes holes in what the next sub-layer and the residual path get, and undoes mean "
            "0 and deviation 1. Which tensor may lose numbers?",
            bugs_2.add_and_norm,
        ),
        Mistake(
            "dropout on the sum",
            "The norm comes last now, but `x` loses numbers too, and the residual path is there "
            "to carry it past the sub-layer whole. Only `sublayer(x)` goes through dropout.",
            lambda x, sublayer, dropout, norm: norm(dropout(x + sublayer(x))),
        ),
        Mistake(
            "dropout on the sub-layer's input",
            "The paper drops the sub-layer's output. Here the sub-layer reads a thinned-out `x`, "
            "and all that it adds survives.",
            lambda x, sublayer, dropout, norm: norm(x + sublayer(dropout(x))),
        ),
        Mistake(
            "a block without dropout",
            "It gives the right values in evaluation, and no regularization in training. "
            "`dropout` is an argument: where does it belong?",
            lambda x, sublayer, dropout, norm: norm(x + sublayer(x)),
        ),
        Mistake(
            "a missing residual",
            "`x` is not added: with a sub-layer that gives 0, nothing of the token is left.",
            lambda x, sublayer, dropout, norm: norm(dropout(sublayer(x))),
        ),
        Mistake(
            "a norm of the branch alone",
            "The norm stands before the sum, so the sum itself is not normalized. "
            "Post-norm means: add first, then normalize.",
            lambda x, sublayer, dropout, norm: x + norm(dropout(sublayer(x))),
        ),
        Mistake(
            "pre-norm",
            "`x + dropout(sublayer(norm(x)))` is today's practice and a good block. This one is "
            "the paper's, in which the norm comes last.",
            lambda x, sublayer, dropout, norm: x + dropout(sublayer(norm(x))),
        ),
    ),
    "close_branch": (
        Mistake(
            "a norm and a dropout made on the fly",
            "Both are new at every call: in training mode, with scale 1 and shift 0, known to no "
            "optimizer. The block has its own.",
            bugs_2.close_branch,
        ),
        Mistake(
            "a norm made on the fly",
            "The dropout is the block's now. The norm still is a new one, with scale 1 and shift "
            "0, whatever `block.norm` has learned.",
            new_norm,
        ),
        Mistake(
            "a dropout made on the fly",
            "The norm is the block's now. The dropout still is a new module, in training mode "
            "for ever: `block.eval()` does not reach it.",
            new_dropout,
        ),
        Mistake(
            "a missing dropout",
            "Nothing random is left in evaluation, but nothing is dropped in training either. "
            "`block.dropout` knows which mode it is in.",
            lambda x, branch, block: block.norm(x + branch),
        ),
        Mistake(
            "dropout on the sum",
            "`x` loses numbers too. Only the branch goes through dropout.",
            lambda x, branch, block: block.norm(block.dropout(x + branch)),
        ),
        Mistake(
            "dropout after the norm",
            "The modules are the right ones, their order is not: the norm comes last.",
            lambda x, branch, block: block.dropout(block.norm(x + branch)),
        ),
    ),
    "last_logits": (
        Mistake(
            "probabilities instead of logits",
            "Softmax has been done already. Whoever takes them for logits does it once more, and "
            "all tokens become nearly alike.",
            bugs_2.last_logits,
        ),
        Mistake(
            "log-probabilities",
            "`log_softmax` subtracts one number from the whole row. A later softmax undoes that, "
            "but the row is no longer what the projection gave.",
            lambda x, W, b: (x[:, -1] @ W + b).log_softmax(dim=-1),
        ),
        Mistake(
            "a softmax over the batch",
            "Now each token's numbers sum to 1 over the texts. Logits need no softmax at all.",
            lambda x, W, b: (x[:, -1] @ W + b).softmax(dim=0),
        ),
        Mistake(
            "the first position",
            "The first position has read the first token only. The next token of the text is "
            "predicted at its last one.",
            lambda x, W, b: x[:, 0] @ W + b,
        ),
        Mistake(
            "the logits of every position",
            "One row per text is wanted: the one at its last position, `x[:, -1]`.",
            all_positions,
        ),
        Mistake(
            "a forgotten bias",
            "Softmax is gone, and with it `b`: the projection is `x @ W + b`.",
            lambda x, W, b: x[:, -1] @ W,
        ),
    ),
    "smoothed_targets": (
        Mistake(
            "smoothing spread over the others only",
            "The label gets nothing of what is spread. PyTorch, and the paper that proposed "
            "smoothing, spread it over all classes, the label's own included.",
            bugs_2.smoothed_targets,
        ),
        Mistake(
            "a label that is written over",
            "All classes get `smoothing / n_classes`, but at the label that share is replaced by "
            "`1 - smoothing` instead of kept. The row sums to less than 1: add, with `+=`.",
            label_written,
        ),
        Mistake(
            "a label that gives nothing",
            "The smoothing is added to all classes and taken from none: the row sums to "
            "`1 + smoothing`.",
            lambda labels, n, smoothing: mixed(labels, n, smoothing / n, 1),
        ),
        Mistake(
            "one class too few for everyone",
            "`smoothing / (n_classes - 1)` was the share of the others. Now the label has its "
            "share too, so there are `n_classes` to share with.",
            lambda labels, n, smoothing: mixed(labels, n, smoothing / (n - 1), 1 - smoothing),
        ),
        Mistake(
            "no smoothing",
            "This is the plain target: all of it on the label.",
            lambda labels, n, smoothing: mixed(labels, n, 0, 1),
        ),
        Mistake(
            "smoothing and label changed round",
            "The label gets the share that was meant for spreading, and the classes the rest.",
            lambda labels, n, smoothing: mixed(labels, n, (1 - smoothing) / n, smoothing),
        ),
    ),
    "next_token_loss": (
        Mistake(
            "softmax before the loss",
            "`F.cross_entropy` does a softmax, so now there are two. The second one sees numbers "
            "between 0 and 1 and makes an almost even distribution of them.",
            bugs_2.next_token_loss,
        ),
        Mistake(
            "sigmoid before the loss",
            "Sigmoid squeezes the logits into 0 to 1 as well. `F.cross_entropy` wants them as "
            "the model gives them.",
            lambda logits, labels: F.cross_entropy(logits.sigmoid().mT, labels),
        ),
        Mistake(
            "a loss of probabilities without a logarithm",
            "`F.nll_loss` expects log-probabilities. On probabilities it gives minus their mean: "
            "a negative loss, whose best value is -1.",
            lambda logits, labels: F.nll_loss(logits.softmax(dim=-1).mT, labels),
        ),
        Mistake(
            "a loss of logits without a softmax",
            "`F.nll_loss` does no softmax: it picks the label's logit and turns its sign, and "
            "the other tokens do not count. `F.cross_entropy` does both steps.",
            lambda logits, labels: F.nll_loss(logits.mT, labels),
        ),
        Mistake(
            "a sum over the tokens",
            "The loss now grows with the size of the batch. The mean is wanted.",
            lambda logits, labels: F.cross_entropy(logits.mT, labels, reduction="sum"),
        ),
    ),
} | BUG_HUNT_2_TEXT_MISTAKES
BUG_HUNT_2_MISTAKES |= BUG_HUNT_2_READING_MISTAKES
