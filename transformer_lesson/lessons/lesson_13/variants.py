"""Changes to a small model, one at a time, each trained at several rates.

The steps of `since_2017.ladder` are configs. What came later is no field of `ModelConfig`: it
replaces a part of the ladder's last model from outside. All models read the same batches, seed by
seed. `measure_variants` stores the results.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.caching import copied
from transformer_lesson.lessons.lesson_13 import since_2017
from transformer_lesson.lessons.lesson_13.since_2017 import BATCH_SIZE, LAST, LENGTH, ladder
from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.experts import route
from transformer_lesson.model.linear_attention import linear_attention
from transformer_lesson.model.masks import Mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text import WindowBatches
from transformer_lesson.text.batches import Batch
from transformer_lesson.training import learning_rate
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.interrupt import load_whole

N_EXPERTS = 8
STORED = Path(__file__).with_name("variants.json")


class NoTurn(nn.Module):
    """Leaves queries and keys unchanged."""

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Return x."""
        return x


def no_positions(model: DecoderOnlyTransformer) -> None:
    """Rotate nothing: only the causal mask conveys order. (Kazemnejad et al., 2023)"""
    for block in model.decoder:
        block.self_attention.rotate = NoTurn()


class Experts(nn.Module):
    """Several gated networks; each token passes through k of them; see `route`."""

    def __init__(self, d_model: int, d_ff: int, k: int):
        super().__init__()
        self.k = k
        self.W_router = nn.Parameter(torch.randn(d_model, N_EXPERTS) / math.sqrt(d_model))
        self.W_gate, self.W_up = (uniform(N_EXPERTS, d_model, d_ff) for _ in range(2))
        self.W_down = uniform(N_EXPERTS, d_ff, d_model)

    def forward(self, x: Float[Tensor, "batch n d_model"]) -> Float[Tensor, "batch n d_model"]:
        """Send each token to its experts, and add what they return, weighted."""
        tokens = x.flatten(0, 1)  # (token, d_model)
        weights, self.balance_loss = route(tokens, self.W_router, self.k)  # (token, expert)
        self.share = (weights > 0).float().mean(0) / self.k  # (expert,)
        result = torch.zeros_like(tokens)
        for e in range(N_EXPERTS):
            mine = weights[:, e].nonzero()[:, 0]  # tokens sent to this expert
            h = tokens[mine]
            h = (F.silu(h @ self.W_gate[e]) * (h @ self.W_up[e])) @ self.W_down[e]
            result = result.index_add(0, mine, weights[mine, e, None] * h)
        return result.view_as(x)


def uniform(*shape: int) -> nn.Parameter:
    """Return random weights as large as those of `nn.Linear`."""
    limit = shape[-2] ** -0.5
    return nn.Parameter(torch.empty(shape).uniform_(-limit, limit))


def experts(model: DecoderOnlyTransformer, k: int = 1) -> None:
    """Replace each network by 8, of which a token uses k. (Mixtral, 2023)"""
    for block in model.decoder:
        block.feed_forward = Experts(model.config.d_model, model.config.d_ff // k, k)


class LinearAttention(MultiHeadAttention):
    """Heads without softmax; each head's output, which grows with the text, is normalized."""

    def attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask, start: int = 0) -> Tensor:
        """Return what each head adds up; positions don't matter to it."""
        groups = self.n_heads // self.n_kv_heads
        K, V = (x.repeat_interleave(groups, dim=1) for x in (K, V))
        return F.rms_norm(linear_attention(Q, K, V), V.shape[-1:])  # (batch, head, n, d_head)


def linear_layers(model: DecoderOnlyTransformer, layers: tuple[int, ...] = (0, 1)) -> None:
    """Let these layers attend without softmax. (RetNet, 2023)"""
    for layer in layers:
        model.decoder[layer].self_attention.__class__ = LinearAttention


CHANGES: dict[str, Callable[[DecoderOnlyTransformer], None]] = {
    "nothing": lambda model: None,
    "no positions": no_positions,
    "8 experts, top 1": experts,
    "8 experts, top 2": partial(experts, k=2),
    "linear attention": linear_layers,
    "hybrid: block 0 linear": partial(linear_layers, layers=(0,)),
}
"""Each changes an untrained model in place."""


class Recipe(NamedTuple):
    """How one model is built and trained.

    Args:
        change: one of `CHANGES`, or "sinusoids".
        steps, rate, schedule: of the training; "wsd" stays high, then falls in the last fifth.
        muon: its rate for the blocks' matrices, if Muon trains them; AdamW trains all else.
        balance: weight of the experts' balance loss.
        base: of the rotary angles.
        max_len: the longest text that the model can read.
        rung: the step of `since_2017.ladder` that is changed.
    """

    change: str = "nothing"
    steps: int = 150
    rate: float = 5e-3
    schedule: str = "cosine"
    muon: float | None = None
    balance: float = 0.01
    base: float = 10000.0
    max_len: int = LENGTH
    rung: str = LAST


def build(recipe: Recipe, seed: int) -> DecoderOnlyTransformer:
    """Return the recipe's untrained model; parts it shares with others have equal weights."""
    config = ladder()[recipe.rung]
    config = replace(config, max_len=recipe.max_len, rotary_base=recipe.base)
    torch.manual_seed(seed)
    if recipe.change == "sinusoids":
        return DecoderOnlyTransformer(replace(config, positions="sinusoidal"))
    model = DecoderOnlyTransformer(config)
    CHANGES[recipe.change](model)
    return model


