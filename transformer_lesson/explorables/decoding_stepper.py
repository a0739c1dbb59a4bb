"""Step through a decoding: what the model thinks, what a strategy makes of it, what is cached.

More than 400 lines: one explorable with two drawings of the same steps, the bars of a distribution
and the tree of a beam search. They share the steps, the cache and the controls.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import ipywidgets
import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer_lesson.explorables.base import Explorable, Rendering, drawable, sendable
from transformer_lesson.explorables.base import sentence as say
from transformer_lesson.explorables.canvas import TINTS, Canvas, drawn_width, fitted
from transformer_lesson.explorables.trained import MISSING, english_words, trained_translator
from transformer_lesson.explorables.typed_sentence import read_sentence, source_ids
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.figures.ranking import from_largest
from transformer_lesson.generation import Beam, Greedy, Sample, generate, top_k_filter, top_p_filter
from transformer_lesson.generation.beam import Candidate, Tree
from transformer_lesson.generation.strategies import Strategy, length_normalized
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.tokenizers import Tokenizer

WIDTH, LEFT, BAR, N_BARS, N_TOKENS = 940, 150, 150, 12, 60
TREE_LEFT, COLUMN, ROW, DROPPED_ROW = 112, 118, 44, 25  # of the tree, in pixels
N_COLUMNS, N_DROPPED, N_FINISHED = 7, 4, 3  # the most that are drawn
ALIVE, DEAD, FINISHED = TINTS[5], "#F4F4F4", TINTS[2]
TEXT = "Today the old dog sees the small cat."
TOP_K = (1, 2, 3, 5, 10, 20, 50)
USED_BY = {  # strategy to the controls that matter for it
    "greedy": (),
    "sample": ("temperature", "top_k", "top_p", "seed"),
    "beam": ("width",),
}


class Decoding(NamedTuple):
    """What a strategy wrote, step by step.

    Args:
        strategy: how the tokens were chosen.
        source: the tokens of the source; none for a decoder-only model.
        start: the tokens that the text begins with: the prompt, or `<bos>`.
        written: ids of the new tokens; of a beam search those of the winner.
        probabilities: the model's own at each step, without a strategy; not for a beam search.
        tree: what a beam search considered at each step, else none.
    """

    strategy: Strategy
    source: tuple[str, ...]
    start: tuple[str, ...]
    written: tuple[int, ...]
    probabilities: Float[Tensor, "step vocab_size"] | None
    tree: Tree | None

    @property
    def n_steps(self) -> int:
        """How often the model was asked for the next token."""
        return len(self.tree or self.written)


def watch_decoding(
    model: nn.Module, tokenizer: Tokenizer, ids: list[int], strategy: Strategy, max_new_tokens: int
) -> Decoding:
    """Let a model write one text, and keep what it thought at every step.

    Args:
        model: encoder-decoder or decoder-only.
        tokenizer: of its vocabulary.
        ids: the source with its `<eos>`, or the prompt.
        strategy: how tokens are chosen.
        max_new_tokens: most tokens to write.
    """
    beam = isinstance(strategy, Beam)
    made = generate(model, ids, max_new_tokens, strategy, distributions=not beam, trees=beam)
    given = tuple(map(tokenizer.token, ids))
    translates = isinstance(model, EncoderDecoderTransformer)
    source, start = (given, (tokenizer.token(tokenizer.bos_id),)) if translates else ((), given)
    return Decoding(
        strategy,
        source,
        start,
        tuple(made.ids[0]),
        None if beam else made.distributions[0].float().cpu(),
        made.trees[0] if beam else None,
    )


class Choice(NamedTuple):
    """What a sampling strategy made of a distribution; all of shape (vocab_size,)."""

    heated: Float[Tensor, " vocab_size"]
    drawn_from: Float[Tensor, " vocab_size"]
    cut_by_k: Tensor
    cut_by_p: Tensor

    def cut_by(self, id_: int) -> str:
        """Return what cut a token: "top-k", "top-p" or, if it stays, nothing."""
        return "top-k" if self.cut_by_k[id_] else "top-p" if self.cut_by_p[id_] else ""


def choose_from(probabilities: Float[Tensor, " vocab_size"], sample: Sample) -> Choice:
    """Return a distribution after its temperature, after all of `sample`, and who cut what.

    Args:
        probabilities: the model's own.
        sample: its temperature, top_k and top_p.
    """
    logits = probabilities.log() / sample.temperature
    after_k = logits if sample.top_k is None else top_k_filter(logits, sample.top_k)
    after_p = after_k if sample.top_p is None else top_p_filter(after_k, sample.top_p)
    cut_by_k = after_k.isneginf() & ~logits.isneginf()
    cut_by_p = after_p.isneginf() & ~after_k.isneginf()
    return Choice(logits.softmax(dim=-1), after_p.softmax(dim=-1), cut_by_k, cut_by_p)


class CacheUse(NamedTuple):
    """Of how many tokens the keys and values were computed at a step, and of how many reused."""

    computed: int
    reused: int


def cache_use(n_start: int, step: int) -> CacheUse:
    """Return what a cache spares in self-attention. Without one, all would be computed.

    Args:
        n_start: tokens that the text begins with.
        step: from 0. Step 0 reads the start, each later step the one token chosen before it.
    """
    return CacheUse(n_start, 0) if step == 0 else CacheUse(1, n_start + step - 1)


class Column(NamedTuple):
    """A column of bars: where it stands, how long a bar of probability 1 is, and its numbers."""

    left: int
    width: int
    heading: str
    values: Float[Tensor, " vocab_size"]
    color: str


def cache_height(decoding: Decoding) -> int:
    """Return how many of the upper pixels `draw_cache` takes."""
    return 170 if decoding.source else 110


def draw_cache(
    page: Canvas, decoding: Decoding, name: str, text_so_far: Sequence[str], step: int
) -> str:
    """Draw which tokens' keys and values come from the cache; return the same in words.

    Args:
        page: the canvas.
        decoding: what is shown.
        name: of the text.
        text_so_far: everything that is read at this step, `start` included.
        step: from 0.
    """
    use, n = cache_use(len(decoding.start), step), len(text_so_far)
    told = f"reused {use.reused}, computed {use.computed}; without a cache {n}"
    _strip(page, 52, name, text_so_far, use.computed, f"keys and values: {told}")
    words = f"Keys and values of the text: {told}."
    if decoding.source:
        n = len(decoding.source)
        computed = n if step == 0 else 0
        told = f"reused {n - computed}, computed {computed}; without a cache {n}"
        _strip(page, 112, "source", decoding.source, computed, f"keys and values: {told}")
        words += f" Of the source: {told}."
    return words


def _strip(page: Canvas, y: int, name: str, tokens: Sequence[str], n_new: int, note: str) -> None:
    """Draw tokens in a row: "=" and gray for what is in the cache, "+" and yellow for the new."""
    page.text(92, y + 12, name, 12, anchor="rm")
    signs = ["="] * (len(tokens) - n_new) + ["+"] * n_new
    pairs = list(zip(signs, tokens, strict=True))[-N_TOKENS:]
    labels = [fitted(f"{sign} {token}", 12, 110) for sign, token in pairs]
    wide = [drawn_width(label, 12) + 10 for label in labels]
    first = 0
    while sum(wide[first:]) + 4 * len(wide[first:]) > WIDTH - 190:
        first += 1  # the newest stay
    hidden = len(tokens) - len(labels) + first
    x = 100.0
    if hidden:
        page.text(x, y + 12, f"… {hidden} more", 11, "#444444", "lm")
        x += 70
    for label, width in zip(labels[first:], wide[first:], strict=True):
        new = {"fill": "#FFE14D", "edge": "black", "line": 2}
        old = {"fill": "#E8EFF5", "edge": "#999999"}
        page.box(x, y, width, 24, **(new if label[0] == "+" else old))
        page.text(x + width / 2, y + 12, label, 12)
        x += width + 4
    page.text(100, y + 37, note, 11, "#444444", "lm")


def render_distribution(decoding: Decoding, tokenizer: Tokenizer, step: int) -> Rendering:
    """Draw one step of greedy decoding or sampling.

    Args:
        decoding: without a tree.
        tokenizer: gives the tokens' texts.
        step: from 0.
    """
    before = [tokenizer.token(id_) for id_ in decoding.written[:step]]
    probabilities, chosen = decoding.probabilities[step], decoding.written[step]
    label, p = drawable(f"{tokenizer.token(chosen):.30}"), probabilities[chosen].item()
    choice, title = None, f"“{label}” is the likeliest next token ({p:.3f})"
    told = f"Greedy takes the likeliest token, “{label}” ({p:.3f})."
    if isinstance(decoding.strategy, Sample):
        choice = choose_from(probabilities, decoding.strategy)
        title = f"“{label}” was drawn with probability {choice.drawn_from[chosen]:.3f}"
        told = f"{_told(choice, decoding.strategy)} {title}; the model gave it {p:.3f}."
    page = Canvas(
        f"Step {step + 1} of {decoding.n_steps}: {title}", WIDTH, cache_height(decoding) + 345
    )
    cached = draw_cache(page, decoding, "text so far", [*decoding.start, *before], step)
    likeliest = from_largest(probabilities, N_BARS)
    shown = likeliest if chosen in likeliest else [*likeliest[:-1], chosen]
    columns = _columns(probabilities, choice, decoding.strategy)
    _draw_bars(page, cache_height(decoding) + 44, tokenizer, shown, chosen, columns, choice)
    best = ", ".join(
        f"{drawable(f'{tokenizer.token(id_):.30}')} {probabilities[id_]:.3f}"
        for id_ in likeliest[:5]
    )
    text = (
        f"Step {step + 1} of {decoding.n_steps}. Likeliest for the model: {best}. {told} {cached}"
    )
    return Rendering(page.png(), text)


def _told(choice: Choice, sample: Sample) -> str:
    kept = int((choice.drawn_from > 0).sum())
    told = f"Temperature {sample.temperature:.2g}; {kept} tokens kept"
    if sample.top_k is not None:
        told += f", {int(choice.cut_by_k.sum())} cut by top-k {sample.top_k}"
    if sample.top_p is not None:
        told += f", {int(choice.cut_by_p.sum())} cut by top-p {sample.top_p:.2g}"
    return f"{told}."


def _columns(
    probabilities: Tensor, choice: Choice | None, strategy: Greedy | Sample
) -> list[Column]:
    """Return the columns of bars: one for greedy decoding, three for sampling."""
    if choice is None:
        return [Column(LEFT, 560, "the model's probabilities", probabilities, COLORS[0])]
    k, p = strategy.top_k or "off", strategy.top_p or "off"
    heated = f"after temperature {strategy.temperature:.2g}"
    return [
        Column(LEFT, BAR, "the model's probabilities", probabilities, COLORS[0]),
        Column(LEFT + 230, BAR, heated, choice.heated, COLORS[5]),
        Column(LEFT + 460, BAR, f"after top-k {k}, top-p {p}", choice.drawn_from, COLORS[2]),
    ]


def _draw_bars(
    page: Canvas, top: int, tokenizer: Tokenizer, shown: list[int], chosen: int, columns, choice
) -> None:
    """Draw one row of bars per token, and one for all others together."""
    for column in columns:
        page.text(column.left, top - 24, column.heading, 12, "#444444", "lm")
    for i, id_ in enumerate(shown):
        y = top + 22 * i
        if id_ == chosen:
            page.box(20, y - 10, WIDTH - 40, 20, fill="#FFF3B0", edge="black")
            page.text(26, y, "▶", 11, anchor="lm")
            page.text(WIDTH - 30, y, "chosen", 11, anchor="rm")
        page.text(LEFT - 8, y, tokenizer.token(id_), 12, anchor="rm", width=100)
        cut = choice is not None and choice.cut_by(id_)
        for column in columns[: 2 if cut else 3]:
            _bar(page, y, column, column.values[id_].item(), column.color)
        if cut:
            long = BAR * choice.heated[id_].item()
            page.hatch(columns[2].left, y - 7, long, 14, "#555555")
            page.text(columns[2].left + long + 6, y, f"✗ cut by {cut}", 11, anchor="lm")
    if others := tokenizer.vocab_size - len(shown):
        y = top + 22 * len(shown)
        page.text(LEFT - 8, y, f"{others:,} others", 12, "#444444", "rm")
        for column in columns:
            rest = 1 - column.values[torch.tensor(shown)].sum().clamp(max=1).item()
            _bar(page, y, column, rest, "#999999")


def _bar(page: Canvas, y: int, column: Column, p: float, color: str) -> None:
    page.box(column.left, y - 7, column.width * p, 14, fill=color, edge=color)
    page.text(column.left + column.width * p + 6, y, f"{p:.3f}", 11, anchor="lm")


def path(tree: Tree, step: int, i: int) -> list[int]:
    """Return which candidates of the steps 0 to `step` lead to candidate i, itself the last."""
    numbers = [i]
    for level in reversed(tree[1 : step + 1]):
        numbers.append(level[numbers[-1]].parent)
    return numbers[::-1]


def text_of(tree: Tree, step: int, i: int) -> list[int]:
    """Return the token ids of a candidate's whole text, `start` excluded."""
    return [tree[s][number].token for s, number in enumerate(path(tree, step, i))]


