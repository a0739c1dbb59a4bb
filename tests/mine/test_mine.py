"""The learner's functions, by name and in the forward pass, and the translator they trained."""

from dataclasses import replace

import pytest
import torch
from torch.testing import assert_close

from tests.exercises.notebook import ATTENTION, MERGE, SCORES, Notebook, solved
from tests.mine.small_config import CONFIG
from transformer_lesson import mine
from transformer_lesson.checkpoints import load_checkpoint, save_checkpoint
from transformer_lesson.checkpoints.translator import trained_translator
from transformer_lesson.exercises.engine.collection import FOLDER
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.generation import Beam, Greedy, generate
from transformer_lesson.mine import PARTS, MyTransformer, assembled, parts
from transformer_lesson.mine.trained import FILE
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.batches import Batch
from transformer_lesson.text.tokenizers import WordTokenizer
from transformer_lesson.training import TrainConfig, train
from transformer_lesson.training.loss import loss_gradient


@pytest.fixture
def model():
    torch.manual_seed(0)
    return EncoderDecoderTransformer(CONFIG).eval()


@pytest.fixture
def ids():
    source, target = torch.randint(1, 13, (3, 5)), torch.randint(1, 13, (3, 7))
    source[0, 3:] = 0
    return source, target


def test_ours_call_theirs_which_do_not_leak_into_the_package(folder, model, ids):
    calls = []

    def split_heads(x, n_heads):
        calls.append(n_heads)
        return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    functions = assembled({"split_heads": split_heads})
    before = model(*ids)
    own = type(parts())(functions, ("split_heads",), {})
    assert_close(MyTransformer.with_weights_of(model, own)(*ids), before)
    assert len(calls) == 3 * (2 + 2 * 2)  # Q, K and V of all attentions
    assert functions["split_heads"] is split_heads
    with pytest.raises(ValueError, match="are not in the forward pass"):
        assembled({"split_head": split_heads})
    functions = assembled({"attention_scores": lambda Q, K: torch.zeros(*Q.shape[:-1], K.size(-2))})
    own = type(parts())(functions, ("attention_scores",), {})
    assert not torch.allclose(MyTransformer.with_weights_of(model, own)(*ids), before)
    assert_close(model(*ids), before)


def test_what_was_broken_by_hand_is_named_and_ours_stands_in(folder, model, ids):
    notebook = Notebook()
    notebook.check("attention_scores", SCORES)
    notebook.check("scaled_dot_product_attention", ATTENTION)
    notebook.check("merge_heads", MERGE)
    path = folder / "lesson_03.py"
    path.write_text(path.read_text().replace("math.sqrt(Q.size(-1))", "Q.size(-1)"))
    (folder / "lesson_04.py").write_text("# %% merge_heads\ndef merge_heads(x:\n")
    own = parts()
    broken = "attention_scores scaled_dot_product_attention merge_heads"
    assert own.yours == () and " ".join(own.reasons) == broken
    said = repr(own).splitlines()
    assert said[0] == f"0 of {len(PARTS)} functions of the forward pass are yours"
    assert "attention_scores" in said[2] and "ours: yours no longer passes (" in said[2]
    assert "ours: yours does not run (SyntaxError" in repr(own)
    assert_close(MyTransformer.with_weights_of(model, own)(*ids), model(*ids))


