"""A run that was stopped and resumed has the losses of one that was not, to the last digit."""

from itertools import product

import pytest
import torch

from tests.training.small import KINDS, batches_of, model_of, run, short, weights
from transformer_lesson.checkpoints import load_checkpoint, save_checkpoint
from transformer_lesson.text import menus
from transformer_lesson.text.batches import TranslationBatches
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import resume, train

SETTINGS = {
    "adamw": {"weight_decay": 0.1},
    "adam": {"optimizer": "adam", "schedule": "noam", "learning_rate": None},
    "bfloat16": {"precision": "bfloat16", "schedule": "cosine"},
}


class PowerCut(Exception):
    pass


def cut_at(step: int):
    def cut(report):
        if report.step == step:
            raise PowerCut

    return cut


def saved(path) -> dict:
    return load_checkpoint(path).training.facts


SOME = {("language model", "adamw"), ("classifier", "adam"), ("token head", "bfloat16")}
BOTH = [
    pytest.param(*one, marks=() if "translator" in one or one in SOME else pytest.mark.everything)
    for one in product(KINDS, SETTINGS)
]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "setting"), BOTH)
def test_the_curve_is_that_of_an_uninterrupted_run(kind, setting, tmp_path):
    path, config, validation = tmp_path / "run", short(9, **SETTINGS[setting]), batches_of(kind, 2)
    options = {"kind": kind, "validation": validation, "validate_every": 3}
    whole, wanted = run(config, **options)
    with pytest.raises(PowerCut):  # in step 7, saved after step 5
        run(config, cut_at(7), **options, checkpoint=path, checkpoint_every=5)
    torch.manual_seed(12345)  # the new process's random numbers are others
    model, history = resume(path, batches_of(kind), validation=validation)
    assert history == wanted and history.steps == 9
    assert [step for step, _ in history.validation] == [3, 6, 9]
    assert torch.equal(weights(model), weights(whole)) and not model.training


@pytest.mark.slow
def test_batches_that_shuffle_go_on_where_they_were(tmp_path):
    pairs = menus.pairs()[:40]
    tokenizer = WordTokenizer.train([text for pair in pairs for text in pair[:2]])
    path, size = tmp_path / "run.safetensors", {"vocab_size": tokenizer.vocab_size, "max_len": 60}

    def batches():
        return TranslationBatches(pairs, tokenizer, batch_size=8, seed=3)

    whole = model_of("translator", **size)
    wanted = train(whole, batches(), short(12))
    keep = {"checkpoint": path, "checkpoint_every": 7, "tokenizer": tokenizer}
    with pytest.raises(PowerCut):
        train(model_of("translator", **size), batches(), short(12), cut_at(8), **keep)
    model, history = resume(path, batches())
    assert history == wanted and torch.equal(weights(model), weights(whole))
    assert load_checkpoint(path).tokenizer.vocabulary == tokenizer.vocabulary


@pytest.mark.slow
def test_reports_go_on_at_the_next_step_and_it_saves_as_often_as_before(tmp_path):
    path, steps = tmp_path / "run.safetensors", []

    def note_and_cut(report):
        steps.append(report.step)
        cut_at(7)(report)

    with pytest.raises(PowerCut):
        run(short(9), cut_at(3), checkpoint=path, checkpoint_every=2)
    with pytest.raises(PowerCut):
        resume(path, batches_of("translator"), note_and_cut)
    assert steps == [3, 4, 5, 6, 7] and len(saved(path)["history"]["losses"]) == 6
    _, history = resume(path, batches_of("translator"))
    assert saved(path)["history"]["losses"] == history.losses and history.steps == 9


def test_a_finished_run_is_handed_back_as_it_is_or_made_longer(tmp_path, capsys):
    path = tmp_path / "run.safetensors"
    model, wanted = run(short(3), checkpoint=path)
    again, history = resume(path, batches_of("translator"))
    assert history == wanted and torch.equal(weights(again), weights(model))
    assert f"{path}: this run is finished, all 3 steps are done." in capsys.readouterr().out
    with pytest.raises(ValueError, match="is at step 3 already, past steps = 2"):
        resume(path, batches_of("translator"), steps=2)
    _, history = resume(path, batches_of("translator"), steps=5)
    assert history.steps == 5 and saved(path)["config"]["steps"] == 5
    save_checkpoint(path, model)
    with pytest.raises(ValueError, match="run.safetensors holds a model, but no training run"):
        resume(path, batches_of("translator"))