def finished_texts(decoding: Decoding, step: int) -> list[tuple[float, float, list[int]]]:
    """Return what is finished by then, the best first: normalized score, log P, ids."""
    penalty = decoding.strategy.length_penalty
    found = [
        (length_normalized(one.log_probability, s + 1, penalty), one.log_probability, s, i)
        for s, level in enumerate(decoding.tree[: step + 1])
        for i, one in enumerate(level)
        if one.finished
    ]
    order = from_largest(torch.tensor([one[0] for one in found]), len(found))
    best = [found[i] for i in order]
    return [(score, log_p, text_of(decoding.tree, s, i)) for score, log_p, s, i in best]


def render_beams(decoding: Decoding, tokenizer: Tokenizer, step: int) -> Rendering:
    """Draw the tree of a beam search up to one step.

    Args:
        decoding: with a tree.
        tokenizer: gives the tokens' texts.
        step: from 0.
    """
    tree, width = decoding.tree, decoding.strategy.width

    def words(ids: list[int]) -> str:
        return drawable(" ".join(f"{tokenizer.token(id_):.30}" for id_ in ids[-30:]))

    kept = [i for i, one in enumerate(tree[step]) if one.kept]
    finished = finished_texts(decoding, step)
    dropped = len(tree[step]) - len(kept)
    title = f"Step {step + 1} of {len(tree)}: {len(kept)} kept, {dropped} dropped"
    top = cache_height(decoding) + 46
    bottom = top + ROW * width + DROPPED_ROW * (N_DROPPED + 1) + 20
    page = Canvas(f"{title}, {len(finished)} finished so far", WIDTH, bottom + 24 + 20 * N_FINISHED)
    running = [i for i, one in enumerate(tree[step - 1]) if one.kept and not one.finished]
    before = text_of(tree, step - 1, running[0]) if step else []
    so_far = [*decoding.start, *map(tokenizer.token, before)]
    cached = draw_cache(page, decoding, "best running", so_far, step)
    _draw_tree(page, decoding, tokenizer, step, top)
    legend = "✓ kept   ✗ dropped   ■ finished   number: log P of the whole text, in nats"
    page.text(20, bottom, legend, 11, "#444444", "lm")
    ended = [
        f"“{words(ids)}” log P {log_p:.2f}, normalized {score:.2f}"
        for score, log_p, ids in finished
    ]
    for i, line in enumerate(ended[:N_FINISHED]):
        page.text(20, bottom + 22 + 20 * i, f"■ {line}", 12, anchor="lm", width=WIDTH - 40)
    told = [f"“{words(text_of(tree, step, i))}” {tree[step][i].log_probability:.2f}" for i in kept]
    text = f"{title}. Beam width {width}. Kept, with log P: {'; '.join(told)}."
    if ended:
        text += f" Finished so far: {'; '.join(ended[:N_FINISHED])}."
    return Rendering(page.png(), f"{text} {cached} Each running hypothesis has its own row of it.")


