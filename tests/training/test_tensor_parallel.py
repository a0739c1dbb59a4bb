"""A layer in parts without other processes is the layer; with two, see test_distributed."""

import pytest
import torch

from transformer_lesson.model.attention import multi_head_attention
from transformer_lesson.model.feed_forward import feed_forward
from transformer_lesson.training import tensor_parallel
from transformer_lesson.training.tensor_parallel import attention_in_parts, share_of


def test_one_process_has_all_of_it():
    x, matrices = torch.randn(2, 5, 12), torch.randn(4, 12, 12)
    mask = torch.ones(5, 5).tril().bool()
    whole = multi_head_attention(x, *matrices, 3, mask)
    assert torch.allclose(attention_in_parts(x, *matrices, 3, mask), whole)
    network = torch.randn(12, 14), torch.randn(14), torch.randn(14, 12), torch.randn(12)
    assert torch.allclose(
        tensor_parallel.feed_forward_in_parts(x, *network), feed_forward(x, *network)
    )


def test_what_two_processes_would_add_up_is_the_whole(monkeypatch):
    x, matrices = torch.randn(2, 5, 12), torch.randn(4, 12, 12)
    parts = []
    for rank in (0, 1):
        monkeypatch.setattr(tensor_parallel, "processes", lambda rank=rank: (rank, 2))
        own = [share_of(W, 1) for W in matrices[:3]] + [share_of(matrices[3], 0)]
        monkeypatch.setattr(tensor_parallel, "processes", lambda: (0, 1))
        parts.append(attention_in_parts(x, *own, 2))
    assert torch.allclose(sum(parts), multi_head_attention(x, *matrices, 4), atol=1e-5)
    monkeypatch.setattr(tensor_parallel, "processes", lambda: (0, 2))
    with pytest.raises(ValueError, match="7 cannot be cut into 2 equal parts"):
        share_of(torch.zeros(3, 7), 1)
