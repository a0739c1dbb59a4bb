"""The translation playground, in the page: every number against the package's model."""

import re

import pytest
import torch

from tests.explorables.shown import assert_agree, assert_refused, lines
from tests.explorables.tiny_models import ENGLISH, language_model, translator
from transformer_lesson import mine
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import TranslationPlayground, in_page
from transformer_lesson.explorables.in_page import Weights
from transformer_lesson.generation import generate, translate
from transformer_lesson.interpretability.alignment import alignment_hits
from transformer_lesson.interpretability.interventions import heads_of, without_heads
from transformer_lesson.model.hooks import record
from transformer_lesson.model.positions import sinusoidal_encoding
from transformer_lesson.ranking import first_largest, from_largest
from transformer_lesson.text import grammar

TEACHER = "the teacher says that the child opens the window ."


def watched(model, tokenizer, text: str, forced: dict[int, str]) -> dict:
    """What the model writes greedily where it is not forced to a word, and where it looks."""
    read, ids = [*text.split(), "<eos>"], [tokenizer.bos_id]
    source = torch.tensor([[tokenizer.vocabulary.get(word, tokenizer.unk_id) for word in read]])
    while len(ids) <= 30 and ids[-1] != tokenizer.eos_id:
        with torch.no_grad(), record(model) as run:
            logits = model(source, torch.tensor([ids]))[0]
        logits[:, tokenizer.pad_id] = -torch.inf
        word = forced.get(len(ids) - 1)
        ids.append(tokenizer.vocabulary[word] if word else int(logits[-1].argmax()))
    layers = range(model.config.n_layers)
    weights = [run[f"decoder.{i}.cross_attention.weights"][0] for i in layers]
    return {"read": read, "written": [*map(tokenizer.token, ids[1:])], "weights": weights,
            "shares": logits.softmax(-1), "text": tokenizer.decode(ids[1:])}  # fmt: skip


def expected(seen: dict, state: dict, forced: dict[int, str], tokenizer) -> tuple:
    read, written, at, shares = seen["read"], seen["written"], state["word"], seen["shares"]
    weights = seen["weights"][state["layer"]]  # (head, target, source)
    looks = weights[:, at].mean(0) if state["head"] is None else weights[state["head"], at]
    told = lines("“{}” gets {:.2f}", zip(read, looks, strict=True))
    marks = (", forced" * (i in forced) for i in range(len(written)))
    told += lines("word {}, “{}”{}", zip(range(1, 99), written, marks, strict=False))
    ids = from_largest(shares[at], 6)
    if tokenizer.vocabulary[written[at]] not in ids:
        ids[-1] = tokenizer.vocabulary[written[at]]
    mark = ", forced ✎" if at in forced else ", written"
    rivals = [(tokenizer.token(i), shares[at, i]) for i in ids]
    told += [f"“{word}”: {p:.4f}" + mark * (word == written[at]) for word, p in rivals]
    large = [f"{weight:.2f}" for weight in looks if weight >= 0.02]
    return told, large


def check(shown: dict, seen: dict, state: dict, forced: dict[int, str], tokenizer) -> None:
    told, large = expected(seen, state, forced, tokenizer)
    assert_agree(shown["told"], told)
    assert_agree([text for text in shown["written"] if re.fullmatch(r"\d\.\d\d", text)], large)


@pytest.mark.parametrize(
    "forced", [{}, {3: "und"}, {0: "mein", 2: "heute"}], ids=["free", "one", "two"]
)
def test_every_number_is_that_of_the_packages_model(show, forced):
    model, tokenizer, _ = trained_translator()
    seen = watched(model, tokenizer, TEACHER, forced)
    page = show(TranslationPlayground(forced=list(forced.items())))
    states = [
        {"word": i, "layer": i % 2, "head": (None, 0, 3, 7)[i % 4]}
        for i in range(len(seen["written"]))
    ]
    for state, shown in zip(states, page.states(states), strict=True):
        check(shown, seen, state, forced, tokenizer)
    if forced:
        free = watched(model, tokenizer, TEACHER, {})
        words = ", ".join(f"“{word}” as word {step + 1}" for step, word in forced.items())
        assert f" Forced: {words}. Left alone it writes “{free['text']}”." in page.said


