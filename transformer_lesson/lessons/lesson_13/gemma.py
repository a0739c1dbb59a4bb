"""What Gemma 3 270M relies on: its loss on six texts, with one part changed.

A part that is taken out of a trained model shows what this model relies on. It doesn't show what
the part is worth in training: a model that had been trained without it would have learned to do
without. `measure_gemma` stores what is measured here.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_lesson.caching import copied
from transformer_lesson.interpretability.head_scores import induction_score
from transformer_lesson.intervals import student
from transformer_lesson.model.feed_forward import ACTIVATIONS
from transformer_lesson.model.hooks import record
from transformer_lesson.model.masks import causal_mask, sink_mask
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text.tokenizers import Tokenizer

STORED = Path(__file__).with_name("gemma.json")
RUN, SHORT, TOKENS, WINDOW = 64, 256, 768, 512
STEP = 4  # every fourth token counts: its logits cost more than 18 blocks do
AS_IT_IS = "as it is"
PERIOD, COPIES = 32, 8
Change = Callable[[DecoderOnlyTransformer], Any]


@contextmanager
def put(*changes: tuple[Any, str, Any]) -> Iterator[None]:
    """Put other values in place, (object, name, value) each; at the end the old ones."""
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    try:
        for owner, name, value in changes:
            setattr(owner, name, value)
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


@contextmanager
def windows(
    model: DecoderOnlyTransformer,
    near: int | None,
    far: int | None,
    near_sinks: int = 0,
    far_sinks: int = 0,
) -> Iterator[None]:
    """Give blocks other windows inside the `with` block; `None` lets them see everything.

    Args:
        model: of Gemma's kind.
        near, far: for blocks that have a window, and for those that see everything.
        near_sinks, far_sinks: so many tokens at the beginning stay visible in these blocks.
    """

    def exchange(window: int | None, sinks: int, _: nn.Module, inputs: tuple) -> tuple:
        x, _, *rest = inputs
        n = x.size(1)
        mask = causal_mask(n) if window is None else sink_mask(n, window, sinks)
        return x, mask, *rest

    with ExitStack() as stack:
        for block, local in zip(model.decoder, model.config.windows, strict=True):
            limits = (near, near_sinks) if local else (far, far_sinks)
            hook = partial(exchange, *limits)
            stack.callback(block.register_forward_pre_hook(hook).remove)
        yield


@contextmanager
def narrowed(
    model: DecoderOnlyTransformer, layers: tuple[int, ...], window: int, sinks: int = 0
) -> Iterator[None]:
    """Give some blocks a window, and leave the others as they are.

    Args:
        model: of Gemma's kind.
        layers: the blocks.
        window: how many tokens these see, their own included.
        sinks: so many tokens at the beginning stay visible, too.
    """

    def exchange(_: nn.Module, inputs: tuple) -> tuple:
        x, _, *rest = inputs
        return x, sink_mask(x.size(1), window, sinks), *rest

    with ExitStack() as stack:
        for i in layers:
            stack.callback(model.decoder[i].register_forward_pre_hook(exchange).remove)
        yield


def same(x: Tensor, *_: Any) -> Tensor:
    """Return x: what a part does that is left out."""
    return x


def turned_by(model: DecoderOnlyTransformer, near: Any, far: Any) -> Any:
    """Turn queries and keys otherwise: functions in place of the two rotations."""
    rotates = [block.self_attention.rotate for block in model.decoder]
    first_far = model.config.windows.index(None)
    return put((rotates[0], "forward", near), (rotates[first_far], "forward", far))


def near_and_far(model: DecoderOnlyTransformer) -> tuple[Any, Any]:
    """Return the rotation of blocks with a window, and of those that see everything."""
    rotates = [block.self_attention.rotate for block in model.decoder]
    return rotates[0].forward, rotates[model.config.windows.index(None)].forward


def qk_norms(model: DecoderOnlyTransformer) -> list[nn.Module]:
    """Return the norms of queries and of keys."""
    pairs = [(b.self_attention.norm_Q, b.self_attention.norm_K) for b in model.decoder]
    return [norm for pair in pairs for norm in pair]


def post_norms(model: DecoderOnlyTransformer) -> list[nn.Module]:
    """Return the norms behind the sub-layers."""
    return [norm for b in model.decoder for norm in (b.norm_1[1], b.norm_2[1])]


def constant(
    model: DecoderOnlyTransformer, norms: list[nn.Module], ids: Tensor, apart: bool = False
) -> Any:
    """Let norms divide by one number each: the mean size of what they get on another text.

    It is the control of leaving a norm out, which also changes how large everything is.

    Args:
        model: of Gemma's kind.
        norms: of this model.
        ids: the other text.
        apart: the first token, `<bos>`, has a number of its own, which no other token changes.
    """
    sizes: dict[nn.Module, tuple[Tensor, Tensor]] = {}  # of the first token, of the others

    def measure(norm: nn.Module, inputs: tuple) -> None:
        size = inputs[0].square().mean(-1).sqrt()  # (..., n)
        sizes[norm] = (
            (size[..., 0].mean(), size[..., 1:].mean()) if apart else (size.mean(), size.mean())
        )

    with ExitStack() as stack:
        for norm in norms:
            stack.callback(norm.register_forward_pre_hook(measure).remove)
        model(ids, last_only=True)

    def divided(norm: nn.Module, x: Tensor) -> Tensor:
        first, rest = sizes[norm]
        return torch.cat([x[..., :1, :] / first, x[..., 1:, :] / rest], dim=-2) * norm.weight

    return put(*((norm, "forward", partial(divided, norm)) for norm in norms))


def conditions(
    model: DecoderOnlyTransformer, other: Int[Tensor, "1 n"]
) -> dict[str, Callable[[], Any]]:
    """Return what is changed, by its name; `other` is a text to measure sizes on."""
    near, far = near_and_far(model)
    gates = [block.feed_forward for block in model.decoder]
    return {
        AS_IT_IS: ExitStack,
        "no window": lambda: windows(model, None, None),
        "all local": lambda: windows(model, WINDOW, WINDOW),
        "all local, <bos> visible": lambda: windows(model, WINDOW, WINDOW, 1, 1),
        "all local, far see <bos>": lambda: windows(model, WINDOW, WINDOW, 0, 1),
        "far blocks: the near base": lambda: turned_by(model, near, near),
        "far blocks: no positions": lambda: turned_by(model, near, same),
        "QK-norm: out": lambda: put(*((n, "forward", same) for n in qk_norms(model))),
        "QK-norm: a constant": lambda: constant(model, qk_norms(model), other),
        "QK-norm: <bos> apart": lambda: constant(model, qk_norms(model), other, apart=True),
        "norms behind: out": lambda: put(*((n, "forward", same) for n in post_norms(model))),
        "norms behind: a constant": lambda: constant(model, post_norms(model), other),
        "norms behind: <bos> apart": lambda: constant(model, post_norms(model), other, apart=True),
        "gate: swish": lambda: put(*((g, "gate", ACTIVATIONS["swish"]) for g in gates)),
        "gate: exact GELU": lambda: put(*((g, "gate", ACTIVATIONS["gelu"]) for g in gates)),
    }


@torch.no_grad()
def losses(
    model: DecoderOnlyTransformer, ids: Int[Tensor, "1 n"], first: int = STEP
) -> Float[Tensor, " labels"]:
    """Return the loss at every fourth token, in nats.

    Logits of 262,144 tokens take a megabyte for each place, so they are made a run at a time.

    Args:
        model: the one that reads.
        ids: what it reads.
        first: index of the first token that counts; the others follow in steps of four.
    """
    streams = []
    hook = model.decoder[-1].register_forward_hook(lambda *_: streams.append(_[2]))
    try:
        model(ids[:, :-1], last_only=True)
    finally:
        hook.remove()
    x, labels = streams[0][0, first - 1 :: STEP], ids[0, first::STEP]
    pairs = zip(x.split(RUN), labels.split(RUN), strict=True)
    parts = [F.cross_entropy(model.read_out(x), y, reduction="none") for x, y in pairs]
    return torch.cat(parts)


def ids_of(tokenizer: Tokenizer, text: str) -> Int[Tensor, "1 n"]:
    """Return `<bos>` and the first 768 tokens of a text."""
    return torch.tensor([tokenizer.start(text)[: TOKENS + 1]])


def by_run(token_losses: Float[Tensor, " labels"]) -> list[float]:
    """Return the mean loss of each run of 64 tokens."""
    return [round(x.item(), 4) for x in token_losses.unflatten(0, (-1, RUN // STEP)).mean(1)]


def repeated() -> Int[Tensor, "text n"]:
    """Return `<bos>` and 32 random tokens, twice: only copying helps with the second time."""
    generator = torch.Generator().manual_seed(13)
    ids = torch.randint(1000, 100_000, (COPIES, PERIOD), generator=generator)
    return torch.cat([torch.full((COPIES, 1), 2), ids, ids], dim=1)


@torch.no_grad()
def copying(model: DecoderOnlyTransformer, ids: Int[Tensor, "text n"]) -> Float[Tensor, " text"]:
    """Return each text's mean loss over the second time, but its first token."""
    logits = torch.cat([model(text[None, :-1])[:, PERIOD + 1 :] for text in ids])
    labels = ids[:, PERIOD + 2 :]
    return F.cross_entropy(logits.mT, labels, reduction="none").mean(1)


