"""Heads switched off in the page: every loss is what the package's model gives without them."""

import pytest
import torch

from tests.explorables.shown import Shown, same_numbers
from tests.explorables.tiny_models import grammar_translator, language_model
from tests.parity import randomized
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.experiments.induction import CONFIG, AttentionOnlyDecoder, held_out_batch
from transformer_lesson.explorables import HeadAblation, head_ablation
from transformer_lesson.interpretability.interventions import (
    heads_of,
    token_losses,
    without_heads,
)
from transformer_lesson.model.transformers import EncoderOnlyTransformer
from transformer_lesson.ranking import first_largest
from transformer_lesson.text import grammar
from transformer_lesson.text.batches import Batch, epoch, shift_right

browser = pytest.mark.browser


def of_language_model():
    model = randomized(language_model()[0])
    inputs, labels = shift_right(torch.randint(model.config.vocab_size, (3, 8)))
    counted = torch.ones_like(labels, dtype=torch.bool)
    counted[:, :2] = counted[1] = False
    return model, Batch((inputs,), labels), "", counted


def of_untrained_translator():
    model, tokenizer = grammar_translator()
    batch = epoch(grammar.generate(3, seed=2), tokenizer, 3)[0]
    return randomized(model), batch, "cross", batch.labels != tokenizer.pad_id


def of_induction():
    model, batch = randomized(AttentionOnlyDecoder()).eval(), held_out_batch(batch_size=2)
    return model, batch, "", torch.ones_like(batch.labels, dtype=torch.bool)


def of_trained_translator():
    model, tokenizer, _ = trained_translator()
    batch = epoch(grammar.generate(8, seed=5), tokenizer, 8)[0]
    return model, batch, "decoder.1.cross", batch.labels != tokenizer.pad_id


def measured(model, batch, counted, gone) -> tuple[str, dict[int, float], float]:
    """The loss without some heads and the share that is right, in words; the loss by position."""
    losses = token_losses(model, batch, gone)
    with torch.no_grad(), without_heads(model, gone):
        right = model(*batch.inputs).argmax(-1) == batch.labels
    loss = float(losses[counted].mean())
    curve = {
        place: float(losses[:, place][counted[:, place]].mean())
        for place in range(losses.size(1))
        if counted[:, place].any()
    }
    return f"{loss:.2f} nats ({100 * right[counted].float().mean():.1f} % right)", curve, loss


def named(head) -> str:
    stack, layer, kind = head.attention.split(".")
    where = f"layer {layer}" if stack == "decoder" else f"{stack} {layer}"
    return f"{where}, {kind.removesuffix('_attention')} head {head.number}"


def check(page: Shown, model, batch, attention, counted, gone) -> None:
    """Compare all that one state shows with the package's interventions."""
    heads = heads_of(model, attention)
    all_, all_curve, all_loss = measured(model, batch, counted, [])
    now, curve, loss = measured(model, batch, counted, gone)
    then = [measured(model, batch, counted, sorted({*gone} ^ {head})) for head in heads]
    ways = ["with it again" if head in gone else "without it" for head in heads]
    wanted = [
        f"{named(head)} is {'off' if head in gone else 'on'}; loss {way}: {words}"
        for head, way, (words, *_) in zip(heads, ways, then, strict=True)
    ]
    wanted += [
        f"position {place}: all heads {all_curve[place]:.2f}"
        + (f", now {curve[place]:.2f}" if gone else "")
        for place in curve
    ]
    told = page.told()
    assert len(told) == len(wanted)
    assert [pair for pair in zip(told, wanted, strict=True) if not same_numbers(*pair)] == []
    written = page.written()
    assert all(any(same_numbers(text, f"{one:.2f}") for text in written) for *_, one in then)
    title = f"With all heads the loss is {loss:.2f}, without the one needed most "
    title += f"{max(one for *_, one in then):.2f}"
    if gone:
        plural = "s" if len(gone) > 1 else ""
        title = f"Without {len(gone)} head{plural}: loss {loss:.2f}, with all {all_loss:.2f}"
    assert same_numbers(page.title, title)
    left = [i for i, head in enumerate(heads) if head not in gone]
    said = f"Taken away: {'; '.join(map(named, gone))}." if gone else "Nothing is taken away."
    said += f" Mean loss {now}, with all heads {all_}. "
    if left:
        most = left[int(first_largest(torch.tensor([then[i][2] for i in left])))]
        said += f"Of those left, {named(heads[most])} is needed most: without it too, "
        said += f"{then[most][0]}."
    assert same_numbers(page.said, said if left else said + "No head is left.")


