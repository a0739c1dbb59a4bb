"""The translation playground: kind reading, true attention, no text that breaks it."""

import io
import re
import time
import warnings
from itertools import product

import pytest
import torch
from PIL import Image

from tests.explorables.tiny_models import ENGLISH, grammar_translator, translator
from tests.patience import AT_ONCE
from transformer_lesson.checkpoints import save_checkpoint
from transformer_lesson.explorables import TranslationPlayground, trained
from transformer_lesson.explorables.translation_playground import (
    cross_attention,
    render_translation,
    watch_translation,
)
from transformer_lesson.explorables.typed_sentence import read_sentence, source_ids
from transformer_lesson.generation import generate
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.model.hooks import record
from transformer_lesson.text import grammar

WORDS = ENGLISH.split()


@pytest.fixture
def playground():
    return TranslationPlayground(*translator(), "the cat sees the dog .")


@pytest.fixture
def comes_with_the_package(tmp_path, monkeypatch):
    """Put an untrained translator where the trained one lies, and return it."""
    model, tokenizer = grammar_translator()
    save_checkpoint(tmp_path / "translator.safetensors", model, tokenizer)
    monkeypatch.setattr(trained, "TRANSLATOR", tmp_path / "translator.safetensors")
    trained.trained_translator.cache_clear()
    yield model, tokenizer
    trained.trained_translator.cache_clear()


@pytest.mark.parametrize(
    "typed, read",
    [
        ("the cat sees the dog .", "the cat sees the dog ."),
        ("The Cat SEES the dog.", "the cat sees the dog ."),
        ("anna doesn't open", "Anna does not open"),
        ("Anna Doesn’t open", "Anna does not open"),
        ("the\u202e cat\x00 \ud800sees", "the cat sees"),  # what nobody can see
        ("", ""),
        (" \n\t", ""),
    ],
)
def test_a_sentence_is_read_kindly(typed, read):
    reading = read_sentence(typed, WORDS)
    assert reading.tokens == tuple(read.split())
    assert all(reading.known) and not reading.offers


def test_changes_are_told():
    reading = read_sentence("The cat doesn't open", WORDS, closing=".")
    assert reading.tokens[-1] == "."
    assert reading.changes == (
        "Read “The” as “the”, “doesn't” as “does not”.",
        "A “.” was added: every sentence of the corpus ends with one.",
    )


def test_nothing_is_added_where_no_mark_ends_the_sentences():
    assert read_sentence("the cat", WORDS).tokens == ("the", "cat")
    assert read_sentence("the cat .", WORDS, closing=".").tokens == ("the", "cat", ".")
    assert read_sentence("", WORDS, closing=".").tokens == ()


def test_unknown_words_are_marked_and_similar_ones_offered():
    reading = read_sentence("the catt xyzzy", WORDS)
    assert reading.known == (True, False, False)
    assert reading.offers == (
        "“catt” is not in the vocabulary; similar words that are: cat.",
        "“xyzzy” is not in the vocabulary.",
    )


def test_an_unknown_word_is_read_as_unk():
    _, tokenizer = translator()
    ids = source_ids(tokenizer, read_sentence("the Hund", WORDS))  # German is not English
    assert ids == [tokenizer.vocabulary["the"], tokenizer.unk_id, tokenizer.eos_id]


@pytest.mark.slow
def test_a_translation_is_the_greedy_one_and_its_weights_are_the_models():
    model, tokenizer = translator()
    reading = read_sentence("the cat sees", WORDS)
    made = watch_translation(model, tokenizer, reading)
    ids = [*tokenizer.encode("the cat sees"), tokenizer.eos_id]
    written = generate(model, ids, 30).ids[0]
    assert made.written == tuple(map(tokenizer.token, written))
    with record(model) as run:
        logits = model(torch.tensor([ids]), torch.tensor([[tokenizer.bos_id, *written[:-1]]]))
    expected = torch.stack([run[f"decoder.{i}.cross_attention.weights"][0] for i in (0, 1)])
    torch.testing.assert_close(made.weights, expected)
    best = logits[0, 2].softmax(-1).max()
    assert made.candidates[2][0] == (made.written[2], pytest.approx(best.item()))


def test_looking_leaves_a_model_in_training_as_it_was():
    model, _ = translator()
    model.train()
    ids = torch.tensor([[4, 5, 2]])
    first, second = (cross_attention(model, ids, ids)[1] for _ in range(2))
    assert model.training and not first.requires_grad
    torch.testing.assert_close(first, second)  # no dropout


@pytest.mark.slow
def test_the_text_states_weights_and_candidates_that_are_drawn():
    model, tokenizer = translator()
    made = watch_translation(model, tokenizer, read_sentence("the cat sees dog", WORDS))
    drawn = render_translation(made, 5, 3, 1, 2)
    row = made.weights[1, 2, 3]
    strongest = int(row.argmax())
    word = ["the", "cat", "sees", "dog", "<eos>"][strongest]
    assert f"“{made.written[3]}”, the model looked most at “{word}” ({row.max():.2f})" in drawn.text
    token, p = made.candidates[3][0]
    assert f"Likeliest there: {token} {p:.2f}" in drawn.text
    mean = render_translation(made, 5, 3, 1, None)
    assert f"({made.weights[1, :, 3].mean(0).max():.2f})" in mean.text
    assert "mean of the heads" in mean.text and mean.png != drawn.png


@pytest.mark.slow
def test_words_appear_one_by_one(playground):
    shown = playground.controls["shown"]
    n = len(playground.attempt("the cat sees the dog .").written)
    assert shown.max == shown.value == n
    for count in range(1, n + 1):
        shown.value = count
        assert f"Written, {count} of {n}" in playground.rendering.text
        assert f"For word {count}," in playground.rendering.text  # the newest one
        assert playground.controls["word"].options[-1][1] == count - 1


