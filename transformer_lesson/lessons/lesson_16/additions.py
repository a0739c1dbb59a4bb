"""A small decoder learns to add: directly, with its work written out, or with a calculator.

The prompt is "047+385=". The form of the answer decides what the model can learn:

    direct       0432
    scratchpad   7521;4831;0340=0432     from the right: two digits, their sum's last, the carry
    calculator   [047+385]0432=0432      what follows "]" is written by a program
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random
from typing import NamedTuple

import torch

from transformer_lesson import generation
from transformer_lesson.generation.attempts import majority
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import Batch, EndlessBatches, pad_batch, shift_right
from transformer_lesson.text.tokenizers import CharacterTokenizer
from transformer_lesson.training import History, TrainConfig, train

DIGITS = 3  # of the longest numbers that are learned
TOKENIZER = CharacterTokenizer.train(["0123456789+=;[]"])
WAYS = ("direct", "scratchpad", "calculator")


class Problem(NamedTuple):
    """An addition as text.

    Args:
        prompt: what the model reads.
        answer: what it should write.
        result: the sum, the end of the answer.
        given: how many characters of the answer, up to that index, a program writes.
    """

    prompt: str
    answer: str
    result: str
    given: tuple[int, int] = (0, 0)


def problem(a: int, b: int, n_digits: int, way: str) -> Problem:
    """Return an addition of two numbers, both zero-padded to n_digits.

    Args:
        way: one of `WAYS`.
    """
    left, right = f"{a:0{n_digits}d}", f"{b:0{n_digits}d}"
    result = f"{a + b:0{n_digits + 1}d}"
    prompt = f"{left}+{right}="
    if way == "direct":
        return Problem(prompt, result, result)
    if way == "calculator":
        call = f"[{left}+{right}]"
        return Problem(prompt, f"{call}{result}={result}", result, (len(call), len(call + result)))
    steps, carry = [], 0
    for x, y in zip(reversed(left), reversed(right), strict=True):
        digits = int(x) + int(y) + carry
        carry = digits // 10
        steps.append(f"{x}{y}{digits % 10}{carry}")
    return Problem(prompt, f"{';'.join(steps)}={result}", result)


def problems(n: int, n_digits: int, way: str, seed: int) -> list[Problem]:
    """Return n random additions of numbers below 10^n_digits."""
    rng = Random(seed)
    return [problem(*_numbers(rng, n_digits), n_digits, way) for _ in range(n)]


def _numbers(rng: Random, n_digits: int) -> tuple[int, int]:
    return rng.randrange(10**n_digits), rng.randrange(10**n_digits)


class Additions(EndlessBatches):
    """Endless batches of additions, all of one length; with `fixed`, only of those problems.

    Labels are `<pad>`, which has no loss, in the prompt and where a program writes.

    Args:
        way: one of `WAYS`.
        masked: False also trains on the prompt.
        fixed: problems of one length to use instead of random ones.
    """

    def __init__(
        self,
        way: str,
        batch_size: int = 64,
        seed: int = 0,
        masked: bool = True,
        fixed: Sequence[Problem] = (),
    ):
        super().__init__(batch_size, seed)
        self.way, self.masked, self.fixed = way, masked, list(fixed)

    def _choices(self, generator: Random) -> Iterator[list[Problem]]:
        while True:
            n_digits = generator.randint(1, DIGITS)
            if self.fixed:
                yield generator.sample(self.fixed, min(self.batch_size, len(self.fixed)))
            else:
                pairs = (_numbers(generator, n_digits) for _ in range(self.batch_size))
                yield [problem(a, b, n_digits, self.way) for a, b in pairs]

    def _batch(self, choice: list[Problem]) -> Batch:
        texts = [TOKENIZER.encode(problem.prompt + problem.answer) for problem in choice]
        ids = pad_batch([[*text, TOKENIZER.eos_id] for text in texts], TOKENIZER.pad_id)
        inputs, labels = shift_right(ids)
        labels = labels.clone()
        for row, problem in zip(labels, choice, strict=True):
            start = len(problem.prompt) - 1  # where the label is the answer's first character
            if self.masked:
                row[:start] = TOKENIZER.pad_id
            row[start + problem.given[0] : start + problem.given[1]] = TOKENIZER.pad_id
        return Batch((inputs,), labels)


def adder(seed: int = 0) -> DecoderOnlyTransformer:
    """Return an untrained decoder of two blocks, width 64, rotary positions."""
    torch.manual_seed(seed)
    sizes = {"d_model": 64, "n_heads": 4, "n_layers": 2, "d_ff": 256, "max_len": 64}
    vocabulary = {"vocab_size": TOKENIZER.vocab_size, "pad_id": TOKENIZER.pad_id}
    choices = {"dropout": 0.0, "positions": "rotary", "tie_embeddings": False}
    return DecoderOnlyTransformer(ModelConfig(**sizes, **vocabulary, **choices)).eval()


def learn(
    model: DecoderOnlyTransformer, batches: Additions, steps: int = 700, rate: float = 5e-3
) -> History:
    """Train a model on additions: about twenty seconds on one core."""
    config = TrainConfig(
        steps=steps, learning_rate=rate, weight_decay=0.01, precision="float32", seed=batches.seed
    )
    return train(model, batches, config)


def results(
    model: DecoderOnlyTransformer,
    asked: Sequence[Problem],
    strategy: generation.Greedy | generation.Sample | None = None,
) -> list[str]:
    """Return the model's sum for each problem: what it wrote after its last "="."""
    prompts = [TOKENIZER.encode(problem.prompt) for problem in asked]
    room = max(len(problem.answer) for problem in asked) + 2
    strategy = strategy or generation.Greedy()
    written = generation.generate(model, prompts, room, strategy, eos_id=TOKENIZER.eos_id)
    return [TOKENIZER.decode(ids).split("=")[-1] for ids in written.ids]


