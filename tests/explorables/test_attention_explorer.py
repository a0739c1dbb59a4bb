"""The attention explorer: weights as the formula says, every knob, any sentence."""

import math
import re
import warnings
from collections import Counter
from itertools import chain, product
from statistics import fmean, pstdev

import pytest
import torch

from transformer_lesson.explorables import AttentionExplorer
from transformer_lesson.explorables.attention_explorer import (
    D_MODEL,
    HEADS,
    MAX_WORDS,
    SENTENCE,
    render_attention,
    sentence_weights,
    word_vectors,
)
from transformer_lesson.text import manual
from transformer_lesson.text.tokenizers import words

DEFAULT = {"sentence": SENTENCE, "query": 0, "n_heads": 4, "head": 0} | {
    "scaled": True,
    "temperature": 1.0,
    "mask": "none",
}
HOSTILE = [
    "unicorn zyxwv",
    "x" * 10_000,
    "word " * 2_000,
    "<script>alert(1)</script>",
    "</p><img src=x onerror=alert(1)>",
    "🦄🚀 👩‍👩‍👧",
    "שלום عالم",
    "中文 日本語",
    r"$\frac{1}{$ $ _^ \alpha",
    "a\x00b\x07",
    "\ud800 half",
    "\u202eabc\u200b",
]


def pictures(values):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return render_attention.__wrapped__(**DEFAULT | values)


def test_weights_are_softmax_of_scaled_products_of_the_heads_numbers():
    tokens = ("a", "type", "value")
    x = torch.stack([word_vectors()[token] for token in tokens])
    part = x[:, 16:32]  # the second of four heads
    expected = (part @ part.T / math.sqrt(16) / 2).softmax(dim=-1)
    weights = sentence_weights(tokens, 4, True, 2.0, False)
    torch.testing.assert_close(weights[1], expected)
    unscaled = sentence_weights(tokens, 4, False, 2.0, False)
    torch.testing.assert_close(unscaled[1], (part @ part.T / 2).softmax(dim=-1))


def test_causal_mask_hides_later_words():
    weights = sentence_weights(("a", "type", "value"), 2, True, 1.0, True)
    assert (weights.triu(1) == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3))


def test_vectors_have_mean_zero_and_variance_one():
    x = torch.stack(list(word_vectors().values()))
    assert x.shape[1] == D_MODEL and len(x) > 1000
    counted = x.abs().sum(1) > 0
    torch.testing.assert_close(x.mean(1), torch.zeros(len(x)), atol=1e-5, rtol=0)
    assert (x[counted].var(1, correction=0) - 1).abs().max() < 0.01


def test_a_vector_holds_counts_near_frequent_words_against_chance():
    texts = [words(text.lower()) for text in manual.sentences()]
    counted = Counter(chain.from_iterable(texts))
    frequent = [word for word, _ in counted.most_common() if word.isalpha()][:D_MODEL]
    near = Counter()  # (word, frequent word): how often they stand at most two apart
    for text in texts:
        for i, word in enumerate(text):
            near.update((word, other) for other in text[max(i - 2, 0) : i] + text[i + 1 : i + 3])
    kept = {pair: count for pair, count in near.items() if pair[1] in frequent}
    total = sum(kept.values())
    row = [kept.get(("tuple", other), 0) for other in frequent]
    columns = [sum(count for pair, count in kept.items() if pair[1] == f) for f in frequent]
    expected = [sum(row) * column / total for column in columns]
    logs = [math.log((a + 1) / (b + 1)) for a, b in zip(row, expected, strict=True)]
    normal = (torch.tensor(logs) - fmean(logs)) / pstdev(logs)
    torch.testing.assert_close(word_vectors()["tuple"], normal, atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    "word, alike, other",
    [("list", "tuple", "the"), ("the", "a", "list"), ("returned", "created", "the")],
)
def test_words_used_alike_match_better(word, alike, other):
    vectors = word_vectors()
    assert vectors[word] @ vectors[alike] > vectors[word] @ vectors[other] + 10


def test_text_states_the_weights_that_are_drawn():
    text = render_attention(**DEFAULT | {"query": 4, "head": 1}).text
    tokens = tuple("Every object has an identity , a type and a value .".split())
    weights = sentence_weights(tokens, 4, True, 1.0, False)[1, 4]
    strongest = weights.argsort(descending=True, stable=True)[
        :3
    ]  # which ones: as the manual has it
    stated = ", ".join(f"{weights[key]:.2f} to “{tokens[key]}”" for key in strongest)
    assert f"The query “identity” gives {stated}." in text
    assert "Head 1 of 4, d_head 16, scores divided by √16 and by temperature 1" in text


