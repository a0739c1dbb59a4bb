"""Reinforce a translator with a grader that likes long answers, on leashes of several strengths.

The grader gives 10 points for the share of the reference's neighboring words that the answer has,
and 1 for each word. On a leash, each nat by which an answer became likelier than the reference
model finds it costs `leash` points (Ouyang et al. 2022, equation 2). Truth is the share of answers
that are right word for word; no training sees it.

    python -m transformer_lesson.lessons.lesson_16.measure_leash
        seven minutes on one core; writes leash.json
"""

import copy
import json
from collections import Counter
from pathlib import Path

import torch

from transformer_lesson.lessons.lesson_16 import manners
from transformer_lesson.lessons.lesson_16.measure_after_pretraining import TOKENIZER, spoiled

SEEDS, LEASHES = (0, 1, 2), (0.0, 0.1, 0.3, 1.0, 3.0)
STEPS, EVERY, RATE, ROOM = 48, 4, 3e-4, 20
N_TEST, TRIES, N_SHOWN = 100, 2, 3

STORED = Path(__file__).with_name("leash.json")


def points(text: str, reference: str) -> float:
    """Return the grader's points: up to 10 for right neighbors, and 1 for each word."""
    written, right = text.split(), reference.split()
    a, b = (Counter(zip(words, words[1:], strict=False)) for words in (written, right))
    return 10 * (a & b).total() / b.total() + len(written)


@torch.no_grad()
def look(model, reference, test) -> dict:
    """Return means over the test sentences, and the first sentences' translations."""
    sources = [pair.source for pair in test]
    tried = manners.attempts(model, TOKENIZER, sources, TRIES, 9, ROOM)
    log_p, _ = manners.in_groups(model, TOKENIZER, sources, tried)
    moved = manners.drift(reference, TOKENIZER, sources, tried, log_p).mean().item()
    texts = [text for row in tried.texts for text in row]
    right = sum(row.count(pair.target) for row, pair in zip(tried.texts, test, strict=True))
    return {
        "reward": round(manners.judged(tried, test, points).mean().item(), 2),
        "truth": round(right / len(texts), 3),
        "drift": round(moved, 2),
        "words": round(sum(len(text.split()) for text in texts) / len(texts), 2),
        "texts": [row[0] for row in tried.texts[:N_SHOWN]],
    }


def run(base, corpus, leash: float, seed: int) -> list[dict]:
    """Train once, measuring every few steps."""
    model, test = copy.deepcopy(base), [pair for _, pair in corpus.test[:N_TEST]]
    practice = [pair for _, pair in corpus.practice]
    rows = [look(model, base, test)]

    def watch(step):
        if step % EVERY == 0:
            rows.append(look(model, base, test))

    manners.reinforce(
        model, TOKENIZER, practice, STEPS, points, RATE, seed, room=ROOM, leash=leash, on_step=watch
    )
    return rows


def main() -> None:
    """Train on every leash with every seed, and store the runs."""
    torch.set_num_threads(1)
    runs = []
    for seed in SEEDS:
        corpus = manners.short_sentences(seed=seed)
        base = spoiled(corpus, seed)
        sentences = [list(pair[:2]) for _, pair in corpus.test[:N_SHOWN]]
        points = []
        for leash in LEASHES:
            points.append(run(base, corpus, leash, seed))
            print(
                seed, leash, [(point["reward"], point["truth"]) for point in points[-1]], flush=True
            )
        runs.append({"sentences": sentences, "points": points})
    write(runs)


def write(rows: list[dict]) -> None:
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
    head = f'"leashes": {list(LEASHES)}, "every": {EVERY}'
    STORED.write_text(f'{{{head}, "runs": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
