"""A small decoder learns to add: at once, with its work written out, or by asking a calculator.

The prompt is "047+385=". What is written after it decides what the model can learn:

    direct       0432
    scratchpad   7521;4831;0340=0432     from the right: two digits, their sum's last, the carry
    calculator   [047+385]0432=0432      what stands behind "]" is written by a program
"""

from collections.abc import Callable, Iterator, Sequence
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
        given: how many characters of the answer, up to that place, a program writes.
    """

    prompt: str
    answer: str
    result: str
    given: tuple[int, int] = (0, 0)


def problem(a: int, b: int, n_digits: int, way: str) -> Problem:
    """Return an addition of two numbers, both filled up with zeros to a number of digits.

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
    """Batches of additions, all of one length, without end; with `fixed`, of those problems alone.

    Labels are `<pad>`, so that nothing is asked for, where a program writes, and in the prompt.

    Args:
        way: one of `WAYS`.
        masked: False leaves the prompt in what is learned.
        fixed: problems of one length to learn instead of random ones.
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
        texts = [TOKENIZER.encode(one.prompt + one.answer) for one in choice]
        ids = pad_batch([[*text, TOKENIZER.eos_id] for text in texts], TOKENIZER.pad_id)
        inputs, labels = shift_right(ids)
        labels = labels.clone()
        for row, one in zip(labels, choice, strict=True):
            start = len(one.prompt) - 1  # where the label is the answer's first character
            if self.masked:
                row[:start] = TOKENIZER.pad_id
            row[start + one.given[0] : start + one.given[1]] = TOKENIZER.pad_id
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
    """Train a model on additions: some twenty seconds on one core."""
    config = TrainConfig(
        steps=steps, learning_rate=rate, weight_decay=0.01, precision="float32", seed=batches.seed
    )
    return train(model, batches, config)


def results(
    model: DecoderOnlyTransformer,
    asked: Sequence[Problem],
    strategy: generation.Greedy | generation.Sample | None = None,
) -> list[str]:
    """Return what the model says is each sum: what it wrote behind its last "="."""
    prompts = [TOKENIZER.encode(one.prompt) for one in asked]
    room = max(len(one.answer) for one in asked) + 2
    strategy = strategy or generation.Greedy()
    written = generation.generate(model, prompts, room, strategy, eos_id=TOKENIZER.eos_id)
    return [TOKENIZER.decode(ids).split("=")[-1] for ids in written.ids]


def share_right(said: Sequence[str], asked: Sequence[Problem]) -> float:
    """Return the share of sums that are right."""
    return sum(a == b.result for a, b in zip(said, asked, strict=True)) / len(asked)


def voted(model: DecoderOnlyTransformer, asked: Sequence[Problem], k: int = 8) -> dict[str, float]:
    """Return the share that is right of one draw, of the majority of k, and of the best of k."""
    drawn = [results(model, asked, generation.Sample(seed=seed)) for seed in range(k)]
    of_each = list(zip(*drawn, strict=True))
    return {
        "one": sum(share_right(said, asked) for said in drawn) / k,
        "majority": share_right([majority(said) for said in of_each], asked),
        "best": sum(one.result in said for said, one in zip(of_each, asked, strict=True))
        / len(asked),
    }


def calculate(asked: str) -> str:
    """Return the sum of what stands in brackets, as the answers are written; "" if it is none."""
    left, plus, right = asked.partition("+")
    if not (plus and left.isdecimal() and right.isdecimal()):
        return ""
    return f"{int(left) + int(right):0{max(len(left), len(right)) + 1}d}"


def with_calculator(
    model: DecoderOnlyTransformer,
    prompt: str,
    calculate: Callable[[str], str] = calculate,
    most_calls: int = 3,
) -> str:
    """Let a model write, and where it asks "[...]" write the answer for it and let it go on.

    Args:
        prompt: an addition.
        calculate: takes what stands in brackets, returns its value as text.
        most_calls: after so many questions it writes on alone.

    Returns:
        All that was written behind the prompt.
    """
    text, ends = prompt, (TOKENIZER.eos_id, TOKENIZER.encode("]")[0])
    for _ in range(most_calls + 1):
        room = model.config.max_len - len(text)
        new = generation.generate(model, [TOKENIZER.encode(text)], room, eos_id=ends).ids[0]
        text += TOKENIZER.decode(new)
        if not text.endswith("]"):
            break
        text += calculate(text[text.rindex("[") + 1 : -1])
    return text[len(prompt) :]
