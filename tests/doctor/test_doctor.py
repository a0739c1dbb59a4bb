"""The doctor: it names one cause and where it enters, and leaves everything as it was."""

import copy
import random
import re

import pytest
import torch
from torch import nn
from transformers import T5Config, T5ForConditionalGeneration

from tests.doctor.tiny import script
from transformer_lesson.doctor import examine
from transformer_lesson.doctor.findings import CATALOG, Finding, causes
from transformer_lesson.doctor.patient import Given, Patient
from transformer_lesson.doctor.scripts import around

FAULTS = {
    "off by one": ("sees_next", "blocks.0 (Block)"),
    "unscaled": ("attention_scale", ""),
    "no residual": ("residual_missing", "blocks.0 (Block)"),
    "no positions": ("no_positions", ""),
    "mixed rows": ("mixes_rows", ""),
    "spare": ("unused_parameters", "spare.weight, spare.bias"),
    "shifted twice": ("labels_shifted_twice", ""),
    "padding in the loss": ("padding_in_loss", ""),
    "zero_grad forgotten": ("zero_grad_forgotten", ""),
    "no eval": ("evaluates_in_training_mode", ""),
    "mean of means": ("mean_of_means", ""),
    "never peaks": ("schedule_never_peaks", ""),
    "constant": ("schedule_constant", ""),
    "unfinished": ("schedule_unfinished", ""),
    "never falls": ("schedule_constant", ""),
    "jumps": ("schedule_jumps", ""),
    "rises at once": ("schedule_jumps", ""),
    "each clipped": ("clipped_apart", ""),
    "coarse": ("step_rounded_away", "places.weight"),
    "faint norm": ("first_weights_small", "ln_f.weight"),
    "far favored": ("far_favored", ""),
}


def test_a_sound_script_gets_no_word():
    report = examine(**script())
    assert report.codes == [] and "Nothing was found." in str(report)
    assert list(report.skipped) == ["cache", "generate", "sampling"]
    assert report.skipped["cache"] == "hand over cached"


@pytest.mark.slow
@pytest.mark.parametrize(("fault", "code", "where"), [(k, *v) for k, v in FAULTS.items()])
def test_a_fault_is_named_first_with_where_it_enters(fault, code, where):
    first = examine(**script(fault)).causes[0]
    assert first.code == code
    assert first.where == where


def test_two_faults_are_two_causes_and_effects_are_folded():
    report = examine(**script("off by one", "zero_grad forgotten"))
    assert report.codes[:2] == ["sees_next", "zero_grad_forgotten"]
    follows = {one.code for one in report.causes[0].follows}
    assert "generate_not_argmax" not in report.codes and follows <= set(
        CATALOG["sees_next"].explains
    )


def test_designs_are_no_faults():
    """Branches may begin at zero; a prefix may see itself, and the report says how to say so."""
    assert examine(**script("zero branches")).codes == []
    assert examine(**script("linear biases"), meant={"unused_parameters"}).codes == []
    (found,) = examine(**script("prefix")).causes
    assert (found.code, found.level) == ("sees_future", "suspect")
    assert "Then say prefix=4." in found.moved
    assert examine(**script("prefix"), prefix=4).codes == []


