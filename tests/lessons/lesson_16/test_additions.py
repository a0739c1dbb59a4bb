"""Additions as text: what is written, what is learned of it, and what a calculator is asked."""

import pytest
import torch

from transformer_lesson import generation
from transformer_lesson.lessons.lesson_16 import additions
from transformer_lesson.lessons.lesson_16.additions import TOKENIZER, Additions, problem

WRITTEN = {
    "direct": "0432",
    "scratchpad": "7521;4831;0340=0432",
    "calculator": "[047+385]0432=0432",
}


@pytest.mark.parametrize("way", additions.WAYS)
def test_the_work_is_written_from_the_right_and_ends_with_the_sum(way):
    assert problem(47, 385, 3, way)[:3] == ("047+385=", WRITTEN[way], "0432")


@pytest.mark.parametrize("way", additions.WAYS)
def test_nothing_is_learned_but_what_the_model_itself_has_to_write(way):
    batch = next(iter(Additions(way, 3, seed=5)))
    (inputs,), labels = batch
    text = [TOKENIZER.decode(row) for row in inputs]
    asked = [TOKENIZER.decode(row, keep_special=True).replace("<pad>", "_") for row in labels]
    for read, label in zip(text, asked, strict=True):
        prompt, _, written = read.partition("=")
        if way == "calculator":
            call, _, rest = written.partition("]")
            given, _, rest = rest.partition("=")
            wanted = f"{call}]{'_' * len(given)}={rest}"
        else:
            wanted = written
        assert label == "_" * len(prompt) + wanted + "<eos>"
    (_,), whole = next(iter(Additions(way, 3, seed=5, masked=False)))
    assert (whole == TOKENIZER.pad_id).sum() < (labels == TOKENIZER.pad_id).sum()


def test_a_program_answers_what_stands_in_brackets_and_not_for_ever(monkeypatch):
    said = iter(["[047+385]", "=0432"])

    def write(model, prompts, room, eos_id):
        read.append(TOKENIZER.decode(prompts[0]))
        return generation.Generation([TOKENIZER.encode(next(said))], [[]], [True])

    read, model = [], additions.adder()
    monkeypatch.setattr(generation, "generate", write)
    assert additions.with_calculator(model, "047+385=") == WRITTEN["calculator"]
    assert read == ["047+385=", "047+385=[047+385]0432"]
    said = iter(["[1+]"] * 9)
    assert additions.with_calculator(model, "1+2=") == "[1+]" * 4


@pytest.mark.slow
def test_it_learns_and_known_problems_are_all_that_are_drawn():
    model, known = additions.adder(1), additions.problems(5, 1, "direct", seed=2)
    batches = Additions("direct", seed=1, fixed=known)
    rows = {tuple(row) for row in next(iter(batches)).inputs[0].tolist()}
    assert len(rows) == 5
    losses = additions.learn(model, batches, steps=40).losses
    assert losses[-1] < 0.2 * losses[0]
    said = additions.results(model, known)
    assert additions.share_right(said, known) == 1.0
    assert additions.voted(model, known, k=2).keys() == {"one", "majority", "best"}
    assert torch.equal(*(next(iter(Additions("direct", seed=3))).labels for _ in range(2)))


@pytest.mark.parametrize("n_digits", (1, 3, 4))
def test_the_digits_are_where_the_picture_says_that_they_are_read(n_digits):
    one = problem(123456 % 10**n_digits, 987654 % 10**n_digits, n_digits, "scratchpad")
    text = one.prompt + one.answer
    for both in additions.looks(n_digits):
        for writes, stands, apart in both:
            assert text[writes + 1] == text[stands] and writes - stands == apart
