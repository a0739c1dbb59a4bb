"""Store groups of answers for `GroupExplorer`: samples of lesson 16's model, with probabilities.

For each written word, the likeliest next tokens at that point; all others are combined.

    python -m transformer_lesson.lessons.lesson_16.measure_group
        half a minute on one core; writes group.json
"""

import json
from pathlib import Path

import torch

from transformer_lesson.lessons.lesson_16 import manners
from transformer_lesson.lessons.lesson_16.measure_after_pretraining import TOKENIZER, spoiled
from transformer_lesson.text import pad_batch

GROUP, SEED = 8, 1
LIKELY = 0.03  # less likely tokens are listed only if drawn
END, OTHERS = "(end)", "(others)"
PROMPTS = {
    "today the child opens the window .": "heute macht das Kind das Fenster auf .",
    "finally the red bicycle wobbles .": "endlich wackelt das rote Fahrrad .",
    "now he closes bags .": "jetzt macht er Taschen zu .",
}

STORED = Path(__file__).with_name("group.json")


def word(tokenizer, id_: int) -> str:
    return END if id_ == tokenizer.eos_id else tokenizer.token(id_)


def context(tokenizer, log_p, drawn: set[int]) -> dict:
    """Return the possible continuations of a prefix: tokens, likeliest first, and their logits."""
    ids = {*log_p.exp().gt(LIKELY).nonzero()[:, 0].tolist(), *drawn}
    ids = sorted(ids, key=lambda id_: -log_p[id_].item())
    left = torch.ones_like(log_p, dtype=torch.bool)
    left[ids] = False
    logits = [*log_p[ids].tolist(), log_p[left].logsumexp(0).item()]
    words = [word(tokenizer, id_) for id_ in ids]
    return {"words": [*words, OTHERS], "logits": [round(logit, 3) for logit in logits]}


@torch.no_grad()
def group(model, tokenizer, source: str, right: str) -> dict:
    """Draw the answers, and look up each of their prefixes once."""
    samples = manners.attempts(model, tokenizer, [source], GROUP, SEED)
    rows = [[id_ for id_ in row if id_ != tokenizer.pad_id] for row in samples.ids.tolist()]
    ids = manners.sources_of(tokenizer, [source]).expand(GROUP, -1)
    log_p = model(ids, pad_batch(rows, tokenizer.pad_id)).log_softmax(-1)
    log_ps, drawn = {}, {}
    for i, row in enumerate(rows):
        for n in range(1, len(row)):
            log_ps[tuple(row[:n])] = log_p[i, n - 1]
            drawn.setdefault(tuple(row[:n]), set()).add(row[n])
    contexts = {key: context(tokenizer, log_ps[key], drawn[key]) for key in log_ps}
    places = list(contexts)
    answers = []
    for text, row in zip(samples.texts[0], rows, strict=True):
        keys = [tuple(row[:n]) for n in range(1, len(row))]
        words = [word(tokenizer, id_) for id_ in row[1:]]
        chosen = [contexts[k]["words"].index(w) for k, w in zip(keys, words, strict=True)]
        answers.append({"at": [places.index(k) for k in keys], "chosen": chosen,
                        "right": text == right})  # fmt: skip
    return {"source": source, "right": right, "answers": answers,
            "contexts": list(contexts.values())}  # fmt: skip


def main() -> None:
    """Draw a group of answers for each prompt, and store them."""
    torch.set_num_threads(1)
    model = spoiled(manners.short_sentences(), seed=0)
    groups = [group(model, TOKENIZER, *prompt) for prompt in PROMPTS.items()]
    lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in groups)
    STORED.write_text(f'{{"groups": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
