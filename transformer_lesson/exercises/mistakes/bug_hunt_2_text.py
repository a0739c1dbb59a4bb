"""Lesson 14, second part: half repairs and other bugs in text in and text out."""

import torch

from transformer_lesson.exercises.bug_hunt import bugs_2
from transformer_lesson.exercises.specification import Mistake


def written(next_logits, prompt, eos_id, n_new, sees=slice(None), past=0, keep=True):
    """Write up to `<eos>`, and `past` tokens more."""
    ids, left = list(prompt), None
    for _ in range(n_new):
        token = int(next_logits(ids[sees]).argmax())
        if token == eos_id and not keep:
            break
        ids.append(token)
        if token == eos_id and left is None:
            left = past + 1
        left = left and left - 1
        if left == 0:
            break
    return ids


def stops_at_any_end(next_logits, prompt, eos_id, n_new):
    """Look for `<eos>` in the whole list."""
    ids = list(prompt)
    for _ in range(n_new):
        ids.append(int(next_logits(ids).argmax()))
        if eos_id in ids:
            break
    return ids


def asks_first(next_logits, prompt, eos_id, n_new):
    """Look at the last token before the first one is written."""
    ids = list(prompt)
    while ids[-1] != eos_id and len(ids) < len(prompt) + n_new:
        ids.append(int(next_logits(ids).argmax()))
    return ids


def filled(next_logits, start, rounds, axis=1, best=None):
    """Append a token to each text in each round, with places for a bug."""
    ids = start
    for _ in range(rounds):
        logits = next_logits(ids)
        tokens = logits.argmax(dim=-1) if best is None else best(logits)
        ids = torch.cat([ids, tokens.unsqueeze(axis)], dim=1)
    return ids


BUG_HUNT_2_TEXT_MISTAKES = {
    "continue_text": (
        Mistake(
            "a loop that never looks for the end",
            "It always writes `max_new_tokens`. What stands after `<eos>` was never trained: "
            "noise. Look at each token that you append.",
            bugs_2.continue_text,
        ),
        Mistake(
            "an end that is not kept",
            "The loop stops, but `<eos>` is missing in the result. Whoever reads it cannot tell "
            "a finished text from one that was cut off.",
            lambda *inputs: written(*inputs, keep=False),
        ),
        Mistake(
            "one token after the end",
            "The test looks at the token before the last, or comes before the append: one token "
            "is written after `<eos>`.",
            lambda *inputs: written(*inputs, past=1),
        ),
        Mistake(
            "an end found in the prompt",
            "`eos_id in ids` is true from the start when the prompt holds one (GPT-2 begins "
            "every text with it). Look at `ids[-1]`, after the append.",
            stops_at_any_end,
        ),
        Mistake(
            "a test before the first token",
            "A prompt that ends with `<eos>` gets no answer. Append first, then look.",
            asks_first,
        ),
        Mistake(
            "a maximum that counts the prompt",
            "`max_new_tokens` counts what is new. With a long prompt nothing is left of it.",
            lambda f, prompt, eos_id, n: written(f, prompt, eos_id, max(0, n - len(prompt))),
        ),
        Mistake(
            "a model that reads the last token only",
            "`next_logits` takes all ids so far, the prompt included.",
            lambda *inputs: written(*inputs, sees=slice(-1, None)),
        ),
    ),
    "look_up": (
        Mistake(
            "an unknown word that becomes None",
            "Nothing complains here. `torch.tensor` fails later, somewhere else, and does not say "
            "which word it was.",
            bugs_2.look_up,
        ),
        Mistake(
            "an unknown word left out",
            "The list gets shorter and the sentence says something else: an unknown word is a "
            "word too, and has the id `unk_id`.",
            lambda words, vocabulary, unk_id: [vocabulary[w] for w in words if w in vocabulary],
        ),
        Mistake(
            "an error at the unknown word",
            "It is honest, and says which word it was. But anybody may type any word, and "
            "`unk_id` is there for it.",
            lambda words, vocabulary, unk_id: [vocabulary[word] for word in words],
        ),
        Mistake(
            "the id 0 taken for missing",
            "`get(word) or unk_id` takes `unk_id` for whatever counts as false: `None`, and the "
            "id 0 too. Give `get` a second argument.",
            lambda words, vocabulary, unk_id: [vocabulary.get(word) or unk_id for word in words],
        ),
        Mistake(
            "the id 0 for an unknown word",
            "0 is the id of some token, here of a word or of nothing. The one that means "
            "*unknown* is `unk_id`.",
            lambda words, vocabulary, unk_id: [vocabulary.get(word, 0) for word in words],
        ),
        Mistake(
            "an id past the end of the vocabulary",
            "The embedding has no row for it, or a row of something else. Use `unk_id`.",
            lambda words, vocabulary, unk_id: [vocabulary.get(w, len(vocabulary)) for w in words],
        ),
    ),
    "fill_up": (
        Mistake(
            "the number of texts taken for their length",
            "`len(start)` is `start.size(0)`, how many texts there are. And `unsqueeze(0)` makes "
            "one row of what should be a column.",
            bugs_2.fill_up,
        ),
        Mistake(
            "a row of new tokens",
            "The number of rounds is right. `best.unsqueeze(0)` has shape (1, batch) and fits for "
            "one text only; a column has shape (batch, 1).",
            lambda f, start, length: filled(f, start, length - start.size(1), axis=0),
        ),
        Mistake(
            "the number of texts still taken for their length",
            "The new tokens stand in a column now. But `len(start)` counts texts, not tokens.",
            lambda f, start, length: filled(f, start, length - len(start)),
        ),
        Mistake(
            "a length that counts new tokens only",
            "`length` is the number of tokens in the end, those of `start` included.",
            lambda f, start, length: filled(f, start, length),
        ),
        Mistake(
            "a round too few",
            "From `start.size(1)` to `length` there are `length - start.size(1)` rounds.",
            lambda f, start, length: filled(f, start, length - start.size(1) - 1),
        ),
        Mistake(
            "one token for the whole batch",
            "`argmax` without an axis looks at all texts together. Each text has a likeliest "
            "token of its own: `dim=-1`.",
            lambda f, start, length: filled(
                f,
                start,
                length - start.size(1),
                best=lambda logits: logits.argmax().expand(len(logits)),
            ),
        ),
    ),
}
