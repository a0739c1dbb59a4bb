"""Models of several sizes, each trained on several amounts of text: what does more of either give?

Just large enough to show both extremes: a model that has read too little to use its size, and a
text too large for a small model.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.gpt import GPTWeights, gpt_forward, gpt_weights_of
from transformer_lesson.model.parameters import count_parameters
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text.batches import windows
from transformer_lesson.training.interrupt import load_whole

Forward = Callable[[Tensor, GPTWeights], Tensor]
WINDOWS, LENGTH = 16, 64  # per batch; tokens per window
STORED = Path(__file__).with_name("size_and_text.json")


class Outcome(NamedTuple):
    """One model's result.

    Args:
        d_model: its width.
        n_parameters: its number of parameters.
        n_tokens: amount of training text.
        training, validation: mean loss in nats per token, on text it has and has not read.
    """

    d_model: int
    n_parameters: int
    n_tokens: int
    training: float
    validation: float


def build(
    vocab_size: int, d_model: int, max_len: int = LENGTH, seed: int = 0
) -> DecoderOnlyTransformer:
    """Return an untrained model of two blocks that `gpt_forward` can run."""
    torch.manual_seed(seed)
    sizes = {"d_model": d_model, "n_heads": 4, "n_layers": 2, "d_ff": 4 * d_model}
    options = {"bias": False, "dropout": 0.0, "tie_embeddings": False, "max_len": max_len}
    return DecoderOnlyTransformer(ModelConfig(vocab_size=vocab_size, **sizes, **options))


def batches(ids: Tensor, steps: int, seed: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield, for each step, inputs and labels from random windows of a text."""
    generator = torch.Generator().manual_seed(seed)
    for _ in range(steps):
        starts = torch.randint(len(ids) - LENGTH, (WINDOWS,), generator=generator)
        yield windows(ids, LENGTH, starts.tolist())


def loss_on(ids: Tensor, weights: GPTWeights, forward: Forward = gpt_forward) -> float:
    """Return the mean loss over consecutive windows, leaving out the remainder of the text."""
    starts = list(range(0, len(ids) - LENGTH, LENGTH))
    inputs, labels = windows(ids, LENGTH, starts)
    with torch.no_grad():
        losses = [
            F.cross_entropy(forward(x, weights).mT, y)
            for x, y in zip(inputs.chunk(len(starts)), labels.chunk(len(starts)), strict=True)
        ]
    return torch.stack(losses).mean().item()


def train(model: DecoderOnlyTransformer, ids: Tensor, steps: int) -> None:
    """Train a model on a text, like the lesson's loop."""
    load_whole("torch._dynamo")  # for torch.optim; an interrupt could leave half of it
    weights = gpt_weights_of(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.98), weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 20, 1 - step / steps)
    )
    for inputs, labels in batches(ids, steps):
        loss = F.cross_entropy(gpt_forward(inputs, weights).mT, labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()


def size_and_text(
    ids: Tensor,
    unseen: Tensor,
    vocab_size: int,
    widths: Sequence[int] = (8, 24, 64),
    amounts: Sequence[int] = (4_000, 24_000, 140_000),
    steps: int = 200,
) -> list[Outcome]:
    """Train each width on each amount of text, for the same number of steps.

    Args:
        ids: the training text, of which the first tokens are used.
        unseen: the text to measure on.
        vocab_size: of the tokenizer.
        widths: values of d_model, multiples of 4.
        amounts: numbers of tokens.
        steps: with 1,024 tokens each.
    """
    outcomes = []
    for amount in amounts:
        for d_model in widths:
            model, text = build(vocab_size, d_model), ids[:amount]
            train(model, text, steps)
            weights = gpt_weights_of(model)
            losses = loss_on(text[:4_000], weights), loss_on(unseen, weights)
            outcomes.append(Outcome(d_model, count_parameters(model), len(text), *losses))
    return outcomes


def stored() -> list[Outcome]:
    """Return the results of models of six widths, three of them with three amounts of text.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(
        STORED,
        f"{__package__}.measure_size_and_text",
        make=lambda rows: [Outcome(*row) for row in rows],
    )
