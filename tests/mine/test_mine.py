"""The forward pass on the learner's functions: theirs where they pass, ours for the rest."""

import pytest
import torch
from torch.testing import assert_close

from tests.exercises.test_collection import ATTENTION, SCORES, Notebook
from transformer_lesson.checkpoints import load_checkpoint, save_checkpoint
from transformer_lesson.exercises.catalog import EXERCISES
from transformer_lesson.exercises.engine.collection import FOLDER
from transformer_lesson.exercises.engine.folds import solution_code
from transformer_lesson.exercises.engine.progress import PLACE
from transformer_lesson.generation import Beam, Greedy, generate
from transformer_lesson.mine import PARTS, MyTransformer, assembled, parts
from transformer_lesson.model.cache import KeyValueCache
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import EncoderDecoderTransformer
from transformer_lesson.text.batches import Batch
from transformer_lesson.training import TrainConfig, train

SIZES = dict(vocab_size=13, d_model=8, n_heads=2, n_layers=2, d_ff=17, max_len=11, pad_id=0)
CONFIG = ModelConfig(**SIZES, norm_position="post", bias=False, dropout=0.0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))
    return tmp_path / FOLDER


@pytest.fixture
def model():
    torch.manual_seed(0)
    return EncoderDecoderTransformer(CONFIG).eval()


@pytest.fixture
def ids():
    source, target = torch.randint(1, 13, (3, 5)), torch.randint(1, 13, (3, 7))
    source[0, 3:] = 0
    return source, target


def write_all():
    for name in PARTS:
        exercise = EXERCISES[name]
        source = solution_code([*exercise.load_helpers(), exercise.load_reference()])
        assert Notebook().check(name, source).startswith("Your version is kept")


def test_with_nothing_written_all_is_ours_and_equal(folder, model, ids):
    mine = MyTransformer.with_weights_of(model)
    assert mine.parts.yours == () and not mine.training
    assert_close(mine(*ids), model(*ids))
    assert list(mine.state_dict()) == list(model.state_dict())


def test_with_all_exercises_solved_the_sum_is_the_same(folder, model, ids):
    write_all()
    mine = MyTransformer.with_weights_of(model)
    assert mine.parts.yours == PARTS and not mine.parts.reasons
    assert_close(mine(*ids), model(*ids), rtol=1e-5, atol=1e-5)


def test_ours_call_theirs(folder, model, ids):
    calls = []

    def split_heads(x, n_heads):
        calls.append(n_heads)
        return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)

    functions = assembled({"split_heads": split_heads})
    own = type(parts())(functions, ("split_heads",), {})
    assert_close(MyTransformer.with_weights_of(model, own)(*ids), model(*ids))
    assert len(calls) == 3 * (2 + 2 * 2)  # Q, K and V of all attentions
    assert functions["split_heads"] is split_heads
    with pytest.raises(ValueError, match="are no parts of the forward pass"):
        assembled({"split_head": split_heads})


def test_theirs_do_not_leak_into_the_package(folder, model, ids):
    before = model(*ids)
    functions = assembled({"attention_scores": lambda Q, K: torch.zeros(*Q.shape[:-1], K.size(-2))})
    own = type(parts())(functions, ("attention_scores",), {})
    assert not torch.allclose(MyTransformer.with_weights_of(model, own)(*ids), before)
    assert_close(model(*ids), before)


def test_what_was_broken_by_hand_is_named_and_ours_stands_in(folder, model, ids):
    notebook = Notebook()
    notebook.check("attention_scores", SCORES)
    notebook.check("scaled_dot_product_attention", ATTENTION)
    notebook.check("merge_heads", "def merge_heads(x):\n    return x.transpose(1, 2).flatten(2)\n")
    path = folder / "lesson_03.py"
    path.write_text(path.read_text().replace("math.sqrt(Q.size(-1))", "Q.size(-1)"))
    (folder / "lesson_04.py").write_text("# %% merge_heads\ndef merge_heads(x:\n")
    own = parts()
    assert own.yours == () and list(own.reasons) == [
        "attention_scores",
        "scaled_dot_product_attention",
        "merge_heads",
    ]
    said = repr(own).splitlines()
    assert said[0] == f"0 of {len(PARTS)} functions of the forward pass are yours"
    assert "attention_scores" in said[3] and "ours: yours does not pass any more (" in said[3]
    assert "ours: yours does not run (SyntaxError" in repr(own)
    assert_close(MyTransformer.with_weights_of(model, own)(*ids), model(*ids))


def test_it_writes_searches_and_learns_like_the_package(folder, model, ids):
    mine = MyTransformer.with_weights_of(model)
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
def test_padding_may_stand_on_either_side(folder, model, ids, shift):
    source, target = ids[0].roll(shift, dims=1), ids[1]
    mine, real = MyTransformer.with_weights_of(model), source != 0
    assert_close(mine.encode(source)[real], model.encode(source)[real])
    assert_close(mine(source, target), model(source, target))


def test_with_a_cache_it_answers_for_the_new_tokens_only(folder, model, ids):
    source, target = ids
    mine, cache = MyTransformer.with_weights_of(model), KeyValueCache(11)
    memory, whole = mine.encode(source), model(source, target)
    for new in (target[:, :3], target[:, 3:4], target[:, 4:]):
        start = cache.length
        logits = mine.decode(new, memory, source, cache)
        expected = whole[:, start : start + new.size(1)]
        assert_close(logits, expected, rtol=1e-4, atol=1e-4)


def test_it_is_trained_and_saved(folder, tmp_path, ids):
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


def test_a_model_of_another_kind_is_refused(folder):
    with pytest.raises(ValueError, match="^norm_position is 'pre', but these functions know"):
        MyTransformer(ModelConfig(**SIZES, bias=False))
    with pytest.raises(ValueError, match="^dropout is 0.1, but these functions know only 0.0"):
        MyTransformer(ModelConfig(**SIZES, bias=False, norm_position="post", dropout=0.1))
