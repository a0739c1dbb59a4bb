"""Stories whose facts can be checked, in batches; a model that tells them, a rival that counts.

Each word is a token, each story a row.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random

import torch
from torch import Tensor

from transformer_lesson.lessons.lesson_10.size_and_text import Forward
from transformer_lesson.model.gpt import gpt_forward, gpt_weights_of
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import pad_batch
from transformer_lesson.text.stories import keeps_its_facts
from transformer_lesson.text.tokenizers import WordTokenizer

LENGTH = 100  # most tokens of a story
BATCH = 16  # stories


def batches(
    stories: Sequence[str], tokenizer: WordTokenizer, steps: int, seed: int = 0
) -> Iterator[Tensor]:
    """Yield, for each step, some stories as rows of ids, (batch, n), padded at their ends."""
    rows = [tokenizer.encode(story, add_special=True) for story in stories]
    draw = Random(seed)
    for _ in range(steps):
        yield pad_batch(draw.sample(rows, BATCH), tokenizer.pad_id)


def tell(
    model: DecoderOnlyTransformer,
    tokenizer: WordTokenizer,
    n: int,
    temperature: float = 1.0,
    seed: int = 0,
    forward: Forward = gpt_forward,
    begun: str = "",
) -> list[str]:
    """Return `n` stories of a model, with each token after `begun` sampled."""
    weights, generator = gpt_weights_of(model), torch.Generator().manual_seed(seed)
    ids = torch.tensor([[tokenizer.bos_id, *tokenizer.encode(begun)]]).expand(n, -1)
    with torch.no_grad():
        while ids.size(1) < LENGTH and (goes_on := (ids != tokenizer.eos_id).all(dim=1)).any():
            P = (forward(ids[goes_on], weights)[:, -1] / temperature).softmax(dim=-1)
            following = torch.full((n, 1), tokenizer.eos_id)
            following[goes_on] = torch.multinomial(P, 1, generator=generator)
            ids = torch.cat([ids, following], dim=1)
    return [as_story(row.tolist(), tokenizer) for row in ids]


def as_story(ids: list[int], tokenizer: WordTokenizer) -> str:
    """Return the text of a story's ids, up to the first `<eos>`."""
    ends = [*ids, tokenizer.eos_id].index(tokenizer.eos_id)
    words = tokenizer.decode(ids[:ends])
    return words.replace(" .", ".").replace(" ,", ",")


class CountingRival:
    """A mixture of n-gram tables as in Witten and Bell (1991), preferring longer known contexts.

    Args:
        stories: to count in.
        longest: most words of context.
    """

    def __init__(self, stories: Sequence[str], tokenizer: WordTokenizer, longest: int = 5):
        self.tokenizer, self.longest = tokenizer, longest
        self.followers: defaultdict[tuple, Counter] = defaultdict(Counter)
        for story in stories:
            ids = tokenizer.encode(story, add_special=True)
            for i in range(1, len(ids)):
                for n in range(min(longest, i) + 1):
                    self.followers[tuple(ids[i - n : i])][ids[i]] += 1

    def tell(self, n: int, seed: int = 0) -> list[str]:
        """Return `n` stories, with each word drawn from the mixture."""
        rng, stories = Random(seed), []
        for _ in range(n):
            ids = [self.tokenizer.bos_id]
            while ids[-1] != self.tokenizer.eos_id and len(ids) < LENGTH:
                ids.append(self._next(ids, rng))
            stories.append(as_story(ids, self.tokenizer))
        return stories

    def _next(self, ids: list[int], rng: Random) -> int:
        """Draw from the longest context, or, as often as that is new, from the next shorter one."""
        for n in range(min(self.longest, len(ids)), -1, -1):
            counts = self.followers.get(tuple(ids[len(ids) - n :]), Counter())
            count = counts.total()
            if count and (n == 0 or rng.random() * (count + len(counts)) < count):
                break
        return rng.choices(list(counts), list(counts.values()))[0]


def share_kept(stories: Sequence[str]) -> float:
    """Return the share of stories without a mistake."""
    return sum(map(keeps_its_facts, stories)) / len(stories)
