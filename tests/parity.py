"""What several tests share: sizes that give a swapped axis away, and PyTorch's weights in ours."""

from types import SimpleNamespace

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import nn

from transformer_lesson.model.config import ModelConfig

PRIMES = (2, 3, 5, 7, 11, 13)
OURS = {
    "encoder.norm": "encoder_norm",
    "decoder.norm": "decoder_norm",
    "layers.": "",
    "self_attn": "self_attention",
    "multihead_attn": "cross_attention",
    "linear1": "feed_forward.W_1",
    "linear2": "feed_forward.W_2",
    "norm1": "norm_1",
    "norm2": "norm_2",
    "norm3": "norm_3",
    "out_proj": "W_O",
}
"""PyTorch's name for a part to ours."""

drawn = settings(max_examples=25, deadline=None, derandomize=True)


def sizes(*names: str):
    """Draw a different prime for each name, so that no swapped axis can pass unseen."""
    primes = st.permutations(PRIMES)
    return primes.map(lambda p: SimpleNamespace(**dict(zip(names, p, strict=False))))


def small_config(**changes) -> ModelConfig:
    """Return a config of a model that runs in a millisecond, without dropout."""
    sizes = {"vocab_size": 13, "d_model": 12, "n_heads": 2, "n_layers": 2, "d_ff": 17, "max_len": 7}
    return ModelConfig(**sizes | {"dropout": 0.0} | changes)


def randomized(module: nn.Module) -> nn.Module:
    """Draw every parameter anew; a bias of zeros or a scale of ones would hide mistakes."""
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=parameter.size(-1) ** -0.5)
    return module


def copy_weights(theirs: nn.Module, ours: nn.Module) -> None:
    """Copy PyTorch's attention, layer or stack into ours; every weight must find its place."""
    state = {}
    for name, value in theirs.state_dict().items():
        for old, new in OURS.items():
            name = name.replace(old, new)
        if "in_proj_" in name:
            for projection, part in zip(("W_Q", "W_K", "W_V"), value.chunk(3), strict=True):
                state[name.replace("in_proj_", f"{projection}.")] = part
        else:
            state[name] = value
    missing, unexpected = ours.load_state_dict(state, strict=False)
    assert not unexpected
    assert all("embedding" in name or name == "projection.weight" for name in missing)


def assert_equal(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Equal to 1e-5, or to 1e-5 of the largest number: what float32 leaves after a few layers."""
    largest = max([1.0, *theirs[theirs.isfinite()].abs().tolist()])
    torch.testing.assert_close(ours, theirs, atol=1e-5 * largest, rtol=1e-5)
