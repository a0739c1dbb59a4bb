"""First weights: their sizes, from layer to layer, and zeros that stay."""

import pytest
import torch

from tests.doctor.functions import patient
from tests.doctor.tiny import script
from transformer_lesson.doctor import examine
from transformer_lesson.doctor.first_weights import first_weights


def said(*faults):
    """Return the codes that the probe finds."""
    one = patient(*faults)
    with one.kept():
        return [found.code for found in first_weights(one)]


def test_of_usual_first_weights_nothing_is_said():
    assert said() == []


@pytest.mark.parametrize(
    ("fault", "codes"),
    [
        ("large", ["first_weights_large", "attention_starts_sharp"]),
        ("wrong matrix", ["wrong_matrix_scaled"]),
        ("zeros", ["zeros_stay"]),
    ],
)
def test_first_weights_that_do_not_suit_are_suspects(fault, codes):
    assert said(fault) == codes


def test_layers_that_are_alike_begin_alike():
    handed = script()
    with torch.no_grad():
        handed["model"].blocks[1].qkv.weight.mul_(2)
    report = examine(**handed, only={"first_weights"})
    assert report.codes == ["layers_start_unlike"]
    assert report.causes[0].where == "blocks.1.qkv.weight"


def test_an_embedding_and_an_output_layer_of_one_shape_are_not_alike():
    model = torch.nn.Sequential(torch.nn.Embedding(50, 32), torch.nn.Linear(32, 50))
    report = examine(model, torch.randint(50, (4, 8)), only={"first_weights"})
    assert "layers_start_unlike" not in report.codes


def test_trained_weights_are_not_asked():
    report = examine(**script(), fresh=False, only={"first_weights"})
    assert report.skipped == {"first_weights": "a trained model"}


def test_the_weights_are_put_back():
    one = patient("zeros")
    before = [p.detach().clone() for p in one.model.parameters()]
    with one.kept():
        list(first_weights(one))
    assert all(torch.equal(p, q) for p, q in zip(one.model.parameters(), before, strict=True))