@browser
@pytest.mark.parametrize(
    "example", [of_language_model, of_untrained_translator, of_induction, of_trained_translator]
)
def test_every_loss_is_that_of_the_packages_model(show, example):
    model, batch, attention, counted = example()
    heads = heads_of(model, attention)
    own = () if example is of_trained_translator else (model, batch, attention, counted)
    page = show(HeadAblation(*own), viewport={"width": 1100, "height": 900})
    for gone in ([], heads[:1], heads[1::2], heads):
        page.set(removed=[list(head) for head in gone])
        check(page, model, batch, attention, counted, gone)


@browser
def test_a_head_is_switched_by_click_and_by_key_and_shown_beforehand_under_the_pointer(show):
    model, batch, _, counted = of_language_model()
    page = show(HeadAblation(model, batch, counted=counted))
    heads = heads_of(model)
    head = page.page.get_by_role("button", name="layer 1, self head 1")
    head.hover()
    _, curve, _ = measured(model, batch, counted, heads[4:5])
    told = page.told()[6:]
    assert same_numbers(told[-1].partition("once switched ")[2], f"{curve[6]:.2f}")
    assert page.get("removed") == []  # pointing switches nothing
    head.click()
    assert page.get("removed") == [["decoder.1.self_attention", 1]]
    assert head.get_attribute("aria-pressed") == "true"
    assert "layer 1, self head 1 is off" in page.press("ArrowLeft", "ArrowRight")
    page.press("ArrowLeft", "Enter")
    assert page.get("removed") == [[one, i] for one, i in reversed(heads[3:5])]
    page.page.get_by_role("button", name="All heads on").click()
    assert page.get("removed") == [] and page.title.startswith("With all heads")


@browser
def test_maps_are_those_of_the_case_that_is_shown(show):
    model, batch, _, counted = of_induction()
    page = show(HeadAblation(model, batch, counted=counted))
    maps = "els => els.map(el => el.getAttribute('d')).join()"
    paths = page.page.locator("svg path.still")
    before = paths.evaluate_all(maps)
    page.page.get_by_role("button", name="layer 1, self head 0").hover()
    page.set()
    assert paths.evaluate_all(maps) == before  # nothing comes after the last layer
    page.page.get_by_role("button", name="layer 0, self head 0").hover()
    page.set()
    assert paths.evaluate_all(maps) != before


def test_bad_input_says_what_to_change():
    model, batch, _, counted = of_language_model()
    with pytest.raises(ValueError, match="batch is missing"):
        HeadAblation(model)
    with pytest.raises(ValueError, match="no attention has 'corss'"):
        HeadAblation(model, batch, "corss")
    with pytest.raises(ValueError, match="no label counts"):
        HeadAblation(model, batch, counted=counted & False)
    many = Batch((batch.inputs[0].repeat(200, 1),), batch.labels.repeat(200, 1))
    with pytest.raises(ValueError, match="4,200 tokens, and a page reads at most 4,096"):
        HeadAblation(model, many)
    with pytest.raises(ValueError, match="token id 99"):
        HeadAblation(model, Batch((batch.inputs[0] * 0 + 99,), batch.labels))
    in_stream = AttentionOnlyDecoder(positions_in_stream=True).eval()
    with pytest.raises(ValueError, match="has positions_in_stream"):
        HeadAblation(in_stream, held_out_batch(batch_size=2))
    with pytest.raises(ValueError, match="EncoderOnlyTransformer predicts no next token"):
        HeadAblation(EncoderOnlyTransformer(CONFIG), batch)
    with pytest.raises(ValueError, match="in training mode"):
        HeadAblation(model.train(), batch)


def test_more_heads_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr(head_ablation, "MOST_HEADS", 5)
    with pytest.raises(ValueError, match="6 heads do not fit the picture, 5 do: choose some"):
        HeadAblation(*of_language_model()[:2])


def test_without_the_translator_nothing_is_offered(monkeypatch):
    monkeypatch.setattr(head_ablation, "trained_translator", lambda: None)
    assert HeadAblation().heads == []


def test_the_translator_reads_another_batch():
    _, tokenizer, _ = trained_translator()
    batch = epoch(grammar.generate(3, seed=1), tokenizer, 3)[0]
    made = HeadAblation(batch=batch, attention="encoder.1")
    assert [row["source"] for row in made.rows] == batch.inputs[0].tolist()
    assert {head.attention for head in made.heads} == {"encoder.1.self_attention"}
