"""Data sets from the Hub, with a stand-in for the package that loads them: no network needed."""

import sys
from types import ModuleType

import pytest

from transformer_lesson.text import Pair, hub_dataset

FLAT = [{"en": f"Sentence {i}", "de": f"Satz {i}", "id": i} for i in range(5)]
NESTED = [{"translation": {"de": row["de"], "en": row["en"]}} for row in FLAT]
PAIRS = [Pair(f"Sentence {i}", f"Satz {i}") for i in range(5)]


class Hub(ModuleType):
    """Stands in for the package `datasets`: remembers what was asked for and what was read."""

    def __init__(self, answer):
        super().__init__("datasets")
        self.answer, self.asked, self.n_read = answer, None, 0

    def load_dataset(self, name, subset, split, streaming):
        self.asked = (name, subset, split, streaming)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self._rows()

    def _rows(self):
        for row in self.answer:
            self.n_read += 1
            yield row


@pytest.fixture
def hub(monkeypatch):
    def install(answer):
        stand_in = Hub(answer)
        monkeypatch.setitem(sys.modules, "datasets", stand_in)
        return stand_in

    return install


@pytest.mark.parametrize("rows", [FLAT, NESTED], ids=["columns", "translation"])
def test_both_forms_of_rows(hub, rows):
    stand_in = hub(rows)
    assert hub_dataset("wmt/wmt14", "de-en") == PAIRS
    assert stand_in.asked == ("wmt/wmt14", "de-en", "train", True)
    reverse = hub_dataset("wmt/wmt14", source="de", target="en", split="test")
    assert reverse[3] == Pair("Satz 3", "Sentence 3")
    assert stand_in.asked == ("wmt/wmt14", None, "test", True)


def test_empty_sides_are_left_out_and_counted_and_a_limit_reads_no_further(hub):
    hub([{"en": None, "de": "Satz"}, {"en": " ", "de": ""}, *FLAT])
    with pytest.warns(UserWarning, match="some: left out 1 empty lines and 1 lines .* line 1"):
        assert hub_dataset("some") == PAIRS
    stand_in = hub(FLAT)
    assert hub_dataset("bentrevett/multi30k", limit=2) == PAIRS[:2]
    assert stand_in.n_read == 2
    with pytest.raises(ValueError, match="limit must be 1 or more pairs, or None for all, got -1"):
        hub_dataset("bentrevett/multi30k", limit=-1)


def test_a_missing_package_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match="with `pip install datasets` and restart"):
        hub_dataset("wmt/wmt14")


NotFound = type("NotFound", (FileNotFoundError,), {})  # as `datasets` raises it


@pytest.mark.parametrize(
    ("answer", "raised", "message"),
    [
        (ConnectionError("Couldn't"), ConnectionError, "did not answer .*: check the network"),
        (NotFound("doesn't exist"), ValueError, "no public data set 'some': check the name"),
        (ValueError("Bad: x."), ValueError, r"'some' cannot be loaded .* Bad: x\."),
        ([{"text": "a", "label": 1}], ValueError, "columns 'en' and 'de', it has text, label: say"),
        ([{"translation": "a", "id": 1}], ValueError, "it has translation, id: say which two"),
        ([{"en": "a", "de": 7}], ValueError, "column 'de' of 'some' holds 7, which is not text"),
        ([], ValueError, "'some' holds no pairs in 'train': try another split"),
    ],
)
def test_what_holds_no_translations_is_refused_in_a_sentence(hub, answer, raised, message):
    hub(answer)
    with pytest.raises(raised, match=message) as caught:
        hub_dataset("some")
    assert caught.value.__cause__ is (answer if isinstance(answer, Exception) else None)
