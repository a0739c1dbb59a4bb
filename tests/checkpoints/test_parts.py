"""The parts that only BERT, ALBERT and Marian have compute what they say, or refuse."""

import copy
from dataclasses import replace

import pytest
import torch

from tests.parity import randomized, small_config
from transformer_lesson.checkpoints import load_checkpoint, save_checkpoint
from transformer_lesson.checkpoints.albert import AlbertTransformer
from transformer_lesson.checkpoints.bert import BertEmbedding, BertTransformer
from transformer_lesson.checkpoints.marian import MarianTransformer

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


MODELS = {
    "bert": lambda: BertTransformer(CONFIG, 3),
    "bert with a head": lambda: BertTransformer(CONFIG, 3, token_head=True),
    "albert": lambda: AlbertTransformer(CONFIG, 5, 3),
    "albert, wide, with a head": lambda: AlbertTransformer(
        replace(CONFIG, n_layers=40, tie_embeddings=False), 20, 3, token_head=True
    ),
    "marian": lambda: MarianTransformer(small_config(bos_id=11, eos_ids=(3, 12))),
    "marian, two sizes": lambda: MarianTransformer(
        small_config(), small_config(n_layers=1), share_embeddings=True
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_file_keeps_the_parts(name, tmp_path):
    model, path = randomized(MODELS[name]()).eval(), tmp_path / "m.safetensors"
    save_checkpoint(path, model)
    again = load_checkpoint(path).model
    assert type(again) is type(model) and again.config == model.config
    ours, read = dict(model.named_parameters()), dict(again.named_parameters())
    assert ours.keys() == read.keys() and all(torch.equal(read[n], ours[n]) for n in ours)
    inputs = (IDS, IDS % 3) if "bert" in name else (IDS, IDS)
    assert torch.equal(again(*inputs), model(*inputs))