def _draw_tree(page: Canvas, decoding: Decoding, tokenizer: Tokenizer, step: int, top: int) -> None:
    tree, width = decoding.tree, decoding.strategy.width
    first = max(0, step - N_COLUMNS + 1)
    alive = {
        (s, number)
        for i, one in enumerate(tree[step])
        if one.kept
        for s, number in enumerate(path(tree, step, i))
    }
    page.box(20, top, 64, 34, fill=ALIVE, edge="#888888")
    page.text(52, top + 17, "…" if first else decoding.start[-1], 12, width=58)
    for s in range(first, step + 1):
        x = TREE_LEFT + COLUMN * (s - first)
        page.text(x + 46, top - 16, f"step {s + 1}", 11, "#444444")
        for i, one in enumerate(tree[s][: width + N_DROPPED * (s == step)]):
            y = (
                top + ROW * i + 17
                if one.kept
                else top + ROW * width + DROPPED_ROW * (i - width) + 22
            )
            parent = top + 17 + (ROW * one.parent if s > first else 0)
            lives = (s, i) in alive
            color, line = (COLORS[0], 2) if lives else ("#999999", 1)
            page.curve([(84 if s == first else x - COLUMN + 92, parent), (x, y)], color, line)
            _draw_candidate(page, x, y, tokenizer.token(one.token), one, lives)
    if (more := len(tree[step]) - width - N_DROPPED) > 0:
        y = top + ROW * width + DROPPED_ROW * N_DROPPED + 20
        page.text(TREE_LEFT + COLUMN * (step - first) + 46, y, f"✗ {more} more", 11)


