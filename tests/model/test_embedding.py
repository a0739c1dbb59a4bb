"""An embedding refuses ids where they can be looked at, and never waits for a device to do so."""

import pytest
import torch

from tests.parity import small_config
from transformer_lesson.checkpoints.bert import BertEmbedding
from transformer_lesson.model.embedding import InputEmbedding

EMBEDDINGS = {
    "paper": lambda: InputEmbedding(small_config(pad_id=0)),
    "gpt": lambda: InputEmbedding(small_config(positions="learned", scale_embedding=False)),
    "rotary": lambda: InputEmbedding(small_config(positions="rotary")),
    "bert": lambda: BertEmbedding(small_config(positions="learned"), 2),
}
every_embedding = pytest.mark.parametrize("name", EMBEDDINGS)


@every_embedding
@pytest.mark.parametrize("wrong", [-1, 13, 2**40])
def test_an_id_outside_the_vocabulary_is_named(name, wrong):
    ids = torch.tensor([[3, 4, 5], [6, wrong, 7]])
    with pytest.raises(ValueError, match=f"token id {wrong} is outside the vocabulary of 13 token"):
        EMBEDDINGS[name]()(ids)


def test_only_new_ids_are_checked():
    embedding = EMBEDDINGS["paper"]()
    ids = torch.tensor([[99, 4, 5]])
    assert torch.equal(embedding(ids, 1), embedding(torch.tensor([[1, 4, 5]]), 1))


@every_embedding
def test_on_a_device_no_number_is_waited_for(name):
    """The device "meta" holds no numbers: whoever asks for one gets an error."""
    embedding = EMBEDDINGS[name]().to("meta")
    ids = torch.zeros(2, 5, dtype=torch.int64, device="meta")
    assert embedding(ids).shape == (2, 5, 12)
    with pytest.raises(RuntimeError):
        int(ids.max())
