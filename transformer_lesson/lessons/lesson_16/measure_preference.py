"""Store three runs of DPO, step by step, for `ChosenAndRejected`: the translator of lesson 16.

It writes an adverb first or after the verb; comparisons prefer the second. After every five steps:
how likely both answers are, which of them wins, and what the translator writes.

    python -m transformer_lesson.lessons.lesson_16.measure_preference
        two minutes on one core; writes preference.json
"""

import copy
import json
from pathlib import Path

import torch

from transformer_lesson import generation
from transformer_lesson.lessons.lesson_16 import manners
from transformer_lesson.lessons.lesson_16.measure_after_pretraining import (
    NEVER_TUNED,
    TOKENIZER,
    both_orders,
)

SEEDS, STEPS, EVERY, BETA = (0, 1, 2), 60, 5, 0.1
N_SHOWN, N_OTHERS = 4, 60


def written(model, sources: list[str]) -> list[str]:
    return generation.translate(model, TOKENIZER, sources, max_new_tokens=24, batch_size=128)


@torch.no_grad()
def look(model, test, wenn) -> dict:
    """Return means over the test pairs, and the first pairs' translations."""
    sources = [pair.source for pair in test]
    answers = [pair.chosen for pair in test] + [pair.rejected for pair in test]
    both = manners.answer_log_probs(model, TOKENIZER, sources * 2, answers)
    chosen, rejected = both.chunk(2)
    texts = written(model, sources)
    others = written(model, [pair.source for pair in wenn])
    count = {
        name: sum(text == getattr(pair, name) for text, pair in zip(texts, test, strict=True))
        for name in ("chosen", "rejected")
    }
    right = generation.exact_match(others, [pair.target for pair in wenn])
    return {
        "log_p": [round(side.mean().item(), 3) for side in (chosen, rejected)],
        "wins": round((chosen > rejected).float().mean().item(), 3),
        "writes": [round(n / len(test), 3) for n in count.values()],
        "wenn": round(right, 3),
        "pairs": [
            [round(c, 3), round(r, 3), text]
            for c, r, text in zip(chosen.tolist(), rejected.tolist(), texts, strict=True)
        ][:N_SHOWN],
    }


def main() -> None:
    """Train with three seeds, and store the runs."""
    torch.set_num_threads(1)
    runs = []
    for seed in SEEDS:
        corpus = manners.two_orders(seed=seed)
        start, trained_on = both_orders(corpus, seed)
        excluded = [(None, pair) for pair in trained_on]
        wenn = manners.other_sentences(N_OTHERS, NEVER_TUNED + seed, excluded)["wenn"]
        train, test = manners.preferences(corpus.tuning), manners.preferences(corpus.test)
        test.sort(key=lambda pair: len(pair.source.split()) > 8)  # short ones are shown
        model, steps = copy.deepcopy(start), [look(start, test, wenn)]

        def watch(step, model=model, steps=steps, test=test, wenn=wenn):
            if step % EVERY == 0:
                steps.append(look(model, test, wenn))

        manners.prefer(model, start, TOKENIZER, train, STEPS, BETA, seed=seed, on_step=watch)
        runs.append(
            {"seed": seed, "pairs": [list(pair) for pair in test[:N_SHOWN]], "steps": steps}
        )
        print(seed, *({k: v for k, v in one.items()} for one in steps), sep="\n", flush=True)
    lines = ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs)
    text = f'{{"every": {EVERY}, "beta": {BETA}, "runs": [\n{lines}\n]}}\n'
    Path(__file__).with_name("preference.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
