"""Changes since Llama, one at a time, applied from outside to the last model of `since_2017`.

None of them is a field of `ModelConfig`: each replaces a part of the model. All models start with
the same weights and read the same batches, seed by seed. `measure_variants` stores the results.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.caching import copied
from transformer_lesson.lessons.lesson_13 import since_2017
from transformer_lesson.lessons.lesson_13.since_2017 import BATCH_SIZE, LENGTH
from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.experts import route
from transformer_lesson.model.linear_attention import linear_attention
from transformer_lesson.model.masks import CAUSAL, Mask, window_mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text import WindowBatches
from transformer_lesson.text.batches import Batch
from transformer_lesson.training import learning_rate
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.interrupt import load_whole

WINDOW, CAP, N_EXPERTS = 16, 30.0, 8

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


def local_layer(model: DecoderOnlyTransformer, layer: int = 0) -> None:
    """Let one layer look back 16 characters only. (Gemma 2, 2024, in every other layer)"""

    def look_near(block: nn.Module, inputs: tuple) -> tuple:
        x, _, *rest = inputs
        return x, window_mask(x.size(1), WINDOW, x.device), *rest

    model.decoder[layer].register_forward_pre_hook(look_near)


class NormOfEachHead(nn.Module):
    """RMSNorm of each query or key, so that scores stay bounded."""

    def __init__(self, d_head: int):
        super().__init__()
        self.norm = nn.RMSNorm(d_head, eps=1e-6)

    def forward(self, x: Float[Tensor, "batch n all_heads"]) -> Float[Tensor, "batch n all_heads"]:
        """Normalize x along d_head."""
        return self.norm(x.unflatten(-1, (-1, self.norm.normalized_shape[0]))).flatten(-2)


def qk_norm(model: DecoderOnlyTransformer) -> None:
    """Normalize queries and keys before the rotation. (Qwen3 and OLMo 2, 2024 and 2025)"""
    for block in model.decoder:
        attention, d_head = block.self_attention, model.config.d_head
        attention.W_Q = nn.Sequential(attention.W_Q, NormOfEachHead(d_head))
        attention.W_K = nn.Sequential(attention.W_K, NormOfEachHead(d_head))


class SoftCap(nn.Module):
    """c tanh(x / c): close to x for small x, and never beyond c."""

    def forward(self, x: Tensor) -> Tensor:
        """Keep x between -CAP and CAP."""
        return CAP * torch.tanh(x / CAP)


def logit_cap(model: DecoderOnlyTransformer) -> None:
    """Keep all logits between -30 and 30. (Gemma 2, 2024)"""
    model.projection = nn.Sequential(model.projection, SoftCap())


def norm_after(x: Tensor, sublayer: Callable, norm: Callable) -> Tensor:
    """OLMo 2: x + norm(sublayer(x)). Only what is added to the stream is normalized."""
    return x + norm(sublayer(x))


def norms_around(x: Tensor, sublayer: Callable, norm: nn.ModuleList) -> Tensor:
    """Gemma 2 and 3: x + norm(sublayer(norm(x))), with two norms."""
    before, after = norm
    return x + after(sublayer(before(x)))


def norm_on_output(model: DecoderOnlyTransformer) -> None:
    """Put the norm after each sub-layer, within the branch. (OLMo 2, 2024)"""
    for block in model.decoder:
        block.branch = norm_after


def sandwich(model: DecoderOnlyTransformer) -> None:
    """Put a norm before and after each sub-layer. (Gemma 2, 2024)"""
    for block in model.decoder:
        block.branch = norms_around
        for name in ("norm_1", "norm_2"):
            one, other = getattr(block, name), nn.RMSNorm(model.config.d_model, eps=1e-5)
            setattr(block, name, nn.ModuleList([one, other]))


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

    def _attend(self, Q: Tensor, K: Tensor, V: Tensor, mask: Mask) -> Tensor:
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
    "block 0 local": local_layer,
    "block 1 local": partial(local_layer, layer=1),
    "norm on output": norm_on_output,
    "sandwich": sandwich,
    "QK-norm": qk_norm,
    "logit cap": logit_cap,
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
        z_loss: weight of the squared logarithm of the softmax's sum.
        second: weight of a second prediction, of the character after the next one.
        base: of the rotary angles.
        max_len: the longest text that the model can read.
    """

    change: str = "nothing"
    steps: int = 150
    rate: float = 5e-3
    schedule: str = "cosine"
    muon: float | None = None
    balance: float = 0.01
    z_loss: float = 0.0
    second: float = 0.0
    base: float = 10000.0
    max_len: int = LENGTH


