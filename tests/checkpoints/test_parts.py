"""The parts that only BERT, ALBERT and Marian have compute what they say, or refuse."""

import copy
from dataclasses import replace

import pytest
import torch

from tests.parity import randomized, small_config
from transformer_lesson.checkpoints.albert import AlbertTransformer
from transformer_lesson.checkpoints.bert import BertEmbedding, BertTransformer

IDS = torch.tensor([[3, 5, 7, 11, 2, 3, 1], [4, 4, 6, 1, 2, 8, 9]])
CONFIG = small_config(positions="learned", scale_embedding=False, activation="gelu")


def test_unknown_token_types_and_ids_are_refused_and_the_default_type_is_0(unchecked):
    embedding = BertEmbedding(CONFIG, 2)
    assert torch.equal(embedding(IDS), embedding(IDS, torch.zeros_like(IDS)))
    for wrong in (2, -1):
        with pytest.raises(ValueError, match=f"type {wrong} is not one of the n_token_types = 2"):
            embedding(IDS, torch.full_like(IDS, wrong))
    for wrong in (13, -1):
        with pytest.raises(ValueError, match=f"id {wrong} is outside the vocabulary of 13 tokens"):
            embedding(torch.full_like(IDS, wrong))
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but the ids have \(2, 7\)"):
        embedding(IDS, IDS[:, :3])
    with pytest.raises(ValueError, match="this model has no token head"):
        BertTransformer(CONFIG).predict_tokens(IDS)


@pytest.mark.parametrize("n", [0, -1, 1.5, "2", None, True])
@pytest.mark.parametrize(
    ("kind", "name"), [(BertTransformer, "n_token_types"), (AlbertTransformer, "d_embedding")]
)
def test_there_is_at_least_one_token_type_and_one_number_of_a_vector(kind, name, n, unchecked):
    with pytest.raises(ValueError, match=f"{name} is {n!r}, but it must be an int >= 1"):
        kind(CONFIG, n)


def test_alberts_layers_are_one_block_whatever_becomes_of_the_model():
    model = randomized(AlbertTransformer(CONFIG, 5, token_head=True))
    numbers = [sum(p.numel() for p in one.parameters()) for one in (model, model.encoder[0])]
    deeper = AlbertTransformer(replace(CONFIG, n_layers=9), 5, token_head=True)
    assert sum(p.numel() for p in deeper.parameters()) == numbers[0]
    assert sum(p.numel() for p in model.encoder.parameters()) == numbers[1]
    model = copy.deepcopy(model).double()
    first, last = model.encoder[0].feed_forward.W_1, model.encoder[-1].feed_forward.W_1
    model.predict_tokens(IDS).sum().backward()
    assert first is not last and first.weight is last.weight and first.weight.grad is not None
    with torch.no_grad():
        first.weight.fill_(7.0)
    assert (last.weight == 7.0).all()