def test_a_model_of_ones_own_is_translated_with(show):
    model, tokenizer = translator()
    page = show(TranslationPlayground(model, tokenizer, "the cat sees", word=2))
    seen = watched(model, tokenizer, "the cat sees", {})
    assert page.get("layer", "head") == [1, None]
    check(page.all(), seen, {"word": 2, "layer": 1, "head": None}, {}, tokenizer)
    assert "added" not in page.said  # no mark ends the sentences of a language not known here
    assert page.named("Examples", "group").count() == 0
    page.set(sentence="the Katze zebra")  # German is in the vocabulary
    assert "“zebra” is not in the vocabulary" in page.said and "“Katze” is" not in page.said
    page = show(TranslationPlayground(*translator(), "the Katze", source_words=ENGLISH.split()))
    assert "“Katze” is not in the vocabulary; similar words that are" not in page.said
    assert "“Katze” is not in the vocabulary" in page.said and "it can only guess" in page.said
    assert any(told.startswith("“Katze”, read as <unk>, gets 0.") for told in page.told())


def test_a_click_forces_a_word_and_the_rest_is_written_anew(show):
    model, tokenizer, _ = trained_translator()
    page = show(TranslationPlayground())
    assert page.named("Force nothing").is_disabled()
    page.click("word 4, “,”", "“und”: 0.0")
    assert page.get("forced", "word") == [[[3, "und"]], 3]
    assert f"“{watched(model, tokenizer, TEACHER, {3: 'und'})['text']}”" in page.said
    page.click("word 2, “Lehrer”")
    page.page.get_by_text("likeliest as word 2").wait_for()
    other = page.named(re.compile("^“.+”: 0[.]0")).first
    word = re.match("“(.+)”", other.get_attribute("aria-label"))[1]
    other.click()
    assert page.get("forced") == [[1, word]]  # what came later was meant for another text
    page.click("“Lehrer”: 0.")
    assert page.get("forced") == [] and "Forced" not in page.said
    page.set(forced=[[3, "und"]])
    page.click("Force nothing")
    assert page.get("forced") == [] and page.said.startswith("Written: “der Lehrer sagt ,")


def test_pointing_shows_where_the_model_looked_and_words_appear_one_by_one(show):
    page = show(TranslationPlayground())
    page.named("word 7, “Kind”").hover()
    page.named("For “Kind” the model looked most at “child”", "heading").wait_for()
    assert page.get("word") == 9  # pointing chooses nothing
    assert [words[:8] for words in page.lit("ariaLabel")] == ["“child” ", "word 7, "]
    page.page.mouse.move(2, 2)
    page.named("For “aufmacht” the model looked", "heading").wait_for()
    words = "der Lehrer sagt , dass das Kind das Fenster aufmacht . <eos>".split()
    states = page.states([{"shown": n} for n in range(1, len(words) + 1)])
    for n, shown in enumerate(states[:-1], start=1):
        written = f"Written so far: “{' '.join(words[:n])}”. For word {n}, "
        assert shown["said"].startswith(written)
        assert sum(told.startswith("word ") for told in shown["told"]) == n
    assert states[-1]["said"].startswith("Written: “der Lehrer")


def test_typing_and_examples_begin_anew(show):
    page = show(TranslationPlayground(forced=[(0, "mein")], shown=3))
    page.page.get_by_role("textbox").fill("The dog sleeps")
    assert page.get("forced") == [] and "“der Hund schläft .”" in page.said
    assert "Read “The” as “the”. A “.” was added" in page.said
    for name, pair in grammar.examples().items():
        page.named(name, exact=True).click()
        page.page.get_by_text(f"Written: “{pair.target}”").wait_for()
        assert page.get("sentence") == pair.source and "vocabulary" not in page.said


