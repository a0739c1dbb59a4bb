"""A translator that picks up a habit, and three ways to teach it a different one.

Examples, comparisons, rewards: `tune` imitates sentences, `prefer` learns from pairs with a better
and a worse answer, `reinforce` from the model's own output, judged by a program. Lesson 16 runs
them live; `measure_after_pretraining` repeats them with three seeds.

Long because the three are compared side by side, and share how sentences are drawn and scored.
"""

import copy
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer_lesson import generation
from transformer_lesson.caching import copied
from transformer_lesson.generation.attempts import pass_at_k
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.stored import read_stored
from transformer_lesson.text.batches import TranslationBatches, pad_batch
from transformer_lesson.text.grammar import draw, habits
from transformer_lesson.text.grammar.meaning import Sentence
from transformer_lesson.text.pairs import Pair
from transformer_lesson.text.tokenizers import Tokenizer
from transformer_lesson.training import History, TrainConfig, train
from transformer_lesson.training.interrupt import load_whole
from transformer_lesson.training.preferences import dpo_loss, grpo_loss, sequence_log_prob

SHORT = 10  # words of German, with the period
ROOM = SHORT + 4  # most tokens of a short sentence
STORED = Path(__file__).with_name("after_pretraining.json")

Meaning = tuple[Sentence, Pair]
Reward = Callable[[str, str], float]


class Corpus(NamedTuple):
    """Distinct meanings in three parts: to pick up a habit, to practice, to test."""

    tuning: list[Meaning]
    practice: list[Meaning]
    test: list[Meaning]


class Preference(NamedTuple):
    """An English sentence, and two ways to say it in German."""

    source: str
    chosen: str
    rejected: str


def _parts(meanings: Iterator[Meaning], sizes: Sequence[int]) -> Corpus:
    return Corpus(*(list(islice(meanings, size)) for size in sizes))


def short_sentences(sizes: Sequence[int] = (2000, 1500, 200), seed: int = 0) -> Corpus:
    """Return short sentences that are wrong in English order.

    Args:
        sizes: of the three parts.
        seed: of the random sentences.
    """
    sentences = (
        (meaning, pair)
        for meaning, pair in draw.meanings(77 + seed)
        if len(pair.target.split()) <= SHORT and habits.english_order(meaning) != pair.target
    )
    return _parts(sentences, sizes)


def with_habit(meanings: Sequence[Meaning], share: float, seed: int = 0) -> list[Pair]:
    """Return pairs, a share of them in English order, the others right.

    Args:
        meanings: of the sentences.
        share: from 0, all right, to 1.
        seed: of the choice of spoiled sentences.
    """
    rng = Random(seed)
    return [
        pair._replace(target=habits.english_order(meaning)) if rng.random() < share else pair
        for meaning, pair in meanings
    ]


def two_orders(sizes: Sequence[int] = (1000, 0, 150), seed: int = 0) -> Corpus:
    """Return sentences with an adverb, which German may put first or after the verb."""
    meanings = (meaning for meaning in draw.meanings(21 + seed) if habits.subject_first(meaning[0]))
    return _parts(meanings, sizes)


def preferences(meanings: Sequence[Meaning]) -> list[Preference]:
    """Return both orders of each sentence; the one with the subject first is preferred."""
    return [
        Preference(pair.source, habits.subject_first(meaning), pair.target)
        for meaning, pair in meanings
    ]


def other_sentences(n: int, seed: int, without: Sequence[Meaning] = ()) -> dict[str, list[Pair]]:
    """Return n sentences of each kind except those with an adverb, to see what tuning does to them.

    Args:
        n: of each kind.
        seed: different from those of the tuning.
        without: meanings to exclude.
    """
    excluded = {pair.source for _, pair in without}
    sentences = {name: [] for name in habits.KINDS if name != "adverb"}
    for meaning, pair in draw.meanings(seed):
        name = habits.kind(meaning)
        if name in sentences and len(sentences[name]) < n and pair.source not in excluded:
            sentences[name].append(pair)
        if all(len(pairs) == n for pairs in sentences.values()):
            return sentences
    return sentences


def tune(
    model: EncoderDecoderTransformer,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    steps: int = 100,
    learning_rate: float = 3e-4,
    seed: int = 0,
    label_smoothing: float = 0.0,
) -> History:
    """Supervised fine-tuning: the usual `train`, with a low rate and few steps, 32 pairs in each.

    Args:
        model: changed in place; frozen weights stay.
        tokenizer: the model's.
        pairs: to imitate.
        seed: of the order of the pairs.
        label_smoothing: as in `TrainConfig`.
    """
    config = TrainConfig(
        steps=steps,
        learning_rate=learning_rate,
        warmup_steps=10,
        precision="float32",
        seed=seed,
        label_smoothing=label_smoothing,
    )
    return train(model, TranslationBatches(pairs, tokenizer, 32, seed=seed), config)


