"""A model that learns stories, as short as it can, and the tables that are its rival."""

import pytest

from transformer_lesson.lessons.lesson_10 import storyteller
from transformer_lesson.lessons.lesson_10.storyteller import LENGTH, build, share_kept, tell, train
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


def test_a_few_steps_teach_the_form(told):
    stories, tokenizer = told
    model = build(tokenizer.vocab_size)
    before = tell(model, tokenizer, 20)
    assert before == tell(build(tokenizer.vocab_size), tokenizer, 20)
    assert list(train(model, stories, tokenizer, steps=80)) == list(range(1, 81))
    after = tell(model, tokenizer, 20, temperature=0.5)
    begin = [sum(story.startswith("Once there were") for story in told) for told in (before, after)]
    assert begin[0] <= 2 and begin[1] >= 18
