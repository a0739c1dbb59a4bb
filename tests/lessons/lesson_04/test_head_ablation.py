"""Heads switched off in the page: every loss is what the package's model gives without them."""

import pytest
import torch

from tests.explorables.shown import Shown, assert_agree, assert_refused, same_numbers
from tests.explorables.tiny_models import language_model
from tests.parity import randomized
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.explorables import HeadAblation
from transformer_lesson.interpretability.interventions import heads_of, token_losses, without_heads
from transformer_lesson.lessons.lesson_04 import head_ablation
from transformer_lesson.lessons.lesson_11.induction import (
    CONFIG,
    AttentionOnlyDecoder,
    held_out_batch,
)
from transformer_lesson.model.transformers import EncoderOnlyTransformer
from transformer_lesson.text import grammar
from transformer_lesson.text.batches import Batch, epoch, shift_right


def of_language_model():
    model = randomized(language_model()[0])
    inputs, labels = shift_right(torch.randint(model.config.vocab_size, (3, 8)))
    counted = torch.ones_like(labels, dtype=torch.bool)
    counted[:, :2] = counted[1] = False
    return model, Batch((inputs,), labels), "", counted


def of_induction():
    model, batch = randomized(AttentionOnlyDecoder()).eval(), held_out_batch(batch_size=2)
    return model, batch, "", torch.ones_like(batch.labels, dtype=torch.bool)


def of_trained_translator():
    model, tokenizer, _ = trained_translator()
    batch = epoch(grammar.generate(8, seed=5), tokenizer, 8)[0]
    return model, batch, "decoder.1.cross", batch.labels != tokenizer.pad_id


def measured(model, batch, counted, gone) -> tuple[str, list[str], float]:
    """Of a model without some heads: what is said, the loss at each position, and the loss."""
    losses = token_losses(model, batch, gone)
    with torch.no_grad(), without_heads(model, gone):
        right = model(*batch.inputs).argmax(-1) == batch.labels
    loss = float(losses[counted].mean())
    means = (losses * counted).sum(0) / counted.sum(0)  # nan where no label counts
    said = f"{loss:.2f} nats ({int(right[counted].sum())} of {int(counted.sum())} right)"
    return said, [f"{mean:.2f}" for mean in means.tolist()], loss


def named(head) -> str:
    stack, layer, kind = head.attention.split(".")
    looks = " (looking at the source)" if kind == "cross_attention" else ""
    return f"head {head.number} of {stack} block {layer}{looks}"


def check(page: Shown, model, batch, attention, counted, gone) -> None:
    heads, shown = heads_of(model, attention), page.all()
    curves = [measured(model, batch, counted, removed)[1] for removed in ([], gone)]
    then = [measured(model, batch, counted, sorted({*gone} ^ {head})) for head in heads]
    ways = {True: "off; loss with it back on", False: "on; loss without it"}
    told = [
        f"{named(h)} is {ways[h in gone]}: {one[0]}" for h, one in zip(heads, then, strict=True)
    ]
    told += [
        f"position {place}: all heads {before}" + f", now {after}" * bool(gone)
        for place, (before, after) in enumerate(zip(*curves, strict=True))
        if before != "nan"
    ]
    assert_agree(shown["told"], told)
    for head, (*_, one) in zip(heads, then, strict=True):
        name = f"{head.attention.split('.')[1]}.{head.number}: {one:.3f}"
        texts = (text.removeprefix("head ") for text in shown["written"])
        assert any(same_numbers(text, name) or same_numbers(text, name[:-1]) for text in texts)


@pytest.mark.parametrize("example", [of_language_model, of_induction, of_trained_translator])
def test_every_loss_is_that_of_the_packages_model(show, example):
    model, batch, attention, counted = example()
    heads = heads_of(model, attention)
    own = () if example is of_trained_translator else (model, batch, attention, counted)
    page = show(HeadAblation(*own, tried=True))
    for gone in ([], heads[:1], heads[1::2], heads):
        page.set(removed=[list(head) for head in gone])
        check(page, model, batch, attention, counted, gone)