def token_log_probs(
    model: EncoderDecoderTransformer,
    source: Int[Tensor, "batch source"],
    target: Int[Tensor, "batch n"],
    pad_id: int,
) -> tuple[Float[Tensor, "batch n-1"], Bool[Tensor, "batch n-1"]]:
    """Return the log-probability of each token after <bos>, and a mask of real tokens."""
    labels = target[:, 1:]
    log_p = model(source, target[:, :-1]).log_softmax(dim=-1)  # (batch, n - 1, vocab_size)
    return log_p.gather(-1, labels[..., None]).squeeze(-1), labels != pad_id


def answer_log_probs(
    model: EncoderDecoderTransformer,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    answers: Sequence[str],
) -> Float[Tensor, " batch"]:
    """Return log P(answer | source) for each pair, in nats."""
    source = sources_of(tokenizer, sources)
    texts = [tokenizer.encode(answer, add_special=True) for answer in answers]
    target = pad_batch(texts, tokenizer.pad_id)
    logits = model(source, target[:, :-1])  # (batch, n - 1, vocab_size)
    return sequence_log_prob(logits, target[:, 1:], tokenizer.pad_id)


def sources_of(tokenizer: Tokenizer, texts: Sequence[str]) -> Int[Tensor, "batch source"]:
    """Return English sentences as ids, each with its <eos>, padded on the right."""
    ids = [[*tokenizer.encode(text), tokenizer.eos_id] for text in texts]
    return pad_batch(ids, tokenizer.pad_id)


def _optimizer(model: nn.Module, learning_rate: float) -> torch.optim.Optimizer:
    load_whole("torch._dynamo")  # otherwise loaded at an optimizer's first use
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    return torch.optim.AdamW(
        weights, lr=learning_rate, betas=(0.9, 0.98), weight_decay=0.0, fused=True
    )


def _update(
    model: nn.Module, optimizer: torch.optim.Optimizer, loss: Tensor, learning_rate: float
) -> None:
    """Take one step, with the gradient clipped to length 1."""
    for group in optimizer.param_groups:
        group["lr"] = learning_rate
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


def in_pairs(
    model: EncoderDecoderTransformer, tokenizer: Tokenizer, pairs: Sequence[Preference]
) -> tuple[Float[Tensor, "pair 2 n"], Bool[Tensor, "pair 2 n"]]:
    """Return the log-probability of each token of chosen and rejected answers, and their mask."""
    source = sources_of(tokenizer, [pair.source for pair in pairs] * 2)
    answers = [pair.chosen for pair in pairs] + [pair.rejected for pair in pairs]
    texts = [tokenizer.encode(answer, add_special=True) for answer in answers]
    target = pad_batch(texts, tokenizer.pad_id)
    outputs = token_log_probs(model, source, target, tokenizer.pad_id)
    log_p, mask = (tensor.view(2, len(pairs), -1).transpose(0, 1) for tensor in outputs)
    return log_p, mask


def prefer(
    model: EncoderDecoderTransformer,
    reference: EncoderDecoderTransformer,
    tokenizer: Tokenizer,
    pairs: Sequence[Preference],
    steps: int = 60,
    beta: float = 0.1,
    learning_rate: float = 2e-5,
    seed: int = 0,
    also_likelier: float = 0.0,
    loss_function: Callable = dpo_loss,
    on_step: Callable[[int], object] | None = None,
) -> list[tuple[float, float]]:
    """Learn from comparisons, 16 per step.

    Args:
        model: changed in place.
        reference: the model before training; not changed.
        beta: as in `dpo_loss`.
        also_likelier: weight of the chosen answers' own loss per token, which is added.
        loss_function: like `dpo_loss`.
        on_step: called after each step with its number.

    Returns:
        For each step, how much likelier the chosen and the rejected answers are than under the
        reference, in nats, averaged over the batch.
    """
    optimizer, rng, gains = _optimizer(model, learning_rate), Random(seed), []
    for step in range(1, steps + 1):
        batch = rng.sample(list(pairs), 16)
        log_p, mask = in_pairs(model, tokenizer, batch)
        with torch.no_grad():
            before, _ = in_pairs(reference, tokenizer, batch)
        loss = loss_function(log_p, before, mask, beta)
        if also_likelier:
            chosen = log_p[:, 0].masked_fill(~mask[:, 0], 0.0).sum(-1)  # (pair,)
            loss = loss - also_likelier * chosen.sum() / mask[:, 0].sum()
        _update(model, optimizer, loss, learning_rate * min(1, step / 10))
        gained = ((log_p - before).detach() * mask).sum(-1)  # (pair, 2)
        gains.append(tuple(gained.mean(0).tolist()))
        if on_step:
            on_step(step)
    return gains


class Attempts(NamedTuple):
    """Several translations of each sentence by a model.

    Args:
        texts: a list for each sentence.
        ids: <bos> and the tokens of all of them, one text after the other, (sentence * k, n).
    """

    texts: list[list[str]]
    ids: Int[Tensor, "rows n"]


