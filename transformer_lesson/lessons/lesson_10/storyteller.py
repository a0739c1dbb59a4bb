"""A language model that learns stories whose facts can be checked, and a rival that counts.

The model is that of `size_and_text`, with two blocks of width 64. Each word is a token, each story
a row.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random

import torch
import torch.nn.functional as F

from transformer_lesson.lessons.lesson_10.size_and_text import Forward
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.gpt import gpt_forward, gpt_weights_of
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import pad_batch
from transformer_lesson.text.stories import keeps_its_facts
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training.interrupt import load_whole

LENGTH = 100  # most tokens of a story
BATCH = 16  # stories


def build(vocab_size: int, seed: int = 0) -> DecoderOnlyTransformer:
    """Return an untrained model that `gpt_forward` can run."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "max_len": LENGTH}
    options = {"bias": False, "dropout": 0.0, "tie_embeddings": False}
    return DecoderOnlyTransformer(ModelConfig(vocab_size=vocab_size, **sizes, **options))


def train(
    model: DecoderOnlyTransformer,
    stories: Sequence[str],
    tokenizer: WordTokenizer,
    steps: int,
    seed: int = 0,
    forward: Forward = gpt_forward,
) -> Iterator[int]:
    """Train a model on stories; yield each step's number after it."""
    load_whole("torch._dynamo")  # for torch.optim; an interrupt could leave half of it
    weights = gpt_weights_of(model)
    rows = [tokenizer.encode(story, add_special=True) for story in stories]
    choices = {"betas": (0.9, 0.98), "weight_decay": 0.1, "fused": True}
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3, **choices)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / 50, 1 - step / steps)
    )
    draw = Random(seed)
    for step in range(1, steps + 1):
        batch = pad_batch(draw.sample(rows, BATCH), tokenizer.pad_id)  # (batch, n)
        logits = forward(batch[:, :-1], weights)
        loss = F.cross_entropy(logits.mT, batch[:, 1:], ignore_index=tokenizer.pad_id)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        yield step


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
        while ids.size(1) < LENGTH and not (ids == tokenizer.eos_id).any(dim=1).all():
            P = (forward(ids, weights)[:, -1] / temperature).softmax(dim=-1)  # (n, vocab_size)
            ids = torch.cat([ids, torch.multinomial(P, 1, generator=generator)], dim=1)
    return [_told(row.tolist(), tokenizer) for row in ids]


def _told(ids: list[int], tokenizer: WordTokenizer) -> str:
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
        rng, told = Random(seed), []
        for _ in range(n):
            ids = [self.tokenizer.bos_id]
            while ids[-1] != self.tokenizer.eos_id and len(ids) < LENGTH:
                ids.append(self._next(ids, rng))
            told.append(_told(ids, self.tokenizer))
        return told

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