def rate_at(step: int, recipe: Recipe) -> float:
    """Return this step's factor of the highest rate, from 0 to 1."""
    warmup, decay = 20, recipe.steps // 5
    if recipe.schedule == "wsd":  # warm-up, stable, decay (Hu et al., "MiniCPM", 2024)
        return min(1.0, step / warmup, (recipe.steps + 1 - step) / (decay + 1))
    config = TrainConfig(recipe.steps, 1.0, schedule=recipe.schedule, warmup_steps=warmup)
    return learning_rate(step, config, 0)


def optimizers(model: nn.Module, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Return AdamW for everything, or Muon for the blocks' matrices and AdamW for the rest."""
    load_whole("torch._dynamo")  # otherwise loaded at an optimizer's first use
    weights = dict(model.named_parameters())
    inner = [
        name for name, w in weights.items() if recipe.muon and "decoder." in name and w.dim() == 2
    ]
    rest = [w for name, w in weights.items() if name not in inner]
    groups = [
        {"params": [w for w in rest if w.dim() > 1], "weight_decay": 0.1},
        {"params": [w for w in rest if w.dim() < 2], "weight_decay": 0.0},
    ]
    adamw = torch.optim.AdamW(groups, lr=recipe.rate, betas=(0.9, 0.98), eps=1e-9, fused=True)
    if not inner:
        return [adamw]
    matrices = [weights[name] for name in inner]
    return [adamw, torch.optim.Muon(matrices, lr=recipe.muon, weight_decay=0.0)]


def loss_of(model: DecoderOnlyTransformer, batch: Batch, recipe: Recipe) -> Tensor:
    """Return the next character's loss, plus the experts' balance if there are any."""
    loss = F.cross_entropy(model(*batch.inputs).mT, batch.labels)
    if "experts" in recipe.change:
        added = sum(block.feed_forward.balance_loss for block in model.decoder)
        loss = loss + recipe.balance * added
    return loss


def trained(recipe: Recipe, seed: int) -> DecoderOnlyTransformer:
    """Train the recipe's model on the batches of this seed, and return it."""
    model = build(recipe, seed)
    steppers = [
        (optimizer, optimizer.param_groups[0]["lr"]) for optimizer in optimizers(model, recipe)
    ]
    batches = WindowBatches(since_2017.text().training, BATCH_SIZE, LENGTH, seed=seed)
    for step, batch in enumerate(islice(batches, recipe.steps), start=1):
        model.zero_grad()
        loss_of(model, batch, recipe).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer, highest in steppers:
            for group in optimizer.param_groups:
                group["lr"] = highest * rate_at(step, recipe)
            optimizer.step()
    return model.eval()


@torch.no_grad()
def validation_loss(model: DecoderOnlyTransformer) -> float:
    """Return the mean loss on the ladder's validation text, in nats per character."""
    losses = [
        F.cross_entropy(model(*batch.inputs).mT, batch.labels, reduction="sum")
        for batch in since_2017.text().validation
    ]
    return sum(losses).item() / since_2017.VALIDATED


RATES, MUON_RATES = (0.0025, 0.005, 0.01, 0.02), (0.02, 0.05, 0.1)
RECIPES: dict[str, Recipe] = (
    {rung: Recipe(rung=rung) for rung in ("2017", *(f"+ {name}" for name in since_2017.CHANGES))}
    | {change: Recipe(change) for change in list(CHANGES)[2:]}
    | {"8 experts, top 1, no balance loss": Recipe("8 experts, top 1", balance=0.0)}
    | {"Muon": Recipe(muon=0.05)}
    | {
        f"{schedule}, 400 steps": Recipe(steps=400, schedule=schedule)
        for schedule in ("cosine", "wsd", "constant")
    }
)
"""What `measure_variants` trains, at each of `rates_of`."""


def rates_of(name: str) -> tuple[float, ...]:
    """Return the rates at which a recipe is trained, so that its best one has neighbors.

    Experts without balance have one only: they show how tokens spread, not what it costs.
    """
    if name == "Muon":
        return MUON_RATES
    if "linear" in name:
        return (*RATES[1:], 0.04)
    if "no balance" in name:
        return RATES[1:2]
    return RATES if name in ladder() or "steps" in name else RATES[1:]


class Stored(NamedTuple):
    """One recipe's results.

    Args:
        losses: by rate, a validation loss per seed.
        shares: of each expert, by seed and layer, at a rate of 0.005; empty without experts.
    """

    losses: dict[float, list[float]]
    shares: list[list[list[float]]]

    def best_rate(self) -> float:
        """Return the rate of the lowest mean over the first three seeds."""
        return min(self.losses, key=lambda rate: fmean(self.losses[rate][:3]))

    def best(self) -> list[float]:
        """Return the losses at the best rate."""
        return self.losses[self.best_rate()]


@copied
def stored() -> dict[str, Stored]:
    """Return the stored results of `measure_variants` by recipe name.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return {
        name: Stored({float(rate): losses for rate, losses in by_rate.items()}, shares)
        for name, (by_rate, shares) in read_stored(
            STORED, f"{__package__}.measure_variants"
        ).items()
    }


@torch.no_grad()
def shares_of(model: DecoderOnlyTransformer) -> list[list[float]]:
    """Return the share of 4,096 characters that each expert gets, layer by layer; [] without."""
    model(*since_2017.text().validation[0].inputs)
    layers = [getattr(block.feed_forward, "share", None) for block in model.decoder]
    return [[round(x, 3) for x in share.tolist()] for share in layers if share is not None]


def differences(before: str, after: str) -> list[float]:
    """Return after minus before of each seed that both have, each recipe at its best rate."""
    runs = stored()
    return [new - old for old, new in zip(runs[before].best(), runs[after].best(), strict=False)]
