"""A learner's function by name, and the translator that they trained: kept and brought back."""

import pytest
import torch
from torch.testing import assert_close

from tests.exercises.test_collection import Notebook
from transformer_lesson import mine
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine.collection import FOLDER
from transformer_lesson.exercises.engine.folds import solution_code
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.mine.trained import FILE
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training.one_step import training_step


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))
    return tmp_path / FOLDER


@pytest.fixture
def tokenizer():
    return WordTokenizer.train(["a dog sees a cat"])


@pytest.fixture
def model(tokenizer):
    sizes = dict(d_model=8, n_heads=2, n_layers=1, d_ff=16, max_len=9, dropout=0.0)
    vocabulary = dict(vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id)
    return mine.MyTransformer(ModelConfig(**sizes, **vocabulary, norm_position="post", bias=False))


def test_what_is_yours_lies_beside_your_progress(folder, monkeypatch, tmp_path):
    assert mine.folder() == folder
    monkeypatch.delenv(PLACE)
    monkeypatch.chdir(tmp_path)  # no lesson is there
    assert str(mine.folder()) == FOLDER


def test_a_function_is_ours_until_the_learners_passes(folder):
    assert mine.function("training_step") is training_step
    assert not mine.is_yours(training_step)
    said = Notebook().check(
        "training_step", solution_code([EXERCISES["training_step"].load_reference()])
    )
    assert said.startswith("Your version is kept in `my_transformer/lesson_08.py`")
    yours = mine.function("training_step")
    assert mine.is_yours(yours) and yours.__name__ == "training_step"
    path = folder / "lesson_08.py"
    path.write_text(path.read_text().replace("optimizer.step()", "pass"))
    assert mine.function("training_step") is training_step


def test_an_unknown_name_is_refused(folder):
    with pytest.raises(ValueError, match="^There is no exercise 'training_steps'. Did you mean"):
        mine.function("training_steps")


def test_a_trained_model_is_kept_and_brought_back(folder, model, tokenizer):
    assert mine.trained().model is trained_translator().model
    assert mine.trained().whose == "the package's"
    assert mine.save_model(model, tokenizer) == f"Your model is kept in `{FOLDER}/{FILE}`."
    found = mine.trained()
    ids = torch.tensor([[3, 4, 5]])
    assert found.whose == "yours" and not found.model.training
    assert found.tokenizer.encode("a cat") == tokenizer.encode("a cat")
    assert_close(found.model(ids, ids), model(ids, ids), rtol=1e-4, atol=1e-4)


def test_a_damaged_file_is_named_and_left(folder, model, tokenizer):
    mine.save_model(model, tokenizer)
    (folder / FILE).write_bytes(b"nothing")
    found = mine.trained()
    assert found.model is trained_translator().model
    assert found.whose.startswith("the package's; yours could not be read (")
    assert (folder / FILE).read_bytes() == b"nothing"


def test_without_a_place_nothing_is_written(monkeypatch, tmp_path, model, tokenizer):
    monkeypatch.delenv(PLACE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert mine.save_model(model, tokenizer).startswith("It is not kept")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_said(monkeypatch, tmp_path, model, tokenizer):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(PLACE, str(tmp_path / "file" / "my_progress.json"))
    assert mine.save_model(model, tokenizer).startswith("It could not be kept in ")