def test_it_sums_writes_searches_and_learns_like_the_package(folder, model, ids):
    mine = MyTransformer.with_weights_of(model)
    assert mine.parts.yours == () and not mine.training
    assert_close(mine(*ids), model(*ids))
    assert list(mine.state_dict()) == list(model.state_dict())
    for strategy in (Greedy(), Beam(3)):
        for sources in ([3, 4, 5], [[3, 4, 5], [6, 7, 8, 9, 10], [11]]):
            written = [generate(one, sources, 8, strategy).ids for one in (mine, model)]
            assert written[0] == written[1]
    mine(*ids).square().sum().backward()
    grads = [one.grad.clone() for one in model.parameters()]
    model.zero_grad()
    model(*ids).square().sum().backward()
    assert_close(grads, [one.grad for one in model.parameters()], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shift", [0, 2])
def test_padding_may_stand_on_either_side_and_a_cache_leaves_the_new_tokens_only(
    folder, model, ids, shift
):
    source, target = ids[0].roll(shift, dims=1), ids[1]
    mine, real = MyTransformer.with_weights_of(model), source != 0
    assert_close(mine.encode(source)[real], model.encode(source)[real])
    assert_close(mine(source, target), model(source, target))
    cache = KeyValueCache(11)
    memory, whole = mine.encode(source), model(source, target)
    for new in (target[:, :3], target[:, 3:4], target[:, 4:]):
        start = cache.length
        logits = mine.decode(new, memory, source, cache)
        expected = whole[:, start : start + new.size(1)]
        assert_close(logits, expected, rtol=1e-4, atol=1e-4)


def test_it_is_trained_and_saved_and_another_kind_refused(folder, tmp_path, ids):
    mine = MyTransformer(CONFIG)
    before = mine(*ids)
    source, target = ids
    batch = Batch((source, target[:, :-1]), target[:, 1:])
    history = train(mine, [batch] * 5, TrainConfig(steps=5, learning_rate=0.01))
    assert history.losses[-1] < history.losses[0]
    mine.eval()
    assert not torch.allclose(mine(*ids), before)
    save_checkpoint(tmp_path / "mine.safetensors", mine.as_the_packages())
    loaded = load_checkpoint(tmp_path / "mine.safetensors").model
    assert_close(loaded(*ids), mine(*ids), rtol=1e-4, atol=1e-4)
    assert_close(MyTransformer.with_weights_of(loaded)(*ids), mine(*ids), rtol=1e-4, atol=1e-4)
    for name, value in (("norm_position", "pre"), ("dropout", 0.1)):
        with pytest.raises(ValueError, match=f"^{name} is {value!r}, but these functions know"):
            MyTransformer(replace(CONFIG, **{name: value}))


@pytest.fixture
def own():
    tokenizer = WordTokenizer.train(["a dog sees a cat"])
    sizes = dict(vocab_size=tokenizer.vocab_size, pad_id=tokenizer.pad_id)
    return MyTransformer(replace(CONFIG, **sizes)), tokenizer


def test_a_function_is_ours_until_the_learners_passes(folder):
    assert mine.folder() == folder
    assert mine.function("loss_gradient") is loss_gradient
    assert not mine.is_yours(loss_gradient)
    Notebook().keep("loss_gradient", solved("loss_gradient"))
    yours = mine.function("loss_gradient")
    assert mine.is_yours(yours) and yours.__name__ == "loss_gradient"
    path = folder / "lesson_08.py"
    path.write_text(path.read_text().replace(".softmax(dim=-1)", ".sigmoid()"))
    assert mine.function("loss_gradient") is loss_gradient
    with pytest.raises(ValueError, match="^There is no exercise 'loss_gradients'. Did you mean"):
        mine.function("loss_gradients")


def test_a_trained_model_is_kept_and_brought_back_and_a_damaged_file_left(folder, own):
    (model, tokenizer), package = own, trained_translator().model
    ids = torch.tensor([[3, 4, 5]])
    assert mine.trained().whose == "the package's"
    assert_close(mine.trained().model(ids, ids), package(ids, ids))
    assert mine.save_model(*own) == f"Your model is kept in `{FOLDER}/{FILE}`."
    found = mine.trained()
    assert found.whose == "yours" and not found.model.training
    assert found.tokenizer.encode("a cat") == tokenizer.encode("a cat")
    assert_close(found.model(ids, ids), model(ids, ids), rtol=1e-4, atol=1e-4)
    (folder / FILE).write_bytes(b"nothing")
    found = mine.trained()
    assert_close(found.model(ids, ids), package(ids, ids))
    assert found.whose.startswith("the package's; yours could not be read (")
    assert (folder / FILE).read_bytes() == b"nothing"


def test_without_a_place_nothing_is_written_and_a_locked_one_is_said(monkeypatch, tmp_path, own):
    monkeypatch.delenv(PLACE, raising=False)
    monkeypatch.chdir(tmp_path)  # no lesson is there
    assert str(mine.folder()) == FOLDER
    assert mine.save_model(*own).startswith("Your model wasn't saved")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(PLACE, str(tmp_path / "file" / "my_progress.json"))
    assert mine.save_model(*own).startswith("Your model can't be saved in ")
