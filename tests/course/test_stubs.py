"""A stub is a contract: whoever calls what a learner writes relies on nothing that it lacks."""

import ast
import inspect

import pytest
import torch
from torch.testing import assert_close

from tests.course.play import Lesson
from tests.mine.llama_config import CONFIG as LLAMA
from tests.mine.small_config import CONFIG
from tests.parity import randomized
from tools.lesson_files import lesson_files
from transformer_lesson.exercises.engine.catalog import EXERCISES
from transformer_lesson.mine import LLAMA_PARTS, PARTS, MyLlama, MyTransformer, Parts, assembled
from transformer_lesson.mine.parts import OURS
from transformer_lesson.model import gpt
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer, EncoderDecoderTransformer


@pytest.fixture(scope="module")
def stubs() -> dict[str, ast.FunctionDef]:
    """The stubs of all lessons."""
    lessons = map(Lesson, lesson_files())
    cells = [lesson.cells[i].source for lesson in lessons for i, _ in lesson.exercises()]
    found = [ast.parse(cell).body[0] for cell in cells]
    return {stub.name: stub for stub in found}


def strict(stub: ast.FunctionDef, ours):
    """Return ours behind the stub's own signature, which takes nothing else."""
    arguments = ", ".join(one.arg for one in stub.args.args)
    source = f"def {stub.name}({ast.unparse(stub.args)}): return ours({arguments})"
    names = {"ours": ours}
    exec(source, names)
    return names[stub.name]


def test_an_exercise_has_the_signature_of_its_stub(stubs):
    assert len(stubs) > 40
    for name, stub in stubs.items():
        signature = inspect.signature(inspect.unwrap(EXERCISES[name].marked))
        assert str(signature) == f"({ast.unparse(stub.args)})", name


@pytest.mark.parametrize("name", PARTS)
def test_ours_call_a_part_as_its_stub_says(stubs, name):
    torch.manual_seed(0)
    model = EncoderDecoderTransformer(CONFIG).eval()
    ids = torch.randint(1, 13, (3, 5)), torch.randint(1, 13, (3, 7))
    own = Parts(assembled({name: strict(stubs[name], OURS[name])}), (name,), {})
    assert_close(MyTransformer.with_weights_of(model, own)(*ids), model(*ids))


@pytest.mark.parametrize("name", LLAMA_PARTS)
def test_ours_call_a_part_of_a_llama_as_its_stub_says(stubs, name):
    model, ids = randomized(DecoderOnlyTransformer(LLAMA)).eval(), torch.randint(13, (3, 7))
    own = Parts(assembled({name: strict(stubs[name], OURS[name])}), (name,), {}, LLAMA_PARTS)
    assert_close(MyLlama.with_weights_of(model, own)(ids), model(ids))


def test_our_gpt_calls_what_lessons_made_as_their_stubs_say(stubs, monkeypatch):
    called = [name for name in stubs if name != "gpt_forward" and hasattr(gpt, name)]
    assert len(called) >= 5
    for name in called:
        monkeypatch.setattr(gpt, name, strict(stubs[name], getattr(gpt, name)))
    config = ModelConfig(13, 8, 2, 2, 17, 11, bias=False, dropout=0.0)
    model, ids = DecoderOnlyTransformer(config).eval(), torch.randint(13, (2, 5))
    assert_close(gpt.gpt_forward(ids, gpt.gpt_weights_of(model)), model(ids))