def test_bad_values_get_a_sentence(show):
    page = show(TranslationPlayground(forced=[(2, "xyzzy")]))
    assert page.said.startswith("“xyzzy” cannot be forced as word 3: it is not in the model's")
    page.set(forced=[[29, "und"]], word=25, layer=9, head=9)  # past the ends
    assert page.title.startswith("For “Kind” the model") and "(block 1, head 7)" in page.said
    assert "Forced" not in page.said
    page.set(forced=[], word=0, sentence="a" * 10_000)
    assert "knows none of these words" in page.said and len(page.said) < 2000
    page.set(sentence="the " * 25)
    assert page.said == "The sentence has 26 words and marks, but there is room for 24: shorten it."
    page.set(sentence="the " * 23)
    assert page.said.startswith("Written: “")


@pytest.mark.slow
def test_the_head_is_the_one_that_finds_the_right_words_and_english_words_are_all_known():
    model, tokenizer, _ = trained_translator()
    hits = alignment_hits(model, tokenizer, list(grammar.examples().values()))
    playground = TranslationPlayground()
    assert playground.layer * hits.size(1) + playground.head == int(first_largest(hits.flatten()))
    written = generate(model, [*tokenizer.encode(TEACHER), tokenizer.eos_id], 30).ids[0]
    assert watched(model, tokenizer, TEACHER, {})["text"] == tokenizer.decode(written)
    many = {word for pair in grammar.generate(3000, 1) for word in pair.source.split()}
    assert in_page.english_words() == many


def test_wrong_models_are_refused_and_a_learners_weights_are_sent(unchecked):
    assert_refused("belong together", TranslationPlayground, translator()[0])
    nothing = "a DecoderOnlyTransformer does not translate"
    assert_refused(nothing, TranslationPlayground, *language_model())
    playground = TranslationPlayground(*translator())
    assert isinstance(playground.weights, Weights) and len(playground.weights.data) < 50_000


def test_with_a_silent_encoder_it_writes_what_the_model_without_its_heads_does(show):
    model, tokenizer, _ = trained_translator()
    whole, text = "sie wissen , dass die Königin gut ist .", "they know that the queen is good ."
    page = show(TranslationPlayground(sentence=text, silent=True))
    with without_heads(model, heads_of(model, "encoder")):
        (bare,) = translate(model, tokenizer, [text])
    assert bare != whole and page.title == f"Without attention in the encoder: “{bare}”"
    assert f"the whole translator writes “{whole}”" in page.said
    page.page.get_by_role("textbox").fill("the dog sleeps .")
    page.page.get_by_text("the same as the whole translator").wait_for()


@pytest.mark.parametrize("text", ["the child opens the window .", "the old king sings ."])
def test_counted_from_elsewhere_it_writes_what_the_package_does_with_those_positions(show, text):
    page = show(TranslationPlayground(sentence=text, counted=True))
    whole = page.title.removeprefix("Counted from 0: ")
    assert page.named("First position", "slider").get_attribute("aria-valuetext") == "0"
    for first in range(-1, 9):
        page.set(first=first)
        wanted = mine.translations(1, text, sinusoidal_encoding=counted(first)).written
        start = f"Counted from {first}" if first >= 0 else "Without positions"
        assert page.title == f"{start}: “{wanted}”"
        changed = [told for told in page.told() if "the first that differs" in told]
        pairs = zip([*wanted.split(), "<eos>"], [*whole[1:-1].split(), "<eos>"], strict=False)
        places = [i for i, (one, other) in enumerate(pairs, start=1) if one != other][:1]
        assert [int(re.match(r"word (\d+)", told)[1]) for told in changed] == places
    page.set(sentence="the dog sleeps .", first=0)
    assert page.title == "Counted from 0: “der Hund schläft .”"


def counted(first):
    def encoding(n_positions, d_model, base=10000.0):
        if first < 0:
            return torch.zeros(n_positions, d_model)
        return sinusoidal_encoding(n_positions + first, d_model, base)[first:]

    return encoding
