"""Two ways to read a sequence, at the same size: step by step, or all places at once.

The task is the smallest in which distance matters: given random symbols, name an early one. The
answer needs one symbol, carried over the whole distance.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.training.interrupt import load_whole

SYMBOLS, WIDTH, LONGEST = 8, 64, 1024


class RecurrentReader(nn.Module):
    """A GRU that reads from the first symbol to the last and answers from its last state."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.reader = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.answer = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch symbol"]:
        """Return logits of the answer."""
        states, _ = self.reader(self.embedding(ids))  # (batch, n, WIDTH), one after the other
        return self.answer(states[:, -1])


class AttendingReader(nn.Module):
    """One attention layer and a feed-forward layer; it answers from the last place.

    The feed-forward layer makes it the size of the GRU.
    """

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.register_buffer("positions", sinusoidal_encoding(LONGEST, WIDTH), persistent=False)
        self.reader = MultiHeadAttention(WIDTH, n_heads=4, bias=False)
        self.think = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
        self.answer = nn.Linear(WIDTH, SYMBOLS)

    def forward(self, ids: Int[Tensor, "batch n"]) -> Float[Tensor, "batch symbol"]:
        """Return logits of the answer."""
        x = self.embedding(ids) + self.positions[: ids.size(1)]
        x = x + self.reader(x, x, x)  # (batch, n, WIDTH), all places at once
        return self.answer(x[:, -1] + self.think(x[:, -1]))


def accuracy_at(make: Callable[[], nn.Module], distance: int, steps: int = 300) -> float:
    """Train a reader from scratch and return how often it names the symbol `distance` steps back.

    Args:
        make: returns an untrained reader, for example `RecurrentReader`.
        distance: steps from the requested symbol to the last one.
        steps: of the training with Adam.

    Returns:
        The share of right answers on 1,000 new sequences; guessing gives 1 / SYMBOLS.

    Raises:
        ValueError: a distance that is not from 1 to LONGEST - 1.
    """
    if not 1 <= distance < LONGEST:
        raise ValueError(f"distance is {distance}: make it 1 to {LONGEST - 1}.")
    load_whole("torch._dynamo")  # otherwise loaded at an optimizer's first use
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # several are slower for so small a model
    try:
        return _trained_accuracy(make, distance, steps)
    finally:
        torch.set_num_threads(threads)


def _trained_accuracy(make, distance, steps) -> float:
    generator = torch.Generator().manual_seed(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        reader = make()
    optimizer = torch.optim.Adam(reader.parameters(), lr=3e-3)
    for _ in range(steps):
        ids = torch.randint(SYMBOLS, (32, distance + 1), generator=generator)
        loss = F.cross_entropy(reader(ids), ids[:, 0])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 1.0)
        optimizer.step()
    ids = torch.randint(SYMBOLS, (1000, distance + 1), generator=generator)
    with torch.no_grad():
        return (reader(ids).argmax(dim=-1) == ids[:, 0]).float().mean().item()