def _draw_candidate(page: Canvas, x: int, y: int, token: str, one: Candidate, lives: bool) -> None:
    """Draw one box; its middle left is at (x, y)."""
    score = f"{one.log_probability:.2f}"
    if not one.kept:
        page.box(x, y - 11, 92, 22, fill="white", edge="#BBBBBB")
        page.text(x + 4, y, f"✗ {token}", 11, "#444444", "lm", 56)
        page.text(x + 89, y, score, 10, "#444444", "rm")
        return
    sign = "■" if one.finished else "✓"
    fill = FINISHED if one.finished else ALIVE if lives else DEAD
    page.box(x, y - 17, 92, 34, fill=fill, edge="black" if lives else "#999999", line=1 + lives)
    page.text(x + 46, y - 7, f"{sign} {token}", 12, width=86)
    page.text(x + 46, y + 9, score, 10)


class DecodingStepper(Explorable):
    """Watch a model choose one token after the other, by any strategy.

    Without a model it takes the trained translator that comes with the package.

    Args:
        model: an encoder-decoder or decoder-only model.
        tokenizer: of its vocabulary.
        text: the source, or the prompt to go on from.
        max_new_tokens: most tokens to write.

    Raises:
        ValueError: a model without its tokenizer, or `max_new_tokens` under 1.
    """

    def __init__(
        self,
        model: nn.Module | None = None,
        tokenizer: Tokenizer | None = None,
        text: str = TEXT,
        max_new_tokens: int = 20,
    ):
        if (model is None) != (tokenizer is None):
            raise ValueError("a model and its tokenizer belong together: pass both or none.")
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens is {max_new_tokens}, but it must be at least 1.")
        self.source_words = None
        if model is None and trained_translator():
            model, tokenizer, _ = trained_translator()
            self.source_words = english_words()
        self.model, self.tokenizer, self.max_new_tokens = model, tokenizer, max_new_tokens
        self.attempt = lru_cache(maxsize=64)(self._attempt)
        self.step = ipywidgets.IntSlider(1, 1, max_new_tokens, description="Step")
        typed = ipywidgets.Text(sendable(text), description="Text", continuous_update=False)
        typed.layout.width = "38em"
        self.controls = {"text": typed} | _strategy_controls()
        for control in self.controls.values():
            control.observe(self._fit, "value")
        self._fit()
        super().__init__(self.controls | {"step": self.step})

    @property
    def strategy(self) -> Strategy:
        """The strategy that the controls describe."""
        get = {name: control.value for name, control in self.controls.items()}
        if get["strategy"] == "greedy":
            return Greedy()
        if get["strategy"] == "beam":
            return Beam(get["width"])
        top_p = None if get["top_p"] == 1 else get["top_p"]
        return Sample(get["temperature"], get["top_k"] or None, top_p, get["seed"])

    def render(self) -> Rendering:
        """Draw the present step."""
        made = self.attempt(self.controls["text"].value, self.strategy)
        if isinstance(made, str):
            return say(made)
        draw = render_beams if made.tree else render_distribution
        return draw(made, self.tokenizer, self.step.value - 1)

    def _attempt(self, text: str, strategy: Strategy) -> Decoding | str:
        """Return the whole decoding of a text, or what to change in it."""
        if self.model is None:
            return MISSING
        ids, max_len = self._ids(text), self.model.config.max_len
        translates = isinstance(self.model, EncoderDecoderTransformer)
        longest = self.model.source_config.max_len if translates else max_len - 1
        if len(ids) == translates:  # nothing but <eos>
            return "There is no text to begin with: type some and press Enter."
        if len(ids) > longest:
            return (
                f"The text has {len(ids):,} tokens, but the model has room for {longest}: shorten "
                "it and press Enter."
            )
        room = max_len - (1 if translates else len(ids))
        n_new = min(self.max_new_tokens, room)
        return watch_decoding(self.model, self.tokenizer, ids, strategy, n_new)

    def _ids(self, text: str) -> list[int]:
        text = sendable(text)
        if self.source_words:
            return source_ids(self.tokenizer, read_sentence(text, self.source_words, "."))
        ids = self.tokenizer.encode(text)
        translates = isinstance(self.model, EncoderDecoderTransformer)
        return [*ids, self.tokenizer.eos_id] if translates else ids

    def _fit(self, change=None) -> None:
        """Offer the steps that there are, and only what matters for the strategy."""
        made = self.attempt(self.controls["text"].value, self.strategy)
        with self.held():
            self.step.max = 1 if isinstance(made, str) else made.n_steps
            for strategy, names in USED_BY.items():
                for name in names:
                    self.controls[name].disabled = strategy != self.controls["strategy"].value


def _strategy_controls() -> dict[str, ipywidgets.DOMWidget]:
    top_k = [("off", 0), *((str(k), k) for k in TOP_K)]
    return {
        "strategy": ipywidgets.ToggleButtons(options=list(USED_BY), description="Strategy"),
        "temperature": ipywidgets.FloatLogSlider(
            1, min=-1, max=0.7, step=0.05, description="Temperature", readout_format=".2f"
        ),
        "top_k": ipywidgets.SelectionSlider(options=top_k, description="top-k"),
        "top_p": ipywidgets.FloatSlider(
            1, min=0.05, max=1, step=0.05, description="top-p (1: off)"
        ),
        "seed": ipywidgets.IntSlider(0, 0, 20, description="Seed"),
        "width": ipywidgets.IntSlider(3, 1, 5, description="Beam width"),
    }
