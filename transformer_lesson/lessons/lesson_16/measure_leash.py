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
from random import Random
from typing import NamedTuple

import torch
from torch import nn

from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.lessons.lesson_16 import manners
from transformer_lesson.training.preferences import grpo_loss

SEEDS, LEASHES = (0, 1, 2), (0.0, 0.1, 0.3, 1.0, 3.0)
STEPS, EVERY, RATE, GROUP, ROOM = 48, 4, 3e-4, 8, 20
N_TEST, TRIES, N_SHOWN = 100, 2, 3

STORED = Path(__file__).with_name("leash.json")


def points(text: str, reference: str) -> float:
    """Return the grader's points: up to 10 for right neighbors, and 1 for each word."""
    written, right = text.split(), reference.split()
    a, b = (Counter(zip(words, words[1:], strict=False)) for words in (written, right))
    return 10 * (a & b).total() / b.total() + len(written)


class Tried(NamedTuple):
    """A group of answers per sentence: texts, and log P under the model and the reference."""

    texts: list[list[str]]
    log_probs: torch.Tensor  # (sentence, group, n)
    mask: torch.Tensor
    drift: torch.Tensor  # (sentence, group)


def tried(model, reference, tokenizer, pairs, group: int, seed: int) -> Tried:
    """Let the model translate each sentence, and look up how likely its answers are."""
    sources = [pair.source for pair in pairs]
    samples = manners.attempts(model, tokenizer, sources, group, seed, ROOM)
    source = manners.sources_of(tokenizer, sources).repeat_interleave(group, 0)
    log_p, mask = manners.token_log_probs(model, source, samples.ids, tokenizer.pad_id)
    with torch.no_grad():
        before, _ = manners.token_log_probs(reference, source, samples.ids, tokenizer.pad_id)
    drift = ((log_p.detach() - before) * mask).sum(-1)
    shape = (len(pairs), group)
    return Tried(samples.texts, log_p.view(*shape, -1), mask.view(*shape, -1), drift.view(shape))


def judged(found: Tried, pairs) -> torch.Tensor:
    rows = zip(found.texts, pairs, strict=True)
    return torch.tensor([[points(text, pair.target) for text in texts] for texts, pair in rows])


@torch.no_grad()
def look(model, reference, tokenizer, test) -> dict:
    """Return means over the test sentences, and the first sentences' translations."""
    samples = tried(model, reference, tokenizer, test, TRIES, seed=9)
    texts = [text for row in samples.texts for text in row]
    right = sum(row.count(pair.target) for row, pair in zip(samples.texts, test, strict=True))
    words = sum(len(text.split()) for text in texts) / len(texts)
    means = judged(samples, test).mean().item(), samples.drift.mean().item(), words
    shown = [row[0] for row in samples.texts[:N_SHOWN]]
    return {"reward": round(means[0], 2), "truth": round(right / len(texts), 3),
            "drift": round(means[1], 2), "words": round(means[2], 2), "texts": shown}  # fmt: skip


def run(base, tokenizer, corpus, leash: float, seed: int) -> list[dict]:
    """Train once, measuring every few steps."""
    model, rng = copy.deepcopy(base), Random(seed)
    test = [pair for _, pair in corpus.test[:N_TEST]]
    practice = [pair for _, pair in corpus.practice]
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.98), weight_decay=0.0)
    measurements = [look(model, base, tokenizer, test)]
    for step in range(1, STEPS + 1):
        pairs = rng.sample(practice, 16)
        samples = tried(model, base, tokenizer, pairs, GROUP, 100_000 * seed + step)
        rewards = judged(samples, pairs) - leash * samples.drift
        for group in optimizer.param_groups:
            group["lr"] = RATE * min(1, step / 5)
        optimizer.zero_grad()
        grpo_loss(samples.log_probs, samples.mask, rewards).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % EVERY == 0:
            measurements.append(look(model, base, tokenizer, test))
    return measurements


def start(seed: int) -> tuple:
    """Return the translator after tuning with 60 % English order, and the sentences of a seed."""
    translator, corpus = trained_translator(), manners.short_sentences(seed=seed)
    model, pairs = copy.deepcopy(translator.model), manners.with_habit(corpus.tuning, 0.6, seed)
    manners.tune(model, translator.tokenizer, pairs, seed=seed)
    return model.eval(), translator.tokenizer, corpus


def main() -> None:
    """Train on every leash with every seed, and store the runs."""
    torch.set_num_threads(1)
    runs = []
    for seed in SEEDS:
        base, tokenizer, corpus = start(seed)
        sentences = [list(pair[:2]) for _, pair in corpus.test[:N_SHOWN]]
        points = []
        for leash in LEASHES:
            points.append(run(base, tokenizer, corpus, leash, seed))
            print(seed, leash, [(one["reward"], one["truth"]) for one in points[-1]], flush=True)
        runs.append({"sentences": sentences, "points": points})
    write(runs)


def write(kept: list[dict]) -> None:
    lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in kept)
    head = f'"leashes": {list(LEASHES)}, "every": {EVERY}'
    STORED.write_text(f'{{{head}, "runs": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