@pytest.mark.slow
def test_every_control_changes_the_picture(playground):
    moves = {"word": 0, "layer": 0, "head": 2, "shown": 2, "sentence": "the dog opens"}
    for name, value in moves.items():
        before = playground.picture.value
        playground.controls[name].value = value
        assert playground.picture.value != before, name


@pytest.mark.slow
def test_one_change_draws_one_picture(monkeypatch):
    playground, drawn = TranslationPlayground(*translator(seed=0), "the cat sees the dog ."), []
    lengths = [
        len(playground.attempt(typed).written) for typed in ("the cat sees the dog .", "dog")
    ]
    assert lengths[0] != lengths[1]  # so that the other controls have to follow
    render = playground.render
    monkeypatch.setattr(playground, "render", lambda: drawn.append(1) or render())
    for name, value in {"sentence": "dog", "shown": 1, "head": 1}.items():
        playground.controls[name].value = value
    assert len(drawn) == 3


@pytest.mark.slow
def test_no_translation_of_an_unknown_word_is_claimed(playground):
    playground.controls["sentence"].value = "the catt sees"
    assert "“catt” is not in the vocabulary" in playground.rendering.text
    assert "similar words that are: cat" in playground.rendering.text
    assert "it can only guess" in playground.rendering.text
    playground.controls["sentence"].value = "the cat sees"
    assert "guess" not in playground.rendering.text


@pytest.mark.slow
@pytest.mark.parametrize(
    "typed, answer",
    [
        ("", "nothing to translate"),
        ("   ", "nothing to translate"),
        ("xyzzy catt !", "knows none of these words.*similar words that are: cat"),
        ("the cat " * 13, "has 26 words and marks, but there is room for 24"),
    ],
)
def test_what_cannot_be_translated_says_what_to_change(playground, typed, answer):
    playground.controls["sentence"].value = typed
    assert re.search(answer, playground.rendering.text)
    playground.controls["sentence"].value = "the dog"
    assert playground.rendering.text.startswith("Written")


@pytest.mark.slow
def test_any_text_is_answered_at_once(playground, hostile):
    for typed in (hostile, f"the cat {hostile[:60]} sees"):
        start = time.process_time()
        playground.controls["sentence"].value = typed
        assert time.process_time() - start < AT_ONCE
        assert "<script" not in playground.picture.value
        assert "<img src=x" not in playground.picture.value
        assert len(playground.rendering.text) < 2000


@pytest.mark.slow
def test_sentences_of_every_length_fit_the_picture():
    model, tokenizer = translator()
    for n in (1, 5, 24):
        made = watch_translation(model, tokenizer, read_sentence("the " * n, WORDS))
        for word, layer, head in product((0, len(made.written) - 1), (0, 1), (None, 0, 2)):
            drawn = render_translation(made, len(made.written), word, layer, head)
            assert drawn == render_translation(made, len(made.written), word, layer, head)
            assert Image.open(io.BytesIO(drawn.png)).width <= 950
            assert "nan" not in drawn.text


@pytest.mark.slow
def test_the_package_brings_a_translator(comes_with_the_package):
    shown = TranslationPlayground()
    assert "Read “Today” as “today”." in shown.rendering.text
    assert "not in the vocabulary" not in shown.rendering.text
    model, tokenizer = comes_with_the_package
    hits = alignment_hits(model, tokenizer, list(grammar.examples().values()))
    best = hits[shown.values["layer"], shown.values["head"]]
    assert best == hits.max()
    assert "added" not in shown.rendering.text
    shown.controls["sentence"].value = "The dog sleeps"
    assert "A “.” was added" in shown.rendering.text
    shown.controls["sentence"].value = "Der Hund sleeps."  # in the vocabulary, but German
    assert "“Der” is not in the vocabulary" in shown.rendering.text


@pytest.mark.slow
def test_examples_are_typed_for_you(comes_with_the_package):
    shown = TranslationPlayground()
    assert shown.values["example"] is None
    for name, pair in grammar.examples().items():
        shown.controls["example"].label = name
        assert shown.values["sentence"] == pair.source
        assert "not in the vocabulary" not in shown.rendering.text
    shown.controls["sentence"].value = "the dog sleeps ."
    assert shown.values["example"] is None


def test_a_missing_translator_names_the_command(tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "TRANSLATOR", tmp_path / "none.safetensors")
    trained.trained_translator.cache_clear()
    shown = TranslationPlayground()
    trained.trained_translator.cache_clear()
    assert "python -m transformer_lesson.training --corpus grammar" in shown.rendering.text
    shown.controls["sentence"].value = "anything"
    assert "is missing" in shown.rendering.text


@pytest.mark.slow
def test_english_words_are_all_of_them():
    many = {word for pair in grammar.generate(6000, 1) for word in pair.source.split()}
    assert trained.english_words() == many


def test_a_model_without_its_tokenizer_is_refused(unchecked):
    with pytest.raises(ValueError, match="belong together"):
        TranslationPlayground(translator()[0])


@pytest.mark.slow
def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TranslationPlayground(*translator(), "the 🦄 中文 $x^2$ \x00 \u202e cat")


def test_repr_is_short(playground):
    assert repr(playground) == (
        "TranslationPlayground(sentence='the cat sees the dog .', example=None, "
        f"shown={playground.values['shown']}, word={playground.values['word']}, layer=1, head=None)"
    )
    playground.controls["sentence"].value = "word " * 2000
    assert len(repr(playground)) < 200