def attempts(
    model: EncoderDecoderTransformer,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    k: int,
    seed: int = 0,
    room: int = ROOM,
    top_k: int | None = None,
) -> Attempts:
    """Let a model translate each sentence k times, sampling at temperature 1.

    Args:
        top_k: draw only from this many likeliest tokens.
    """
    rows = sources_of(tokenizer, sources).repeat_interleave(k, dim=0)
    strategy = generation.Sample(seed=seed, top_k=top_k)
    written = generation.generate(
        model, rows, room, strategy, eos_id=tokenizer.eos_id, bos_id=tokenizer.bos_id
    ).ids
    texts = [tokenizer.decode(ids) for ids in written]
    ids = pad_batch([[tokenizer.bos_id, *row] for row in written], tokenizer.pad_id)
    return Attempts([texts[i : i + k] for i in range(0, len(texts), k)], ids)


def exactly(text: str, reference: str) -> float:
    """Return 1 for the one right sentence, known from the grammar, and 0 for all others."""
    return float(text == reference)


def words_found(text: str, reference: str) -> float:
    """Return the share of written words that are in the reference; missing words cost nothing."""
    written, right = Counter(text.split()), Counter(reference.split())
    return (written & right).total() / max(1, written.total())


def in_groups(
    model: EncoderDecoderTransformer, tokenizer: Tokenizer, sources: Sequence[str], tried: Attempts
) -> tuple[Float[Tensor, "prompt group n"], Bool[Tensor, "prompt group n"]]:
    """Return the log-probability of each token of each attempt, and a mask of real tokens."""
    k = len(tried.texts[0])
    rows = sources_of(tokenizer, sources).repeat_interleave(k, dim=0)
    log_p, mask = token_log_probs(model, rows, tried.ids, tokenizer.pad_id)
    return log_p.view(len(sources), k, -1), mask.view(len(sources), k, -1)


def judged(tried: Attempts, pairs: Sequence[Pair], reward: Reward) -> Float[Tensor, "prompt group"]:
    """Return the reward of each attempt."""
    rows = zip(tried.texts, pairs, strict=True)
    return torch.tensor([[reward(text, pair.target) for text in texts] for texts, pair in rows])


def reinforce(
    model: EncoderDecoderTransformer,
    tokenizer: Tokenizer,
    pairs: Sequence[Pair],
    steps: int = 80,
    reward: Reward = exactly,
    learning_rate: float = 2e-4,
    seed: int = 0,
    loss_function: Callable = grpo_loss,
    room: int = ROOM,
    leash: float = 0.0,
    on_step: Callable[[int], object] | None = None,
) -> list[float]:
    """Learn from the model's own translations: 16 sentences per step, 8 attempts at each.

    Args:
        model: changed in place.
        pairs: sentences; only the reward sees their translations.
        reward: takes the output and the reference.
        seed: of the choice of sentences, and of sampling.
        loss_function: like `grpo_loss`.
        room: most tokens of a translation.
        leash: what each nat costs by which an attempt became likelier than it was at first.
        on_step: called after each step with its number.

    Returns:
        The mean reward of each step, without what the leash costs.
    """
    reference = copy.deepcopy(model)
    optimizer, rng, means = _optimizer(model, learning_rate), Random(seed), []
    for step in range(1, steps + 1):
        batch = rng.sample(list(pairs), 16)
        sources = [pair.source for pair in batch]
        tried = attempts(model, tokenizer, sources, 8, 100_000 * seed + step, room)
        rewards = judged(tried, batch, reward)  # (prompt, group)
        means.append(rewards.mean().item())
        log_p, mask = in_groups(model, tokenizer, sources, tried)
        if leash:
            rewards = rewards - leash * drift(reference, tokenizer, sources, tried, log_p)
        loss = loss_function(log_p, mask, rewards)
        _update(model, optimizer, loss, learning_rate * min(1, step / 5))
        if on_step:
            on_step(step)
    return means


@torch.no_grad()
def drift(
    reference: EncoderDecoderTransformer,
    tokenizer: Tokenizer,
    sources: Sequence[str],
    tried: Attempts,
    log_p: Float[Tensor, "prompt group n"],
) -> Float[Tensor, "prompt group"]:
    """Return by how many nats each attempt is likelier than the reference finds it.

    Args:
        log_p: of each token, by the model that has moved.
    """
    before, mask = in_groups(reference, tokenizer, sources, tried)
    return ((log_p - before) * mask).sum(-1)


def share_right(
    model: EncoderDecoderTransformer, tokenizer: Tokenizer, pairs: Sequence[Pair]
) -> float:
    """Return the share of sentences whose greedy translation is exactly right."""
    written = generation.translate(
        model, tokenizer, [pair.source for pair in pairs], max_new_tokens=24, batch_size=128
    )
    return generation.exact_match(written, [pair.target for pair in pairs])


def passes(tried: Attempts, pairs: Sequence[Pair], ks: Sequence[int]) -> dict[int, float]:
    """Return pass@k for each k, the mean over all sentences."""
    n = len(tried.texts[0])
    right = [texts.count(pair.target) for texts, pair in zip(tried.texts, pairs, strict=True)]
    return {k: sum(pass_at_k(n, c, k) for c in right) / len(right) for k in ks}


@copied
def stored() -> dict[str, Any]:
    """Return `measure_after_pretraining`'s results with three seeds.

    Raises:
        ValueError: the file is missing or damaged.
    """
    return read_stored(STORED, f"{__package__}.measure_after_pretraining")
