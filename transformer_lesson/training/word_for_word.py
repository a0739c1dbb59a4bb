"""An encoder that translates word by word, whole or with one of its parts left out.

What a word becomes depends on the words around it: "the" is der, die, das or den, depending on its
noun and that noun's role. Without a look at other words, the best answer is the most frequent one.
"""

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence

import torch
from torch import Tensor

from transformer_lesson.model.blocks import residual_branch, residual_branch_pre
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import EncoderOnlyTransformer
from transformer_lesson.text import pad_batch
from transformer_lesson.text.batches import Batch
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import TrainingDiverged, train
from transformer_lesson.training.config import TrainConfig
from transformer_lesson.training.history import StepReport

BRANCHES = {
    "post-norm": residual_branch,
    "pre-norm": residual_branch_pre,
    "no norm": lambda x, sublayer, norm: x + sublayer(x),
    "no residual": lambda x, sublayer, norm: norm(sublayer(x)),
}
"""What may surround a sub-layer."""


def german_of_each_word(pair: Pair) -> list[str]:
    """Return the first German word that each English word is aligned with, or ""."""
    first = {i: j for i, j in sorted(pair.alignment, reverse=True)}
    german = pair.target.split()
    return [german[first[i]] if i in first else "" for i in range(len(pair.source.split()))]


def word_batches(pairs: Sequence[Pair], tokenizer: WordTokenizer, batch_size: int) -> list[Batch]:
    """Return batches whose labels are the German of each word, or padding if it has none."""
    rows = []
    for pair in pairs:
        labels = [
            tokenizer.encode(word) or [tokenizer.pad_id] for word in german_of_each_word(pair)
        ]
        rows.append((tokenizer.encode(pair.source), [label for (label,) in labels]))
    batches = []
    for start in range(0, len(rows), batch_size):
        ids, labels = (
            pad_batch(side, tokenizer.pad_id)
            for side in zip(*rows[start : start + batch_size], strict=True)
        )
        batches.append(Batch((ids,), labels))
    return batches


def counted(pairs: Sequence[Pair], at_places: bool = False) -> dict[Hashable, Counter[str]]:
    """Return, for each English word (at each place), how often it became which German one."""
    counts: dict[Hashable, Counter[str]] = {}
    for pair in pairs:
        words = zip(pair.source.split(), german_of_each_word(pair), strict=True)
        for i, (english, german) in enumerate(words):
            if german:
                counts.setdefault((english, i) if at_places else english, Counter())[german] += 1
    return counts


def share_by_counting(known: Sequence[Pair], asked: Sequence[Pair]) -> float:
    """Return the share of words that become what they most often became at the same place.

    A word that never stood at its place is counted everywhere.
    """
    by_word, by_place = counted(known), counted(known, at_places=True)
    right = []
    for pair in asked:
        words = zip(pair.source.split(), german_of_each_word(pair), strict=True)
        for i, (english, german) in enumerate(words):
            counts = by_place.get((english, i)) or by_word.get(english)
            if german:
                right.append(counts is not None and counts.most_common(1)[0][0] == german)
    return sum(right) / len(right)


def loss_of_counting(counts: Mapping[Hashable, Counter[str]]) -> float:
    """Return the mean loss of saying each word's German as often as it was counted, in nats."""
    losses = (
        -n * math.log(n / sum(words.values())) for words in counts.values() for n in words.values()
    )
    return sum(losses) / sum(n for words in counts.values() for n in words.values())


def word_reader(
    vocab_size: int, branch: str = "post-norm", n_layers: int = 2, d_model: int = 64, seed: int = 0
) -> EncoderOnlyTransformer:
    """Return an untrained encoder with one answer per word.

    Args:
        vocab_size: words of both languages.
        branch: what surrounds each sub-layer, a key of `BRANCHES`.
        n_layers, d_model: sizes; there are 4 heads, and d_ff is 4 times d_model.
        seed: of the weights.
    """
    torch.manual_seed(seed)
    position = "pre" if branch == "pre-norm" else "post"
    sizes = {"d_model": d_model, "n_heads": 4, "n_layers": n_layers, "d_ff": 4 * d_model}
    config = ModelConfig(
        vocab_size, **sizes, max_len=32, dropout=0.0, pad_id=0, norm_position=position,
        bias=False, tie_embeddings=False,
    )  # fmt: skip
    model = EncoderOnlyTransformer(config, token_head=True)
    for block in model.encoder:
        block.branch = BRANCHES[branch]
    return model.eval()


def losses_while_learning(
    model: EncoderOnlyTransformer,
    batches: Sequence[Batch],
    steps: int,
    learning_rate: float,
    warmup_steps: int = 0,
) -> list[float]:
    """Train at a constant rate; return each step's loss, up to where a run diverged."""
    losses: list[float] = []

    def keep(report: StepReport) -> None:
        losses.append(report.loss)

    config = TrainConfig(
        steps, learning_rate, schedule="constant", warmup_steps=warmup_steps, clip=None
    )
    try:
        train(model, batches, config, on_step=keep)
    except TrainingDiverged:
        return losses
    return losses


@torch.no_grad()
def read_aloud(model: EncoderOnlyTransformer, tokenizer: WordTokenizer, sentence: str) -> list[str]:
    """Return the German that the model gives to each word of a sentence."""
    ids = torch.tensor([tokenizer.encode(sentence)])
    return [tokenizer.token(i) for i in model.predict_tokens(ids)[0].argmax(-1)]


@torch.no_grad()
def share_right(model: EncoderOnlyTransformer, batches: Sequence[Batch]) -> float:
    """Return the share of words that get their German form, from 0 to 1."""
    right = total = 0
    for (ids,), labels in batches:
        real: Tensor = labels != model.config.pad_id
        right += int((model.predict_tokens(ids).argmax(-1) == labels)[real].sum())
        total += int(real.sum())
    return right / total
