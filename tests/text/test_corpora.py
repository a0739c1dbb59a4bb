"""The real texts are what the lessons say they are, and batches pad where they should."""

import gzip
import json
import pydoc_data.topics
import sys

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lesson.text import count_padding, manual, menus, pad_batch

sequences_of_ids = st.lists(st.lists(st.integers(1, 99)), min_size=1).filter(any)


def test_the_manual_has_its_topics_as_plain_text_and_each_example_is_in_one():
    topics = manual.topics()
    assert len(topics) == 79 and {"while", "for", "typesseq"} <= set(topics)
    assert sum(map(len, topics.values())) == 465_012  # on every Python
    assert list(topics) == sorted(topics)
    manual.topics().clear(), manual.sentences().clear()  # what was returned is the caller's
    assert manual.topics() == topics and set(manual.EXAMPLES) <= set(manual.sentences())
    assert not set("‘’“”–—…") & set("".join(topics.values()))
    topic = manual.sentences("while")
    assert manual.EXAMPLES[-1] in topic
    assert len(topic) == 3 and set(topic) < set(manual.sentences())
    with pytest.raises(ValueError, match="no topic 'whale'; it has assert, "):
        manual.sentences("whale")


@pytest.mark.skipif(sys.version_info[:3] != (3, 11, 7), reason="another edition of the manual")
def test_the_manual_is_that_of_cpython():
    stored = json.loads(gzip.decompress(manual.STORED.read_bytes()))
    assert stored == pydoc_data.topics.topics


SMALL_MANUAL = """\
The "small" statement
*********************

   small_stmt ::= "small"

The *small* statement was broken at a hy-
phen.  It takes an expression, e.g. "f(*args)". [2] See *X* or **PEP 1**:

   small(x)  # This comment is no prose.

   Code after a blank line is still code.

* A point in a list may
  go on. And end (here.)

  Changed in version 3.3: Something that no lesson needs.

1. Changed in version 3.4: Nor this.

term
   Its explanation is prose.

| Cells | Of a table are not. |
"""


def test_cleaning_leaves_the_prose(monkeypatch):
    monkeypatch.setattr(manual, "_topics", lambda: {"small": SMALL_MANUAL})
    manual._sentences.cache_clear()
    assert manual.sentences("small") == [
        "The small statement was broken at a hy-phen.",
        'It takes an expression, e.g. "f(*args)".',
        "A point in a list may go on.",
        "And end (here.)",
        "Its explanation is prose.",
    ]
    manual._sentences.cache_clear()


def passages(text, length):
    """Every run of `length` characters of a text, whatever its line breaks."""
    text = " ".join(text.split())
    return {text[start : start + length] for start in range(len(text) - length + 1)}


def test_the_split_holds_every_topic_once_and_no_passage_of_its_sides_is_in_the_other():
    (training, validation), topics = manual.split(), manual.topics()
    for name, text in topics.items():
        held_out = name in manual.VALIDATION_TOPICS
        assert (text in validation) is held_out
        assert (text in training) is not held_out
    line_breaks = len(topics) - 2  # between the topics of each side
    assert len(training + validation) == sum(map(len, topics.values())) + line_breaks
    assert set(manual.VALIDATION_TOPICS) <= set(topics)
    assert 0.08 < len(validation) / len(training + validation) < 0.12
    assert not passages(training, 100) & passages(validation, 100)  # other topics repeat each other
    repeated = passages(topics["customization"], 100) & passages(topics["specialnames"], 100)
    assert len(repeated) > 10_000


def test_about_a_thousand_pairs_each_source_once_as_the_learner_sees_the_menus():
    menus.pairs().clear()  # what was returned is the caller's
    pairs = menus.pairs()
    assert 1040 <= len(pairs) <= 1100 and pairs == sorted(pairs)
    alike = [pair.source.casefold().rstrip(" .:…") for pair in pairs]
    assert len(set(alike)) == len(pairs)
    for text in (text for pair in pairs for text in (pair.source, pair.target)):
        assert text and text == " ".join(text.split()) and "\x04" not in text
    german = {pair.source: pair.target for pair in pairs}
    assert german["Copy this cell"] == "Diese Zelle kopieren"  # not "Diese %1 Zellen kopieren"
    assert not {"Go to line", "Go to Line…"} & set(german) and "Go to Line" in german
    assert set(menus.EXAMPLES) <= set(pairs)


def test_pairs_hang_on_no_order_of_files_and_a_missing_pack_says_what_to_install(monkeypatch):
    before, folder = menus.pairs(), menus.Path
    in_order = folder.rglob
    monkeypatch.setattr(folder, "rglob", lambda path, name: reversed([*in_order(path, name)]))
    menus._pairs.cache_clear()
    assert menus.pairs() == before
    menus._pairs.cache_clear()
    monkeypatch.setattr(menus, "PACKAGE", "no_such_package")
    with pytest.raises(ModuleNotFoundError, match="pip install jupyterlab-language-pack-de-DE"):
        menus.pairs()


@settings(deadline=None)  # a busy machine is no failure
@given(sequences_of_ids, st.sampled_from(["right", "left"]), st.sampled_from([0, 100]))
def test_padding_keeps_every_token_in_order(sequences, side, pad_id):
    batch = pad_batch(sequences, pad_id, side=side)
    assert batch.dtype == torch.int64
    longest = max(map(len, sequences))
    assert batch.shape == (len(sequences), longest)
    assert [[id_ for id_ in row if id_ != pad_id] for row in batch.tolist()] == sequences
    for row, sequence in zip(batch, sequences, strict=True):
        padding = row[len(sequence) :] if side == "right" else row[: longest - len(sequence)]
        assert padding.eq(pad_id).all()
    padded = 1 - sum(map(len, sequences)) / batch.numel()
    assert count_padding(batch, pad_id) == pytest.approx(padded)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([], 0), "at least one token, got 0 sequences"),
        (([[], []], 0), "at least one token, got 2 sequences"),
        (([[1]], -1), "pad_id must be a token id, 0 or more, got -1"),
        (([[1]], 0, "middle"), 'side must be "right" or "left", got \'middle\''),
        (([[1.5]], 0), r"\[\[1\.5\]\]|'float' object"),  # with the types checked, and without
    ],
)
def test_a_batch_that_cannot_be_made_is_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        pad_batch(*arguments)
