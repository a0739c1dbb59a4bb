"""Take parts of Gemma 3 270M away, one at a time, and store what its loss becomes.

python -m transformer_lesson.lessons.lesson_13.measure_gemma    five minutes on one core

It goes on where it was interrupted. Remove gemma.json to measure again, on the texts of today.
"""

import json
from itertools import combinations
from random import Random

import torch

from transformer_lesson.checkpoints import from_pretrained, llama_cpp
from transformer_lesson.checkpoints.weights import COURSE, weights
from transformer_lesson.lessons.lesson_13 import gemma
from transformer_lesson.model import attention

KEY = ("as it is", "no window", "all local", "all local, <bos> visible", "QK-norm: a constant")
CHARACTERS = 7000  # of which 1,280 tokens are


def texts() -> dict[str, str]:
    """Return two texts that were written after the model: this lesson's prose, and code."""
    (path,) = (COURSE / "notebooks").glob("13_*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    prose = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    code = open(attention.__file__, encoding="utf-8").read()
    return {"prose": prose[:CHARACTERS], "code": code[:CHARACTERS]}


def keep(found: gemma.Opened) -> None:
    """Write what is known so far."""
    text = json.dumps(found._asdict(), ensure_ascii=False)
    gemma.STORED.write_text(text.replace('}, "', '},\n"').replace('], "', '],\n"') + "\n", "utf-8")


def measure_text(name: str, changes: tuple[str, ...] | None, found, model, words) -> None:
    """Measure a text under each change, and without `<bos>` or with another token in its place."""
    ids = gemma.ids_of(words, found.texts[name])
    other = gemma.ids_of(words, found.texts["code" if name == "prose" else "prose"], 512)
    made, rows = gemma.conditions(model, other), found.losses.setdefault(name, {})
    firsts = {"no <bos>": [], "'the' for <bos>": words.encode(" the")}
    assert all(len(first) < 2 for first in firsts.values())
    for change in changes or made:
        if change not in rows:
            with made[change]():
                rows[change] = gemma.by_run(gemma.losses(model, ids))
            print(name, change, sum(rows[change]) / len(rows[change]), flush=True)
            keep(found)
        if change == "all local":
            for first in firsts:
                measure_first(found, name, first, firsts[first], model, ids)


def measure_first(found, name, change, first, model, ids) -> None:
    """Measure a text after other tokens than `<bos>`; its first token counts as it is."""
    rows = found.losses[name]
    if change in rows:
        return
    as_it_is = gemma.losses(model, ids[:, :3])[0]
    start = torch.tensor([first], dtype=torch.int64)
    rest = gemma.losses(model, torch.cat([start, ids[:, 1:]], dim=1))
    rows[change] = gemma.by_run(torch.cat([as_it_is[None], rest[-(gemma.TOKENS - 1) :]]))
    print(name, change, sum(rows[change]) / len(rows[change]), flush=True)
    keep(found)


def measure_copies(found, model) -> gemma.Opened:
    """Measure where copying sits: heads' scores, blocks narrowed, heads taken out."""
    ids = gemma.repeated()
    if not found.scores:
        scores = gemma.head_scores(model, ids)
        rounded = [[round(x, 3) for x in row] for row in scores.tolist()]
        found = found._replace(scores=rounded)
        keep(found)
    heads = [(i, h) for i in range(len(found.scores)) for h in range(len(found.scores[0]))]
    ranked = sorted(heads, key=lambda at: -found.scores[at[0]][at[1]])
    ways = {"as it is": lambda: gemma.ExitStack()}
    for i in (5, 11, 17, 4, 10, 16):
        ways[f"block {i}: window 16"] = lambda i=i: gemma.narrowed(model, (i,), 16)
    ways["without the two best heads"] = lambda: gemma.without_heads(model, ranked[:2])
    pairs = Random(13).sample([*combinations(ranked[8:], 2)], 10)
    for j, pair in enumerate(pairs):
        ways[f"without two other heads, {j}"] = lambda pair=pair: gemma.without_heads(model, pair)
    for name, way in ways.items():
        if name not in found.copies:
            with way():
                found.copies[name] = [round(x, 3) for x in gemma.copying(model, ids).tolist()]
            print(name, sum(found.copies[name]) / gemma.COPIES, flush=True)
            keep(found)
    return found


def main() -> None:
    """Measure what is not known yet."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    path = weights("Gemma")
    model, words = from_pretrained(path).eval(), llama_cpp.read_tokenizer(path)
    known = gemma.STORED.exists()
    found = gemma.stored() if known else gemma.Opened(texts(), {}, [], {})
    first = ("as it is", "no window", "all local", "all local, <bos> visible")
    measure_text("prose", first, found, model, words)
    found = measure_copies(found, model)
    measure_text("prose", None, found, model, words)
    measure_text("code", KEY, found, model, words)


if __name__ == "__main__":
    main()
