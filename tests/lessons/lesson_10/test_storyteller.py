"""Stories as batches, as a model tells them, and the tables that are its rival."""

import pytest
import torch

from transformer_lesson.lessons.lesson_10 import storyteller
from transformer_lesson.lessons.lesson_10.size_and_text import build
from transformer_lesson.lessons.lesson_10.storyteller import LENGTH, as_story, share_kept, tell
from transformer_lesson.model.gpt import gpt_forward
from transformer_lesson.text.stories import generate
from transformer_lesson.text.tokenizers import WordTokenizer

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def told():
    stories = generate(300, 0)
    return stories, WordTokenizer.train(stories)


def test_tables_forget_who_is_who(told):
    stories, tokenizer = told
    assert max(len(tokenizer.encode(story, add_special=True)) for story in stories) <= LENGTH
    short, again = (
        storyteller.CountingRival(stories, tokenizer, 3).tell(50, seed=1) for _ in range(2)
    )
    assert short == again and share_kept(short) < 0.2 < 1 == share_kept(stories)


def test_a_row_of_a_batch_is_a_story_and_the_same_seed_draws_the_same_ones(told):
    stories, tokenizer = told
    first, second = storyteller.batches(stories, tokenizer, steps=2)
    assert torch.equal(first, next(storyteller.batches(stories, tokenizer, steps=1)))
    assert first.size(0) == second.size(0) == storyteller.BATCH and (first[:, 0] == 1).all()
    assert {as_story(row, tokenizer) for row in first[:, 1:].tolist()} <= {*stories}


def test_a_story_ends_where_its_end_is_drawn_and_goes_on_from_what_is_begun(told):
    _, tokenizer = told
    model = build(tokenizer.vocab_size, 8, max_len=LENGTH)
    before = tell(model, tokenizer, 5, begun="Once there were")
    assert before == tell(model, tokenizer, 5, begun="Once there were")
    assert len({*before}) == 5 and all(one.startswith("Once there were") for one in before)
    read = []

    def ends_at_once(ids, weights):
        read.append(len(ids))
        logits = gpt_forward(ids, weights)
        logits[: len(ids) - 1, -1, tokenizer.eos_id] = 1e4  # all rows but the last one
        return logits

    assert tell(model, tokenizer, 3, begun="Pig", forward=ends_at_once)[:2] == ["Pig", "Pig"]
    assert read[:2] == [3, 1]
