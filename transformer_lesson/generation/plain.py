"""Greedy search, beam search and sampling in their plainest form: one text.

`write_translation` is the bare loop, on words; the others work on a list of ids.

`generate` does the same for batches, with a cache.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

from transformer_lesson.generation.strategies import length_normalized


def write_translation(next_word: Callable[[str, list[str]], str], source: str) -> list[str]:
    """Ask for the next word, append it, and ask again, until the answer is "<eos>".

    Args:
        next_word: a function of the source and the list of the words so far; returns one word.
        source: the sentence to be translated.

    Returns:
        The words, without "<eos>".
    """
    written = []
    while True:
        word = next_word(source, written)
        if word == "<eos>":
            return written
        written.append(word)


def greedy_decode(
    read: Callable[[list[int], Any], tuple[Tensor, Any]],
    prompt: list[int],
    eos_id: int | None,
    max_new_tokens: int,
) -> list[int]:
    """Append the likeliest next token until it is `<eos>`; each token is read once.

    Args:
        read: a function of new ids and of what it has kept, `None` at first; returns the next
            token's logits, shape (vocab_size,), and what it keeps now.
        prompt: the ids to start from; they are read in one call.
        eos_id: the id that ends the text.
        max_new_tokens: most ids to write.

    Returns:
        The new ids, `<eos>` included if it was written.
    """
    ids, new, kept = [], prompt, None
    while len(ids) < max_new_tokens:
        logits, kept = read(new, kept)
        new = [int(logits.argmax())]
        ids += new
        if new == [eos_id]:
            break
    return ids


def beam_search(
    next_log_probs: Callable[[list[int]], Tensor],
    bos_id: int,
    eos_id: int | None,
    width: int,
    max_len: int,
    length_penalty: float = 0.6,
) -> tuple[list[int], float]:
    """Search for the likeliest text, keeping the `width` best hypotheses at every step.

    Each step extends every running hypothesis by every token and keeps the `width` extensions
    with the highest log-probability. Those that end in `<eos>` are finished and set aside; the
    others run on. In the end the finished hypothesis with the best length-normalized
    log-probability wins. If none is finished, the best running one does.

    Args:
        next_log_probs: a function of the ids so far; returns the next token's
            log-probabilities, shape (vocab_size,).
        bos_id: the id that every hypothesis starts with.
        eos_id: the id that finishes one.
        width: hypotheses kept at each step; 1 gives the greedy text.
        max_len: most tokens of a hypothesis, `<bos>` and `<eos>` included.
        length_penalty: see `length_normalized`.

    Returns:
        The winner's ids, from `<bos>` on, and its length-normalized log-probability.

    Source: Graves, "Sequence Transduction with Recurrent Neural Networks" (2012), section 2.5;
        Sutskever et al., "Sequence to Sequence Learning" (2014), section 3.2.
    Differs: some libraries give the place of a finished hypothesis to the next best running one
        at once. Here it is filled at the next step, so that width 1 is greedy.
    """
    running, finished = [([bos_id], 0.0)], []
    while running and len(running[0][0]) < max_len:
        extensions = [
            (ids + [token], total + log_prob)
            for ids, total in running
            for token, log_prob in enumerate(next_log_probs(ids).tolist())
            if log_prob > -math.inf
        ]
        kept = sorted(extensions, key=lambda hypothesis: hypothesis[1], reverse=True)[:width]
        finished += [hypothesis for hypothesis in kept if hypothesis[0][-1] == eos_id]
        running = [hypothesis for hypothesis in kept if hypothesis[0][-1] != eos_id]
    scored = [
        (ids, length_normalized(total, len(ids) - 1, length_penalty))
        for ids, total in finished or running
    ]
    return max(scored, key=lambda hypothesis: hypothesis[1])


def write_on(
    next_logits: Callable[[list[int]], Tensor],
    ids: Sequence[int],
    draws: Sequence[float],
    length: int,
    temperature: float = 1.0,
) -> list[int]:
    """Continue a text by one sampled token for each number drawn.

    The tokens divide the line from 0 to 1 among them, in the order of their ids, each with a part
    as long as its probability. The token on whose part the drawn number falls is written.

    Args:
        next_logits: a function of at most `length` ids; returns the next token's logits, shape
            (vocab_size,).
        ids: the text to start from; it stays as it is.
        draws: numbers from 0 to 1, 1 excluded, each of which chooses a token.
        length: the most tokens that the model reads: the newest ones.
        temperature: divides the logits; below 1 the likely tokens become likelier.

    Returns:
        All ids, including those to start from.
    """
    ids = list(ids)
    for draw in draws:
        P = (next_logits(ids[-length:]) / temperature).softmax(dim=-1)  # (vocab_size,)
        ends = P.cumsum(dim=-1)  # where each token's part of the line ends
        token = int((ends <= draw).sum())  # as many parts end before the number
        ids.append(min(token, len(P) - 1))  # rounding may leave the last end below 1
    return ids