def test_unknown_words_attend_evenly_and_are_named():
    drawn = render_attention(**DEFAULT | {"sentence": "unicorn a list the", "query": 0})
    assert "gives 0.25 to “unicorn”, 0.25 to “a”, 0.25 to “list”" in drawn.text
    assert "Not in the manual, so all zeros: unicorn." in drawn.text


@pytest.mark.slow
@pytest.mark.parametrize("sentence", HOSTILE)
def test_any_sentence_is_drawn(sentence):
    for query, mask in product((0, 3, 500), ("none", "causal")):
        drawn = pictures({"sentence": sentence, "query": query, "mask": mask})
        assert drawn.png.startswith(b"\x89PNG")
        assert len(drawn.text) < 700
        for weight in re.findall(r"(\S+) to “", drawn.text):
            assert 0 <= float(weight) <= 1


@pytest.mark.parametrize("sentence", ["", "   ", "\n\t"])
def test_no_word_says_what_to_change(sentence):
    assert "type a sentence" in pictures({"sentence": sentence, "query": None}).text


def test_long_sentence_says_that_it_is_cut():
    assert f"Only the first {MAX_WORDS} words" in pictures({"sentence": "word " * 30}).text
    assert "Only the first" not in pictures({"sentence": "word " * MAX_WORDS}).text


@pytest.mark.slow
def test_extremes_of_every_control_are_drawn_and_repeatable():
    for n_heads, scaled, temperature in product(HEADS, (True, False), (0.1, 10.0)):
        values = {"n_heads": n_heads, "head": n_heads - 1, "scaled": scaled, "query": 11}
        drawn = pictures(values | {"temperature": temperature})
        assert drawn == pictures(values | {"temperature": temperature})
        weights = [float(weight) for weight in re.findall(r"(\S+) to “", drawn.text)]
        assert weights == sorted(weights, reverse=True) and 0 < weights[0] <= 1


def test_temperature_evens_the_weights_out():
    def best(temperature):
        text = pictures({"query": 7, "temperature": temperature}).text
        return float(re.search(r"gives (\S+) to", text).group(1))

    assert best(0.1) > best(1.0) > best(10.0)


def test_controls_follow_sentence_and_number_of_heads():
    shown = AttentionExplorer()
    controls = shown.controls
    controls["head"].value = 3
    controls["n_heads"].value = 2
    assert controls["head"].value == controls["head"].max == 1
    assert "Head 1 of 2" in shown.rendering.text
    controls["query"].value = 11
    controls["sentence"].value = "A list"
    assert [label for label, _ in controls["query"].options] == ["A", "list"]
    assert "The query “A”" in shown.rendering.text
    controls["sentence"].value = ""
    assert "type a sentence" in shown.rendering.text
    assert controls["query"].layout.display == "none"
    controls["sentence"].value = "Back again"
    assert controls["query"].layout.display is None
    assert controls["query"].value == 0 and "The query “Back”" in shown.rendering.text


def test_a_word_that_stands_twice_has_two_buttons_that_can_be_told_apart():
    labels = [label for label, _ in AttentionExplorer("a b a, a").controls["query"].options]
    assert labels == ["a", "b", "a (2)", ",", "a (3)"]


@pytest.mark.parametrize("sentence", HOSTILE)
def test_widget_takes_any_sentence(sentence):
    shown = AttentionExplorer()
    shown.controls["sentence"].value = sentence
    before = shown.picture.value
    assert "<script" not in before and "<img src=x" not in before
    last = shown.controls["query"].options[-1][1]
    shown.controls["query"].value = last
    assert shown.picture.value != before or last == 0


def test_every_control_changes_the_picture():
    shown = AttentionExplorer()
    for name, value in {"query": 3, "head": 2, "scaled": False, "temperature": 3.0}.items():
        before = shown.picture.value
        shown.controls[name].value = value
        assert shown.picture.value != before, name
    for name, value in {"mask": "causal", "n_heads": 8, "sentence": "A new one"}.items():
        before = shown.picture.value
        shown.controls[name].value = value
        assert shown.picture.value != before, name


def test_repr_is_short():
    assert repr(AttentionExplorer()).startswith("AttentionExplorer(sentence='Every object")
    assert len(repr(AttentionExplorer("word " * 2000))) < 200