@pytest.mark.slow
@pytest.mark.parametrize("shifts_itself", [False, True])
def test_a_decoder_may_begin_with_padding_and_a_forward_may_shift_its_labels(shifts_itself):
    config = T5Config(
        vocab_size=41, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, pad_token_id=0,
        decoder_start_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    model = T5ForConditionalGeneration(config)
    handed = around(model, "translator")
    if shifts_itself:
        handed["forward"] = lambda source, target: model(
            input_ids=source, attention_mask=(source != 0).long(), labels=target
        )

    def generate(source, count):
        written = torch.zeros(len(source), 1, dtype=torch.long)
        for _ in range(count):
            output = around(model, "translator")["forward"](source, written)
            written = torch.cat([written, output.logits[:, -1:].argmax(-1)], 1)
        return written

    report = examine(model, **handed, generate=generate, meant={"unused_parameters"})
    assert report.codes == ["attention_scale"]  # T5's initialization makes up for it
    assert "generate" not in report.skipped


def test_what_is_meant_is_not_said():
    assert examine(**script("unscaled"), meant={"attention_scale"}).codes == []


def test_one_question_alone_is_asked_and_no_other():
    report = examine(**script("off by one", "mean of means"), only={"visibility"})
    assert report.codes == ["sees_next"] and list(report.seconds) == ["visibility"]
    assert examine(**script("off by one"), only="length").codes == []


def test_everything_is_as_before():
    handed = script()
    model, optimizer = handed["model"], handed["optimizer"]
    handed["train_step"](handed["batch"])
    model.eval()
    model.blocks[0].train()
    model.places.weight.requires_grad_(False)
    weights = copy.deepcopy(model.state_dict())
    gradients = [p.grad for p in model.parameters()]
    modes = [module.training for module in model.modules()]
    needs = [p.requires_grad for p in model.parameters()]
    state = copy.deepcopy(optimizer.state_dict())
    torch.manual_seed(5)
    following = torch.rand(3)
    torch.manual_seed(5)
    examine(**handed)
    assert torch.equal(torch.rand(3), following)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())
    assert all(p.grad is g for p, g in zip(model.parameters(), gradients, strict=True))
    assert [module.training for module in model.modules()] == modes
    assert [p.requires_grad for p in model.parameters()] == needs
    assert repr(optimizer.state_dict()) == repr(state)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_pythons_own_generator_goes_on_where_it_was():
    handed = script()
    patient = Patient(handed["model"], handed["batch"], "causal", 0, Given())
    random.seed(5)
    following = random.random()
    random.seed(5)
    with patient.kept():
        random.random()
    assert random.random() == following


def test_a_function_that_fails_is_said_and_the_rest_goes_on():
    def generate(ids, count):
        raise RuntimeError("the cache is full")

    report = examine(**(script("never peaks") | {"generate": generate}))
    assert report.skipped["generate"] == "RuntimeError: the cache is full"
    assert report.codes == ["schedule_never_peaks"]


def test_after_its_time_no_probe_begins():
    report = examine(**script(), seconds=0.0)
    assert report.skipped["sampling"] == "after 0 s: raise seconds="


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"losss": None}, "examine() doesn't take 'losss': it takes forward, loss,"),
        ({"kind": "gpt"}, "kind is 'gpt', but it must be one of causal, translator, encoder."),
        ({"model": len}, "model is a builtin_function_or_method: hand over an nn.Module."),
        ({"batch": torch.ones(3)}, "batch must be ids, each a tensor of the shape (text, token)."),
        ({"batch": torch.ones(3, 4)}, "batch must hold ids (whole numbers) of at least two texts."),
        ({"kind": "translator"}, "batch must be (source ids, target ids), each a tensor"),
        ({"only": {"leak"}}, "There is no probe 'leak': there are modes, dropout_size, rows,"),
        ({"pad_id": "<pad>"}, "pad_id is '<pad>', but it must be a whole number."),
    ],
)
def test_bad_input_is_one_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        examine(**(script() | wrong))


def test_a_report_in_a_notebook_shows_the_smallest_example_and_runs_nothing():
    page = examine(**script("off by one"))._repr_html_()
    assert "blocks.0 (Block)" in page and "<svg role='img' aria-label=" in page
    assert "■</span> an output at an earlier position moves" in page
    hostile = Finding("unused_parameters", "<script>alert(1)</script>", where="<b>")
    report = examine(nn.Embedding(9, 9), torch.arange(8).view(2, 4))
    report.causes = [hostile]
    assert "<script>" not in report._repr_html_() and "<b>" not in report._repr_html_()


def test_every_finding_has_words_a_lesson_and_explains_what_there_is():
    for code, entry in CATALOG.items():
        assert entry.level in ("fault", "suspect") and entry.do.endswith("."), code
        assert re.fullmatch(r"0\d|1[0-7]", entry.lesson), code
        assert set(entry.explains) <= set(CATALOG) - {code}


def test_a_finding_is_folded_under_its_cause_once():
    leak, read = Finding("sees_future", "a"), Finding("padding_read", "b")
    top = causes([read, leak, Finding("sees_future", "c")])
    assert top == [leak] and top[0].follows == [read]