def build(recipe: Recipe, seed: int) -> DecoderOnlyTransformer:
    """Return the recipe's untrained model; parts it shares with others have equal weights."""
    config = list(since_2017.ladder().values())[-1]
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


def last_vectors(model: DecoderOnlyTransformer, ids: Tensor) -> Tensor:
    """Return the vectors that are projected to logits, (batch, n, d_model)."""
    x = model.embedding(ids)
    for block in model.decoder:
        x = block(x, CAUSAL)
    return model.decoder_norm(x)


def loss_of(
    model: DecoderOnlyTransformer, batch: Batch, recipe: Recipe, second: nn.Linear
) -> Tensor:
    """Return the recipe's objective: the next character's loss plus the recipe's extra terms."""
    (inputs,), labels = batch
    x = last_vectors(model, inputs)
    logits = model.projection(x)  # (batch, n, vocab_size)
    loss = F.cross_entropy(logits.mT, labels)
    loss = loss + recipe.z_loss * logits.logsumexp(-1).square().mean()
    if recipe.second:
        guesses = second(x[:, :-1])  # of the character after the next one
        loss = loss + recipe.second * F.cross_entropy(guesses.mT, labels[:, 1:])
    if "experts" in recipe.change:
        added = sum(block.feed_forward.balance_loss for block in model.decoder)
        loss = loss + recipe.balance * added
    return loss


def trained(recipe: Recipe, seed: int) -> DecoderOnlyTransformer:
    """Train the recipe's model on the batches of this seed, and return it."""
    model = build(recipe, seed)
    second = nn.Linear(model.config.d_model, model.config.vocab_size, bias=False)
    both = nn.ModuleList([model, second] if recipe.second else [model])
    steppers = [
        (optimizer, optimizer.param_groups[0]["lr"]) for optimizer in optimizers(both, recipe)
    ]
    batches = WindowBatches(since_2017.text().training, BATCH_SIZE, LENGTH, seed=seed)
    for step, batch in enumerate(islice(batches, recipe.steps), start=1):
        both.zero_grad()
        loss_of(model, batch, recipe, second).backward()
        nn.utils.clip_grad_norm_(both.parameters(), 1.0)
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


RECIPES: dict[str, Recipe] = (
    {change: Recipe(change) for change in ("nothing", "sinusoids", *list(CHANGES)[1:])}
    | {"8 experts, top 1, no balance loss": Recipe("8 experts, top 1", balance=0.0)}
    | {"z-loss": Recipe(z_loss=1e-4), "second prediction": Recipe(second=0.3)}
    | {f"AdamW {rate}": Recipe(rate=rate) for rate in (0.01, 0.02)}
    | {f"Muon {rate}": Recipe(muon=rate) for rate in (0.02, 0.05, 0.1)}
    | {
        f"{schedule}, 400 steps": Recipe(steps=400, schedule=schedule)
        for schedule in ("cosine", "wsd", "constant")
    }
)
"""What `measure_variants` trains, three seeds each."""


class Stored(NamedTuple):
    """One recipe's results: a validation loss per seed, and the experts' shares by layer."""

    losses: list[float]
    shares: list[list[float]]


@copied
def stored() -> dict[str, Stored]:
    """Return the stored results of `measure_variants` by recipe name.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return {
        name: Stored(*one)
        for name, one in read_stored(STORED, f"{__package__}.measure_variants").items()
    }
