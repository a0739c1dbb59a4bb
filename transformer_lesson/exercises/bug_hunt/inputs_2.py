"""Lesson 14, second part: what the functions under repair are called with."""

import torch
from torch import Tensor, nn

from transformer_lesson.exercises.specification import Draw


class FixedDropout(nn.Module):
    """A dropout that always zeroes the same numbers, and none in evaluation."""

    def __init__(self, keep: Tensor):
        super().__init__()
        self.keep = keep

    def forward(self, x: Tensor) -> Tensor:
        """Return x, thinned out in training."""
        return x * self.keep * 2 if self.training else x

    def __repr__(self) -> str:
        return "dropout"


class Norm(nn.Module):
    """A layer norm, with a trained scale or without."""

    def __init__(self, gamma: Tensor | None = None):
        super().__init__()
        self.weight = None if gamma is None else nn.Parameter(gamma)

    def forward(self, x: Tensor) -> Tensor:
        """Return x, each token normalized by its own mean and deviation."""
        x = x - x.mean(dim=-1, keepdim=True)
        x = x / (x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()
        return x if self.weight is None else x * self.weight.to(x.dtype)


class Block(nn.Module):
    """The end of a sub-layer: a dropout and a norm that belong to the model."""

    def __init__(self, dropout: nn.Module, norm: nn.Module):
        super().__init__()
        self.dropout, self.norm = dropout, norm

    def __repr__(self) -> str:
        return f"a block with .dropout and .norm, in {'train' if self.training else 'eval'} mode"


class Sublayer:
    """A matrix product, bent: stands for attention or feed-forward."""

    def __init__(self, W: Tensor):
        self.W = W

    def __call__(self, x: Tensor) -> Tensor:
        """Return one vector per token."""
        return (x @ self.W.to(x.dtype)).tanh()

    def __repr__(self) -> str:
        return "tanh of a matrix product"


class Listing(nn.Module):
    """A small model with the parts of the printed one."""

    def __init__(self, draw: Draw):
        super().__init__()
        table, W = draw.normal("vocab_size d_model"), draw.normal("d_model vocab_size")
        self.embedding = lambda ids: table[ids]
        self.layers = [Sublayer(draw.normal("d_model d_model")) for _ in range(2)]
        self.out = lambda x: x @ W.to(x.dtype)

    def __repr__(self) -> str:
        return "a model with .embedding, .layers and .out"


class Follower:
    """A tiny language model: what has been read so far chooses a row of logits."""

    def __init__(self, table: Tensor, eos_id: int = -1, at: int = 0):
        self.table, self.eos_id, self.at = table, eos_id, at

    def __call__(self, ids: list[int] | Tensor) -> Tensor:
        """Return logits, shape (vocab_size,) for a list of ids, (batch, vocab_size) for a batch."""
        ids = torch.as_tensor(ids)
        logits = self.table[ids.sum(dim=-1) % len(self.table)].clone()
        if self.eos_id >= 0:
            logits[..., self.eos_id] = 9.0 if ids.size(-1) >= self.at else -9.0
        return logits

    def __repr__(self) -> str:
        end = f", <eos> likeliest from {self.at} ids on" if self.eos_id >= 0 else ""
        return f"row sum(ids) % {len(self.table)} of a table{end}"


def _square(draw: Draw) -> Tensor:
    return draw.normal("d_model d_model") / draw.size("d_model") ** 0.5


def _keep(draw: Draw) -> Tensor:
    keep = draw.booleans("batch n d_model")
    keep[..., 0], keep[..., -1] = False, True  # every token loses a number and keeps one
    return keep


def add_inputs(draw: Draw) -> tuple:
    """A token's vectors, a sub-layer, a dropout in training, a norm without scale."""
    draw.size("d_model", at_least=3)
    x = draw.normal("batch n d_model")
    return x, Sublayer(_square(draw)), FixedDropout(_keep(draw)), Norm()


def close_inputs(draw: Draw) -> tuple:
    """Input and output of a sub-layer, and the block's end in either mode."""
    draw.size("d_model", at_least=3)
    x, branch = draw.normal("batch n d_model"), draw.normal("batch n d_model")
    block = Block(FixedDropout(_keep(draw)), Norm(draw.positive("d_model")))
    torch.manual_seed(draw.number)  # an answer that draws at random stays comparable
    return x, branch, block.train(draw.number % 2 == 1)


def last_inputs(draw: Draw) -> tuple:
    """A decoder's output and the projection."""
    x = draw.normal("batch n d_model")
    return x, draw.normal("d_model vocab_size"), draw.normal("vocab_size")


def target_inputs(draw: Draw) -> tuple:
    """Labels, how many classes there are, the smoothing."""
    n_classes = draw.size("n_classes", at_least=3)
    return draw.integers("n", 0, n_classes), n_classes, (0.1, 0.3, 0.0, 0.2, 0.1)[draw.number]


def loss_inputs(draw: Draw) -> tuple:
    """Logits and labels."""
    logits = 2 * draw.normal("batch n vocab_size")
    return logits, draw.integers("batch n", 0, draw.size("vocab_size"))


def text_inputs(draw: Draw) -> tuple:
    """A model, a prompt with or without `<eos>` in it, and room that may end first."""
    draw.size("vocab_size", at_least=5)
    eos_id = (1, 3, 0, 2, 1)[draw.number]
    prompt = draw.integers("n", 0, draw.size("vocab_size")).tolist()
    prompt = [4 if id_ == eos_id else id_ for id_ in prompt]
    if draw.number in (1, 3):
        prompt = [eos_id, *prompt] if draw.number == 1 else [*prompt, eos_id]
    new = 2 + draw.size("new")
    model = Follower(draw.normal("row vocab_size"), eos_id, len(prompt) + new - 1)
    return model, prompt, eos_id, new + (2, 3, -1, 4, 0)[draw.number]


def word_inputs(draw: Draw) -> tuple:
    """Words, a vocabulary that lacks some, the id for those."""
    texts = (
        "today the unicorn sees the cat .",
        "the dog sees the cat .",
        "hello unicorn",
        "restart the unbelievable kernel and the unicorn",
        "goodbye",
    )
    known = ["hello", "the", "cat", "sees", "today", ".", "kernel", "restart"]
    first = 0 if draw.number % 2 == 0 else 5
    return texts[draw.number].split(), {w: first + i for i, w in enumerate(known)}, 20 + draw.number


def fill_inputs(draw: Draw) -> tuple:
    """A model, one text or several, and how long they shall be."""
    if draw.number == 0:
        draw.sizes["batch"] = 1
    n = draw.size("n", at_least=3)
    start = draw.integers("batch n", 0, draw.size("vocab_size"))
    length = n + (15, 14, 16, 0, 12)[draw.number]
    if length > n:
        draw.sizes["length"] = length
    return Follower(draw.normal("row vocab_size")), start, length


def width_inputs(draw: Draw) -> tuple:
    """Vectors and a table of another width."""
    draw.size("n_positions", at_least=2)
    return draw.normal("batch n width"), draw.positive("n_positions d_model")


def listing_inputs(draw: Draw) -> tuple:
    """A model and ids."""
    return Listing(draw), draw.integers("batch n", 0, draw.size("vocab_size"))


def heads_inputs(draw: Draw) -> tuple:
    """The heads of GPT-2 medium, small, large and XL, and of one that there is not."""
    return ((16, 12, 20, 25, 8)[draw.number],)