@torch.no_grad()
def head_scores(
    model: DecoderOnlyTransformer, ids: Int[Tensor, "text n"]
) -> Float[Tensor, "layer head"]:
    """Return each head's induction score, without `<bos>`."""
    with record(model) as run:
        model(ids[:, :-1], last_only=True)
    layers = range(model.config.n_layers)
    tables = [run[f"decoder.{i}.self_attention.weights"][..., 1:, 1:] for i in layers]
    return torch.stack([induction_score(weights, PERIOD) for weights in tables])


@torch.no_grad()
def head_means(
    model: DecoderOnlyTransformer, ids: Int[Tensor, "1 n"]
) -> Float[Tensor, "layer head d_head"]:
    """Return what each head gives on average over a text, without `<bos>`."""
    with record(model) as run:
        model(ids, last_only=True)
    layers = range(model.config.n_layers)
    return torch.stack([run[f"decoder.{i}.self_attention.heads"][0, :, 1:].mean(1) for i in layers])


@contextmanager
def without_heads(
    model: DecoderOnlyTransformer,
    heads: list[tuple[int, int]],
    means: Float[Tensor, "layer head d_head"] | None = None,
) -> Iterator[None]:
    """Let some heads, (block, head) each, give nothing, or their mean to every token."""

    def replaced(block: int, x: Tensor) -> Tensor:
        """Return what a block's heads give, (1, head, n, d_head), with some of them replaced."""
        x = x.clone()
        for i, head in heads:
            if i == block:
                x[:, head] = 0 if means is None else means[block, head]
        return x

    blocks = {block for block, _ in heads}
    with record(model, {f"decoder.{i}.self_attention.heads": partial(replaced, i) for i in blocks}):
        yield