def share_right(sums: Sequence[str], asked: Sequence[Problem]) -> float:
    """Return the share of sums that are right."""
    return sum(a == b.result for a, b in zip(sums, asked, strict=True)) / len(asked)


def voted(model: DecoderOnlyTransformer, asked: Sequence[Problem], k: int = 8) -> dict[str, float]:
    """Return the accuracy of one sample, of the majority of k, and of the best of k."""
    samples = [results(model, asked, generation.Sample(seed=seed)) for seed in range(k)]
    of_each = list(zip(*samples, strict=True))
    return {
        "one": sum(share_right(sums, asked) for sums in samples) / k,
        "majority": share_right([majority(sums) for sums in of_each], asked),
        "best": sum(problem.result in sums for sums, problem in zip(of_each, asked, strict=True))
        / len(asked),
    }


def calculate(asked: str) -> str:
    """Return the sum in brackets, written like the answers; "" if it is not an addition."""
    left, plus, right = asked.partition("+")
    if not (plus and left.isdecimal() and right.isdecimal()):
        return ""
    return f"{int(left) + int(right):0{max(len(left), len(right)) + 1}d}"


def written(model: DecoderOnlyTransformer, text: str) -> str:
    """Return what a model writes after a text, greedily: up to and with "]", or to its end."""
    ends = TOKENIZER.eos_id, TOKENIZER.encode("]")[0]
    room = model.config.max_len - len(text)
    return TOKENIZER.decode(
        generation.generate(model, [TOKENIZER.encode(text)], room, eos_id=ends).ids[0]
    )


def asking(write: Callable[[str], str], prompt: str, calculate: Callable[[str], str]) -> str:
    """Let a model write; whenever it asks "[...]", insert the answer and let it continue.

    Args:
        write: returns what the model writes after a text; it stops behind a "]", or at its end.
        prompt: what it goes on from.
        calculate: takes the text in brackets, returns its value as text.

    Returns:
        Everything that follows the prompt. Nothing is written after the fourth piece.
    """
    text = prompt
    for _ in range(4):
        new = write(text)
        text += new
        if not (new.endswith("]") and "[" in new):
            break
        text += calculate(new[new.rindex("[") + 1 : -1])
    return text.removeprefix(prompt)


def with_calculator(
    model: DecoderOnlyTransformer, prompt: str, calculate: Callable[[str], str] = calculate
) -> str:
    """Return what a model writes after a prompt, with a calculator: `asking`."""
    return asking(partial(written, model), prompt, calculate)


Read = tuple[int, int, int]


def looks(n_digits: int) -> list[tuple[Read, Read]]:
    """Return where a scratchpad's digits are read: for each step, of the first and second number.

    Each is a triple: the place that writes the digit (the character before it), the place where
    the digit is, and how far apart they are.
    """
    places = []
    for step in range(n_digits):
        writes = 2 * n_digits + 1 + 5 * step  # "=" or ";", before the step's first character
        first, second = n_digits - 1 - step, 2 * n_digits - step
        places.append(((writes, first, writes - first), (writes + 1, second, writes + 1 - second)))
    return places


@torch.no_grad()
def copied(
    model: DecoderOnlyTransformer, n_digits: int, n: int = 100, seed: int = 9
) -> list[tuple[float, float]]:
    """Return the shares of digits that a scratchpad copies rightly, with the right text before.

    Returns:
        For each step, of the first and of the second number's digit.
    """
    asked = problems(n, n_digits, "scratchpad", seed)
    ids = torch.tensor([TOKENIZER.encode(problem.prompt + problem.answer) for problem in asked])
    right = model(ids[:, :-1]).argmax(dim=-1) == ids[:, 1:]  # (n, length - 1)
    return [
        tuple(right[:, writes].float().mean().item() for writes, *_ in both)
        for both in looks(n_digits)
    ]
