"""Run GRPO healthy and with each fault of the clinic, and take all its probes.

python -m transformer_lesson.lessons.lesson_16.measure_sick_rewards
    ten minutes on one core; writes sick_rewards.json
python -m transformer_lesson.lessons.lesson_16.measure_sick_rewards "old answers"
        one run or several
"""

import copy
import json
import sys

import torch

from transformer_lesson.lessons.lesson_16 import manners, orders
from transformer_lesson.lessons.lesson_16.measure_after_pretraining import TOKENIZER, spoiled
from transformer_lesson.lessons.lesson_16.sick_rewards import (
    FAULTS,
    HEALTHY,
    STORED,
    points,
    source,
    stored,
)
from transformer_lesson.text.grammar.lexicon import ADVERBS
from transformer_lesson.training import preferences

N_TEST, N_SHOWN = 40, 10
BEGINNING = 5  # steps from which advantages and different answers are counted


class Watched:
    """A program whose attempts, and the rewards that reach its loss, are kept step by step."""

    def __init__(self, name: str):
        self.tried, self.rewards = [], []
        names = {**vars(preferences), **vars(manners), "points": points, "TOKENIZER": TOKENIZER}
        names["attempts"] = self.attempts
        exec(source(name), names)  # noqa: S102 (our own text)
        self.loss, self.run = names["grpo_loss"], names["run"]
        names["reinforce"].__defaults__ = tuple(
            self.watch if default is self.loss else default
            for default in names["reinforce"].__defaults__
        )

    def attempts(self, model, tokenizer, sources, *args, **kwargs):
        """Draw as the lesson does."""
        tried = manners.attempts(model, tokenizer, sources, *args, **kwargs)
        self.tried.append((sources, tried.texts))
        return tried

    def watch(self, log_probs, mask, rewards):
        """Return the program's loss."""
        self.rewards.append(rewards)
        return self.loss(log_probs, mask, rewards)

    def german_advantage(self) -> float:
        """Return the mean advantage of attempts with a verb after their adverb; 0 if none has."""
        advantages = []
        for (sources, texts), rewards in zip(self.tried, self.rewards[:BEGINNING], strict=False):
            for source_, row, worth in zip(
                sources, texts, preferences.group_advantages(rewards).tolist(), strict=True
            ):
                if source_.split()[0] in ADVERBS:
                    both = zip(row, worth, strict=True)
                    advantages += [
                        advantage for text, advantage in both if orders.VERBS & {*text.split()[1:2]}
                    ]
        return sum(advantages) / max(1, len(advantages))


def record(name: str) -> dict:
    """Train with one fault, and return what is stored of it."""
    corpus, seed = manners.short_sentences(), int(name == "another seed")
    practice, watched, starts = [pair for _, pair in corpus.practice], Watched(name), []

    def start(share: float):
        starts.append(spoiled(corpus, seed, share))
        return copy.deepcopy(starts[0])

    model, means = watched.run(start, practice, None)
    pairs = [pair for _, pair in orders.with_adverb(corpus.test, N_TEST)]
    shown = manners.attempts(model, TOKENIZER, [pair.source for pair in pairs[:N_SHOWN]], 1, seed=5)
    outputs = [
        f"{'✓' if text == pair.target else '✗'} {text}"
        for (text,), pair in zip(shown.texts, pairs, strict=False)
    ]
    equal = [
        (rewards == rewards[:, :1]).all(1).float().mean().item() for rewards in watched.rewards
    ]
    groups = [row for _, texts in watched.tried[:BEGINNING] for row in texts]
    probes = {
        "praise by order": watched.german_advantage(),
        "equal groups": sum(equal) / len(equal),
        "variety": sum(len(set(row)) for row in groups) / len(groups),
        **at_end(model, starts[0], [pair.source for pair in pairs]),
        "ten outputs": sum(output[0] == "✓" for output in outputs),
    }
    test = [pair for _, pair in corpus.test[:100]]
    return {
        "losses": [round(loss, 3) for loss in means],
        "evaluation": round(manners.share_right(model, TOKENIZER, test), 3),
        "probes": {probe: round(number, 3) + 0.0 for probe, number in probes.items()},
        "outputs": outputs,
    }


@torch.no_grad()
def at_end(model, start, sources: list[str]) -> dict[str, float]:
    """Return entropy, length, and nats moved of eight attempts at each sentence."""
    tried = manners.attempts(model, TOKENIZER, sources, 8, seed=7)
    log_p, mask = manners.in_groups(model, TOKENIZER, sources, tried)
    texts = [text for row in tried.texts for text in row]
    return {
        "entropy": (-(log_p * mask).sum() / mask.sum()).item(),
        "length": sum(len(text.split()) for text in texts) / len(texts),
        "nats moved": manners.drift(start, TOKENIZER, sources, tried, log_p).mean().item(),
    }


def main() -> None:
    """Run every program that was asked for, or all, and store what it gave."""
    torch.set_num_threads(1)
    runs = stored() if STORED.exists() else {}
    for name in sys.argv[1:] or (HEALTHY, *FAULTS):
        runs[name] = record(name)
        print(name, json.dumps(runs[name], ensure_ascii=False), flush=True)
        lines = [f" {json.dumps(n)}: {json.dumps(runs[n], ensure_ascii=False)}"
                 for n in (HEALTHY, *FAULTS) if n in runs]  # fmt: skip
        STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
