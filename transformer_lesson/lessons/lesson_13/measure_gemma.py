"""Take parts of Gemma 3 270M away, one at a time, and store what its loss becomes.

python -m transformer_lesson.lessons.lesson_13.measure_gemma    five minutes on one core

The texts are the prose of lessons 03 to 08 as it is today: it was written after the model. The
script goes on where it was interrupted. Remove gemma.json to measure again.
"""

import json
from itertools import combinations
from random import Random
from statistics import fmean

import torch

from transformer_lesson.checkpoints import from_pretrained, llama_cpp
from transformer_lesson.checkpoints.weights import COURSE, weights
from transformer_lesson.lessons.lesson_13 import gemma

FIRSTS = {"no <bos>": [], "'the' for <bos>": [506]}
DISTANT = ("no window", "all local")  # changes that show only where a text is long
PAIRS = 5  # of other heads


def texts() -> list[str]:
    """Return the prose of seven lessons."""
    lessons = []
    for path in sorted((COURSE / "notebooks").glob("[01]*.ipynb"))[3:10]:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        prose = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
        lessons.append("\n\n".join(prose))
    return lessons


def keep(results: gemma.Opened) -> None:
    """Write what is known so far."""
    text = json.dumps(results._asdict(), ensure_ascii=False)
    for end in ("], ", "}, "):
        text = text.replace(end, end.rstrip() + "\n")
    gemma.STORED.write_text(text + "\n", "utf-8")


def measure_text(results, model, ids, changes) -> None:
    """Measure a text under each change, and after other tokens than `<bos>`."""
    for name, change in changes.items():
        end = gemma.TOKENS if name.startswith((gemma.AS_IT_IS, *DISTANT)) else gemma.SHORT
        with change():
            results.losses[name].append(gemma.by_run(gemma.losses(model, ids[:, : end + 1])))
        print(f"{name:30} {fmean(results.losses[name][-1]):.3f}", flush=True)
    for name, first in FIRSTS.items():
        start = torch.tensor([first], dtype=ids.dtype)
        read = torch.cat([start, ids[:, 1:]], dim=1)
        losses = gemma.losses(model, read, gemma.STEP - 1 + len(first))  # of the same tokens
        results.losses[name].append(gemma.by_run(losses))
        print(f"{name:30} {fmean(results.losses[name][-1]):.3f}", flush=True)
    keep(results)  # all of a text, or nothing


def measure_copies(results, model, text, other) -> None:
    """Measure where copying sits: heads' scores, blocks narrowed, heads taken out.

    Heads are taken out in two ways: with zeros, and with their mean over another text.
    """
    ids = gemma.repeated()
    if not results.scores:
        scores = gemma.head_scores(model, ids).tolist()
        results.scores.extend([round(x, 3) for x in row] for row in scores)
    heads = [(i, h) for i in range(len(results.scores)) for h in range(len(results.scores[0]))]
    ranked = sorted(heads, key=lambda at: -results.scores[at[0]][at[1]])
    means = gemma.head_means(model, other)
    ways = {gemma.AS_IT_IS: lambda: gemma.ExitStack()}
    for i in (5, 11, 17, 4, 10, 16):
        ways[f"block {i}: window 16"] = lambda i=i: gemma.narrowed(model, (i,), 16)
        ways[f"block {i}: window 16 and <bos>"] = lambda i=i: gemma.narrowed(model, (i,), 16, 1)
    others = Random(13).sample([*combinations(ranked[8:], 2)], PAIRS)
    for pair in (ranked[:1], ranked[1:2], ranked[:2], *others):
        name = " and ".join(f"{i}.{h}" for i, h in pair)
        ways[f"without {name}"] = lambda pair=pair: gemma.without_heads(model, list(pair))
        ways[f"mean of {name}"] = lambda pair=pair: gemma.without_heads(model, list(pair), means)
    for name, way in ways.items():
        with way():
            if name not in results.copies:
                results.copies[name] = [round(x, 3) for x in gemma.copying(model, ids).tolist()]
            if "window" not in name and name not in results.without:
                loss = gemma.losses(model, text[:, : gemma.SHORT + 1]).mean().item()
                results.without[name] = round(loss, 3)
        keep(results)
        print(f"{name:30} {fmean(results.copies[name]):.3f}", results.without.get(name), flush=True)


def main() -> None:
    """Measure what is not known yet."""
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    path = weights("Gemma")
    model, words = from_pretrained(path).eval(), llama_cpp.read_tokenizer(path)
    rows = [gemma.ids_of(words, text) for text in texts()]
    assert {len(ids[0]) for ids in rows} == {gemma.TOKENS + 1}
    assert words.encode(" the") == FIRSTS["'the' for <bos>"]
    *rows, other = rows  # on the seventh sizes are measured, and nothing else
    changes = gemma.conditions(model, other[:, : gemma.SHORT])
    empty = {name: [] for name in (*changes, *FIRSTS)}
    results = gemma.stored() if gemma.STORED.exists() else gemma.Opened(empty, [], {}, {})
    for ids in rows[len(results.losses["no <bos>"]) :]:
        measure_text(results, model, ids, changes)
    measure_copies(results, model, rows[0], other[:, : gemma.SHORT])


if __name__ == "__main__":
    main()