def test_a_head_is_switched_by_click_and_by_key_and_shown_beforehand_under_the_pointer(show):
    model, batch, _, counted = of_language_model()
    page, heads = show(HeadAblation(model, batch, counted=counted, tried=True)), heads_of(model)
    head = page.named("head 1 of decoder block 1")
    head.hover()
    curve = measured(model, batch, counted, heads[4:5])[1]
    assert same_numbers(page.told()[-1].partition("once switched ")[2], curve[6])
    assert page.get("removed") == []  # pointing switches nothing
    head.click()
    assert page.get("removed") == [["decoder.1.self_attention", 1]]
    assert head.get_attribute("aria-pressed") == "true"
    assert "head 1 of decoder block 1 is off" in page.press("ArrowLeft", "ArrowRight")
    page.press("ArrowLeft", "Enter")
    assert page.get("removed") == [[one, i] for one, i in reversed(heads[3:5])]
    page.click("All heads on")
    assert page.get("removed") == [] and page.title.startswith("With all heads")


def test_what_a_head_costs_is_told_once_it_was_switched_off(show):
    model, batch, _, counted = of_language_model()
    heads = [list(head) for head in heads_of(model)]
    page = show(HeadAblation(model, batch, counted=counted))
    assert page.title.endswith("none is off yet")
    assert sum("not tried yet" in words for words in page.told()) == 6
    page.named("head 1 of decoder block 1").hover()
    assert not any("once switched " in words for words in page.told())
    for n, head in enumerate(heads):
        page.set(removed=[])
        page.set(removed=[head])
        assert ("needed most" in page.said) == (n == 5)
    assert page.get("tried") == heads


def test_spelled_sentences_have_the_likeliest_words_and_heads_how_many_are_right(show):
    model, batch, attention, _ = of_trained_translator()
    token = trained_translator().tokenizer.token
    counted = batch.labels == batch.labels[:, :1]  # the first word, and where it comes again
    names = ("encoder.1", attention)
    page = show(HeadAblation(batch=batch, attention=names, counted=counted, spelled=True))
    heads = [head for name in names for head in heads_of(model, name)]
    assert [list(head) for head in heads] == page.get("heads")
    for gone in ([], heads[14:15], heads[8:]):
        page.set(removed=[list(head) for head in gone])
        with torch.no_grad(), without_heads(model, gone):
            likeliest = model(*batch.inputs).argmax(-1)
        drawn, right, of = [], 0, int(counted.sum())
        for labels, said, counts in zip(batch.labels, likeliest, counted, strict=True):
            n = int((labels != model.config.pad_id).sum()) - 1  # without <eos>
            for label, one, asked in zip(labels[:n], said[:n], counts[:n], strict=True):
                wrong = "✗" if label != one else ""
                drawn.append(token(one) + wrong if asked else token(label))
                right += bool(asked and not wrong)
        assert page.written()[-len(drawn) :] == drawn
        assert page.title.endswith(f", {right} of {of} are right")
    assert any("✗" in word for word in drawn)


def test_bad_input_says_what_to_change(monkeypatch):
    model, batch, _, counted = of_language_model()
    assert_refused("batch is missing", HeadAblation, model)
    assert_refused("no attention has 'corss'", HeadAblation, model, batch, "corss")
    assert_refused("no label counts", HeadAblation, model, batch, counted=counted & False)
    many = Batch((batch.inputs[0].repeat(200, 1),), batch.labels.repeat(200, 1))
    assert_refused("4,200 tokens, and a page reads at most 4,096", HeadAblation, model, many)
    wrong = Batch((batch.inputs[0] * 0 + 99,), batch.labels)
    assert_refused("token id 99", HeadAblation, model, wrong)
    in_stream = AttentionOnlyDecoder(positions_in_stream=True).eval()
    assert_refused("has positions_in_stream", HeadAblation, in_stream, held_out_batch(batch_size=2))
    encoder = EncoderOnlyTransformer(CONFIG)
    assert_refused("EncoderOnlyTransformer does not predict", HeadAblation, encoder, batch)
    assert_refused("in training mode", HeadAblation, model.train(), batch)
    monkeypatch.setattr(head_ablation, "MOST_HEADS", 5)
    many = "6 heads do not fit the picture, 5 do: choose some"
    assert_refused(many, HeadAblation, model.eval(), batch)


@pytest.mark.slow
def test_the_translator_reads_another_batch_unless_it_is_missing(monkeypatch):
    tokenizer = trained_translator().tokenizer
    batch = epoch(grammar.generate(3, seed=1), tokenizer, 3)[0]
    made = HeadAblation(batch=batch, attention="encoder.1")
    assert [row["source"] for row in made.rows] == batch.inputs[0].tolist()
    assert {head.attention for head in made.heads} == {"encoder.1.self_attention"}
    monkeypatch.setattr(head_ablation, "trained_translator", lambda: None)
    assert HeadAblation().heads == []