class Opened(NamedTuple):
    """What was measured.

    Args:
        losses: change to each text's mean loss in each run of 64 tokens; where a change needs no
            distance, only in the first four.
        scores: each head's induction score, by block.
        copies: change to the loss of each repeated text, the second time.
        without: two heads that are taken out, to the loss in the first four runs of a text.
    """

    losses: dict[str, list[list[float]]]
    scores: list[list[float]]
    copies: dict[str, list[float]]
    without: dict[str, float]

    def rises(self, change: str) -> list[list[float]]:
        """Return how much higher each text's loss is than as it is, by run."""
        pairs = zip(self.losses[change], self.losses[AS_IT_IS], strict=True)
        return [[x - y for x, y in zip(changed, before, strict=False)] for changed, before in pairs]

    def rise(self, change: str, first: int = 0, end: int = TOKENS) -> tuple[float, float, float]:
        """Return how much higher the loss is than as it is, and a 95 % interval, over texts.

        Args:
            change: its name.
            first, end: from which token to which, in multiples of 64.
        """
        return student([fmean(runs[first // RUN : end // RUN]) for runs in self.rises(change)])

    def table(self, *changes: str, first: int = 0, end: int = TOKENS) -> str:
        """Return rows for print: how much higher the loss is, and its 95 % interval."""
        rows = []
        for change in changes:
            mean, low, high = self.rise(change, first, end)
            rows.append(f"{change:25} {mean:+6.2f}  ({low:+.2f} to {high:+.2f})")
        return "\n".join(rows)

    def difference(self, change: str, other: str, first: int = 0, end: int = TOKENS) -> str:
        """Return a row for print: how much more one change costs than another, text by text."""
        both = [
            [fmean(runs[first // RUN : end // RUN]) for runs in self.rises(name)]
            for name in (change, other)
        ]
        mean, low, high = student([more - less for more, less in zip(*both, strict=True)])
        return f"{'the difference':25} {mean:+6.2f}  ({low:+.2f} to {high:+.2f})"


@copied
def stored() -> Opened:
    """Return what was measured.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(STORED, f"{__package__}.measure_gemma", lambda fields: Opened(**fields))
