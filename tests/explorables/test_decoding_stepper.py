"""The decoding stepper: what is drawn is what `generate` did, and what the cache really spares."""

import io
import math
import re
import time
from itertools import product

import pytest
import torch
from PIL import Image

from tests.explorables.tiny_models import grammar_translator, language_model, translator
from tests.patience import AT_ONCE
from transformer_lesson.checkpoints import save_checkpoint
from transformer_lesson.explorables import DecodingStepper, trained
from transformer_lesson.explorables.beam_tree import (
    finished_texts,
    path,
    render_beams,
    text_of,
)
from transformer_lesson.explorables.decoding import cache_use, watch_decoding
from transformer_lesson.explorables.next_token_bars import choose_from, render_distribution
from transformer_lesson.generation import Beam, Greedy, Sample, generate

KINDS = {"translator": translator, "language model": language_model}
TEXTS = {"translator": "the cat sees", "language model": "abc"}

EXTREMES = {
    "greedy": [{}],
    "sample": [
        {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": 20}
        for temperature, top_k, top_p in product((0.1, 5.0), (0, 1, 50), (0.05, 1.0))
    ],
    "beam": [{"width": 1}, {"width": 5}],
}


def ids_of(kind, tokenizer):
    ids = tokenizer.encode(TEXTS[kind])
    return [*ids, tokenizer.eos_id] if kind == "translator" else ids


def stepper(kind="translator", **named) -> DecodingStepper:
    return DecodingStepper(*KINDS[kind](), TEXTS[kind], **named)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("strategy", [Greedy(), Sample(2.0, 5, 0.9, seed=3), Beam(3)], ids=repr)
def test_a_decoding_is_what_generate_writes(kind, strategy):
    model, tokenizer = KINDS[kind]()
    ids = ids_of(kind, tokenizer)
    made = watch_decoding(model, tokenizer, ids, strategy, 8)
    assert list(made.written) == generate(model, ids, 8, strategy).ids[0]
    assert made.start == (("<bos>",) if kind == "translator" else ("a", "b", "c"))
    assert made.source == (("the", "cat", "sees", "<eos>") if kind == "translator" else ())
    if made.tree:
        assert made.n_steps == len(made.tree) <= 8
        return
    text = [tokenizer.bos_id] if kind == "translator" else ids
    inputs = [ids] * (kind == "translator") + [[*text, made.written[0]]]
    with torch.no_grad():
        logits = model(*(torch.tensor([one]) for one in inputs))[0, -1]
    if kind == "translator":
        logits[tokenizer.pad_id] = -math.inf  # <pad> is never written
    torch.testing.assert_close(made.probabilities[1], logits.softmax(-1))


@pytest.mark.parametrize("kind", KINDS)
def test_the_counts_are_those_of_a_real_cache(kind):
    model, tokenizer = KINDS[kind]()
    ids = ids_of(kind, tokenizer)
    layer = model.decoder[0]
    counted = {True: [], False: []}
    for use_cache, seen in counted.items():
        hook = layer.self_attention.W_K.register_forward_hook(
            lambda _module, inputs, _output, seen=seen: seen.append(inputs[0].size(1))
        )
        generate(model, ids, 5, use_cache=use_cache, eos_id=None)
        hook.remove()
    n_start = 1 if kind == "translator" else len(ids)
    for step in range(5):
        use = cache_use(n_start, step)
        assert use.computed == counted[True][step]
        assert use.computed + use.reused == counted[False][step]


@pytest.mark.slow
def test_the_source_is_read_once_with_a_cache():
    model, tokenizer = translator()
    ids = ids_of("translator", tokenizer)
    counted = []
    hook = model.decoder[0].cross_attention.W_K.register_forward_hook(
        lambda _module, inputs, _output: counted.append(inputs[0].size(1))
    )
    generate(model, ids, 4, eos_id=None)
    hook.remove()
    assert counted == [len(ids)]
    shown = stepper()
    assert "Of the source: reused 0, computed 4; without a cache 4." in shown.rendering.text
    shown.controls["step"].value = 2
    assert "Of the source: reused 4, computed 0; without a cache 4." in shown.rendering.text
    assert "text: reused 1, computed 1; without a cache 2." in shown.rendering.text


def test_a_choice_is_the_strategys_own_and_each_cut_is_explained():
    probabilities = torch.tensor([0.0, 0.4, 0.3, 0.15, 0.1, 0.05])
    sample = Sample(temperature=0.5, top_k=4, top_p=0.9)
    choice = choose_from(probabilities, sample)
    squares = probabilities.square()
    torch.testing.assert_close(choice.heated, squares / squares.sum())
    torch.testing.assert_close(choice.drawn_from, sample.probabilities(probabilities.log()))
    assert [choice.cut_by(i) for i in range(6)] == ["", "", "", "", "top-p", "top-k"]
    free = choose_from(probabilities, Sample())
    torch.testing.assert_close(free.drawn_from, probabilities)
    assert not any(free.cut_by(i) for i in range(6))


def test_the_text_says_what_was_drawn_from():
    model, tokenizer = language_model()
    strategy = Sample(2.0, top_k=5, top_p=0.7, seed=1)
    made = watch_decoding(model, tokenizer, tokenizer.encode("abc"), strategy, 6)
    for step in range(made.n_steps):
        text = render_distribution(made, tokenizer, step).text
        choice = choose_from(made.probabilities[step], strategy)
        kept = int((choice.drawn_from > 0).sum())
        chosen = made.written[step]
        assert f"Temperature 2; {kept} tokens kept, {tokenizer.vocab_size - 5} cut by" in text
        assert f"{5 - kept} cut by top-p 0.7" in text
        told = f"“{tokenizer.token(chosen)}” was drawn with probability"
        assert f"{told} {choice.drawn_from[chosen]:.3f}" in text
        assert f"the model gave it {made.probabilities[step][chosen]:.3f}" in text
        assert f"reused {0 if step == 0 else 2 + step}, computed {3 if step == 0 else 1}" in text


@pytest.mark.slow
def test_paths_through_the_tree_give_the_texts():
    model, tokenizer = translator()
    made = watch_decoding(model, tokenizer, ids_of("translator", tokenizer), Beam(3), 10)
    texts = [
        text_of(made.tree, s, i) for s, level in enumerate(made.tree) for i in range(len(level))
    ]
    assert list(made.written) in texts
    for step, level in enumerate(made.tree):
        for i, candidate in enumerate(level):
            assert path(made.tree, step, i)[-1] == i
            assert text_of(made.tree, step, i)[-1] == candidate.token
            assert len(text_of(made.tree, step, i)) == step + 1
    assert {one.parent for one in made.tree[4]} != {0}  # the texts do not all run along the top
    source = torch.tensor([ids_of("translator", tokenizer)])
    for i, candidate in enumerate(made.tree[4]):
        ids = [tokenizer.bos_id, *text_of(made.tree, 4, i)]
        with torch.no_grad():
            logits = model(source, torch.tensor([ids[:-1]]))[0]
        logits[:, tokenizer.pad_id] = -math.inf  # <pad> is never written
        log_p = logits.log_softmax(-1).gather(1, torch.tensor(ids[1:])[:, None]).sum().item()
        assert candidate.log_probability == pytest.approx(log_p, abs=1e-4)


def test_finished_texts_come_best_first_and_the_best_is_the_winner():
    model, tokenizer = language_model()  # its beams end at different lengths
    made = watch_decoding(model, tokenizer, tokenizer.encode("abc"), Beam(4), 12)
    finished = finished_texts(made, made.n_steps - 1)
    assert len(finished) > 1
    assert [score for score, _, _ in finished] == sorted((s for s, _, _ in finished), reverse=True)
    assert finished[0][2] == list(made.written)
    text = render_beams(made, tokenizer, made.n_steps - 1).text
    assert f"normalized {finished[0][0]:.2f}" in text


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_extremes_of_every_control_are_drawn(kind):
    shown = stepper(kind)
    for strategy in EXTREMES:
        with shown.held():
            shown.controls["strategy"].value = strategy
        for values in EXTREMES[strategy]:
            with shown.held():
                for name, value in values.items():
                    shown.controls[name].value = value
            for step in (shown.step.max, 1):
                shown.step.value = step
                shown._redraw()
                text = shown.rendering.text
                assert text.startswith(f"Step {step} of {shown.step.max}")
                assert "nan" not in text
                image = Image.open(io.BytesIO(shown.rendering.png))
                assert image.width <= 950 and image.height < 800


@pytest.mark.slow
def test_pictures_are_pure():
    model, tokenizer = translator()
    for strategy, draw in ((Sample(), render_distribution), (Beam(2), render_beams)):
        made = watch_decoding(model, tokenizer, ids_of("translator", tokenizer), strategy, 9)
        assert draw(made, tokenizer, 3) == draw(made, tokenizer, 3)
        assert draw(made, tokenizer, 3).png != draw(made, tokenizer, 4).png


@pytest.mark.slow
def test_only_what_matters_for_the_strategy_can_be_moved():
    shown = stepper()
    for strategy, active in {
        "greedy": set(),
        "sample": {"temperature", "top_k", "top_p", "seed"},
        "beam": {"width"},
    }.items():
        shown.controls["strategy"].value = strategy
        names = {"temperature", "top_k", "top_p", "seed", "width"}
        assert {name for name in names if not shown.controls[name].disabled} == active


@pytest.mark.slow
def test_every_control_changes_the_picture():
    shown = stepper("language model")
    moves = [
        ("step", 3), ("strategy", "sample"), ("temperature", 3.0), ("top_k", 2), ("top_k", 0),
        ("top_p", 0.3), ("strategy", "beam"), ("width", 5), ("text", "jij"),
    ]  # fmt: skip
    for name, value in moves:
        before = shown.picture.value
        shown.controls[name].value = value
        assert shown.picture.value != before, (name, value)


@pytest.mark.slow
def test_one_model_call_for_all_steps(monkeypatch):
    shown = stepper()
    shown.controls["strategy"].value = "beam"
    called = shown.attempt.cache_info().misses
    for step in range(1, shown.step.max + 1):
        shown.step.value = step
    shown.controls["strategy"].value = "greedy"
    assert shown.attempt.cache_info().misses == called


@pytest.mark.slow
def test_any_text_is_answered_at_once(hostile):
    for kind in KINDS:
        shown = stepper(kind)
        start = time.process_time()
        shown.controls["text"].value = hostile
        assert time.process_time() - start < AT_ONCE
        assert "<script" not in shown.picture.value and len(shown.rendering.text) < 2000
        shown.controls["strategy"].value = "beam"
        shown.step.value = shown.step.max
        assert re.match("Step|There is no text|The text has", shown.rendering.text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_no_text_and_too_much_text_say_what_to_change(kind):
    shown = stepper(kind)
    shown.controls["text"].value = ""
    assert "There is no text to begin with" in shown.rendering.text
    shown.controls["text"].value = "a " * 60
    assert re.search("has .* tokens, but the model has room for (40|39)", shown.rendering.text)
    shown.controls["text"].value = "a" * 39  # as a prompt, it leaves room for one token
    assert shown.rendering.text.startswith("Step 1 of")


@pytest.mark.slow
def test_the_package_brings_a_translator(tmp_path, monkeypatch):
    monkeypatch.setattr(trained, "TRANSLATOR", tmp_path / "translator.safetensors")
    trained.trained_translator.cache_clear()
    missing = DecodingStepper()
    assert "is missing" in missing.rendering.text
    missing.controls["strategy"].value = "beam"
    save_checkpoint(trained.TRANSLATOR, *grammar_translator())
    trained.trained_translator.cache_clear()
    shown = DecodingStepper()
    trained.trained_translator.cache_clear()
    made = shown.attempt(shown.values["text"], Greedy())
    assert made.source == tuple("today the old dog sees the small cat . <eos>".split())


def test_bad_arguments_are_refused(unchecked):
    with pytest.raises(ValueError, match="belong together"):
        DecodingStepper(translator()[0])
    with pytest.raises(ValueError, match="max_new_tokens is 0"):
        stepper(max_new_tokens=0)


@pytest.mark.slow
def test_repr_is_short():
    assert repr(stepper()) == (
        "DecodingStepper(text='the cat sees', strategy='greedy', temperature=1.0, top_k=0, "
        "top_p=1.0, seed=0, width=3, step=1)"
    )
