"""What the command line can train: a prepared corpus, and how to evaluate the result."""

import random
from collections.abc import Callable, Iterable
from typing import NamedTuple

from torch import nn

from transformer_lesson.generation import Sample, exact_match, generate, translate
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer
from transformer_lesson.text import grammar, manual, menus
from transformer_lesson.text.batches import (
    Batch,
    TranslationBatches,
    WindowBatches,
    epoch,
    windows_in_order,
)
from transformer_lesson.text.pairs import Pair, parallel_text
from transformer_lesson.text.tokenizers import BytePairTokenizer, Tokenizer, WordTokenizer
from transformer_lesson.training.loss import bits_per_character, validation_loss
from transformer_lesson.training.recipes import GRAMMAR, MANUAL, MENUS, OWN_PAIRS, Recipe

N_GRAMMAR, N_TESTS = 50_000, 500


class Task(NamedTuple):
    """Everything about a run but the model itself and its training.

    Args:
        kind: which of the models.
        evaluate: returns sentences on how good a trained model is.
    """

    recipe: Recipe
    kind: Callable[[ModelConfig], nn.Module]
    tokenizer: Tokenizer
    batches: Iterable[Batch]
    validation: list[Batch]
    evaluate: Callable[[nn.Module], list[str]]


def make_task(corpus: str, seed: int) -> Task:
    """Prepare a corpus: "grammar", "interface", "manual", or the name of a file of pairs.

    Raises:
        ValueError: the file is not one of pairs, or its pairs are too few or too long.
    """
    if corpus == "grammar":
        train, unseen, combinations = grammar.splits(N_GRAMMAR, N_TESTS, seed=0)
        tokenizer = WordTokenizer.train(_texts(train))
        tests = {"unseen sentences": unseen, "unseen combinations": combinations}
        return _translation(GRAMMAR, tokenizer, train, tests, seed)
    if corpus == "interface":
        train, held_out = _hold_out(menus.pairs())
        tokenizer = BytePairTokenizer.train(_texts(train), 1000)
        return _translation(MENUS, tokenizer, train, {"unseen menu entries": held_out}, seed)
    if corpus == "manual":
        return _language_model(MANUAL, *manual.split(), seed)
    train, held_out = _hold_out(parallel_text(corpus))
    tokenizer = BytePairTokenizer.train(_texts(train), 4000)
    return _translation(OWN_PAIRS, tokenizer, train, {"unseen sentences": held_out}, seed)


def _translation(
    recipe: Recipe,
    tokenizer: Tokenizer,
    train: list[Pair],
    tests: dict[str, list[Pair]],
    seed: int,
) -> Task:
    longest = recipe.sizes["max_len"]
    train = _short_enough(train, tokenizer, longest)
    tests = {name: _short_enough(pairs, tokenizer, longest) for name, pairs in tests.items()}

    def evaluate(model: nn.Module) -> list[str]:
        """Say how many sentences of each test are right, and show one."""
        sentences = []
        for name, pairs in tests.items():
            written = translate(model, tokenizer, [pair.source for pair in pairs])
            right = exact_match(written, [pair.target for pair in pairs])
            sentences.append(f"{right:.1%} of {len(pairs)} {name} translated word for word.")
        example, german = pairs[0], written[0]
        return [*sentences, f"{example.source!r} became {german!r}."]

    first = next(iter(tests.values()))
    return Task(
        recipe=recipe,
        kind=EncoderDecoderTransformer,
        tokenizer=tokenizer,
        batches=TranslationBatches(train, tokenizer, recipe.batch_size, seed),
        validation=epoch(first, tokenizer, recipe.batch_size),
        evaluate=evaluate,
    )


def _language_model(recipe: Recipe, train: str, held_out: str, seed: int) -> Task:
    tokenizer = BytePairTokenizer.train([train], 1000)
    length, ids = recipe.sizes["max_len"], tokenizer.encode(held_out)
    validation = windows_in_order(ids, recipe.batch_size, length)

    def evaluate(model: nn.Module) -> list[str]:
        """Say how well it predicts unseen text, and show what it writes."""
        loss = validation_loss(model, validation, recipe.training.precision)
        bits = bits_per_character(loss, len(ids) - 1, len(held_out))
        start = ids[:8]
        written = generate(model, start, length - 8, Sample(temperature=0.8, top_k=40), eos_id=None)
        text = tokenizer.decode([*start, *written.ids[0]])
        return [f"{bits:.3f} bits per character on unseen text.", f"It writes: {text!r}"]

    return Task(
        recipe=recipe,
        kind=DecoderOnlyTransformer,
        tokenizer=tokenizer,
        batches=WindowBatches(tokenizer.encode(train), recipe.batch_size, length, seed),
        validation=validation,
        evaluate=evaluate,
    )


def _texts(pairs: list[Pair]) -> list[str]:
    return [text for pair in pairs for text in (pair.source, pair.target)]


def _hold_out(pairs: list[Pair]) -> tuple[list[Pair], list[Pair]]:
    """Split pairs at random, the same way each time: a tenth, at most N_TESTS, is held out."""
    by_source = {pair.source: pair for pair in pairs}  # no sentence on both sides
    pairs = random.Random(0).sample(list(by_source.values()), len(by_source))
    n = min(N_TESTS, len(pairs) // 10)
    if n == 0:
        raise ValueError(f"there are {len(pairs)} different pairs, but 10 or more are needed.")
    return pairs[n:], pairs[:n]


def _short_enough(pairs: list[Pair], tokenizer: Tokenizer, longest: int) -> list[Pair]:
    """Leave out pairs too long for the model, and say how many."""
    kept = [pair for pair in pairs if max(len(tokenizer.encode(t)) for t in pair[:2]) < longest]
    if not kept:
        raise ValueError(
            f"every pair has a sentence of more than {longest - 1} tokens: split them."
        )
    if len(kept) < len(pairs):
        print(f"{len(pairs) - len(kept)} pairs of {longest} tokens or more are left out.")
    return kept
