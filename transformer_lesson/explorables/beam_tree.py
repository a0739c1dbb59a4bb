"""One step of a beam search as a tree: what was kept, dropped and finished so far."""

import torch

from transformer_lesson.explorables.base import Rendering, drawable
from transformer_lesson.explorables.canvas import TINTS, Canvas
from transformer_lesson.explorables.decoding import WIDTH, Decoding, cache_height, draw_cache
from transformer_lesson.figures.plots import COLORS
from transformer_lesson.figures.ranking import from_largest
from transformer_lesson.generation.beam import Candidate, Tree
from transformer_lesson.generation.strategies import length_normalized
from transformer_lesson.text.tokenizers import Tokenizer

TREE_LEFT, COLUMN, ROW, DROPPED_ROW = 112, 118, 44, 25  # in pixels
N_COLUMNS, N_DROPPED, N_FINISHED = 7, 4, 3  # the most that are drawn
ALIVE, DEAD, FINISHED = TINTS[5], "#F4F4F4", TINTS[2]


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
