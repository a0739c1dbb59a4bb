"""A model that learns stories, as short as it can, and the tables that are its rival."""

import pytest

from transformer_lesson.experiments.storyteller import (
    LENGTH,
    CountingRival,
    build,
    share_kept,
    tell,
    train,
)
from transformer_lesson.text.stories import generate
from transformer_lesson.text.tokenizers import WordTokenizer

STORIES = generate(300, 0)
TOKENIZER = WordTokenizer.train(STORIES)


def test_tables_forget_who_is_who():
    assert max(len(TOKENIZER.encode(story, add_special=True)) for story in STORIES) <= LENGTH
    short, again = (CountingRival(STORIES, TOKENIZER, 3).tell(50, seed=1) for _ in range(2))
    assert short == again and share_kept(short) < 0.2 < 1 == share_kept(STORIES)


@pytest.mark.slow
def test_a_few_steps_teach_the_form():
    model = build(TOKENIZER.vocab_size)
    before = tell(model, TOKENIZER, 20)
    assert before == tell(build(TOKENIZER.vocab_size), TOKENIZER, 20)
    assert list(train(model, STORIES, TOKENIZER, steps=80)) == list(range(1, 81))
    after = tell(model, TOKENIZER, 20, temperature=0.5)
    begin = [sum(story.startswith("Once there were") for story in told) for told in (before, after)]
    assert begin[0] <= 2 and begin[1] >= 18
