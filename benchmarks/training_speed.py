"""A training step of ours against those of `nn.Transformer` and of `transformers`' GPT-2."""

import warnings
from collections.abc import Callable
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.peers import (
    GPT2,
    TorchTransformer,
    assert_equal_outputs,
    gpt_config,
    ours_of_gpt2,
    ours_of_torch,
)
from benchmarks.results import THREADS, Row, write
from benchmarks.timing import at_most, interleaved, ratios, spread
from transformer_lesson.model import fast
from transformer_lesson.model.config import ModelConfig

ROUNDS = 40
PAPER = ModelConfig(
    vocab_size=1000, d_model=256, n_heads=8, n_layers=3, d_ff=1024, max_len=32, dropout=0.1
)
SAME = replace(PAPER, attention_dropout=0.1, feed_forward_dropout=0.1)
"""Dropout where `nn.Transformer` has it: on attention weights and hidden layers too."""

NOTES = """
Encoder-decoder: d_model 256, 8 heads, 3 + 3 layers, d_ff 1024, vocabulary 1000, 32 sentences of
32 + 32 tokens, pre-norm; the peer is `nn.Transformer` with the same embedding, positions and output
projection. GPT: 6 layers, 6 heads, d_model 384, vocabulary 65, 12 windows of 64 tokens. Dropout is
0.1 and both sides use the same fused Adam. A step is forward, loss, backward and update.

GPT-2 is measured with the GELU that ours has (exact); as published it has an approximation, which
`transformers` computes in six steps.

Most of a float32 step are matrix products, the same on both sides. We win on dropout: random
numbers of 16 bits instead of 32, four at a draw. In bfloat16 the matrix products take less time on
some processors, so this counts more; there attention itself stays in float32, because the backward
pass of the fused kernel on a CPU takes several times as long in 16 bits.
"""


def training_step(model: nn.Module, *ids: Tensor, bf16: bool = False) -> Callable[[], None]:
    """Return a function that trains the model for one step on one batch.

    Args:
        model: gives logits from the ids.
        ids: what the model reads; the last of them is also what it learns to predict, shifted.
        bf16: compute matrix products in bfloat16.
    """
    *sources, target = ids
    inputs, labels = target[:, :-1], target[:, 1:]
    optimizer = torch.optim.Adam(model.train().parameters(), lr=1e-4, fused=True)

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            logits = model(*sources, inputs)  # (batch, target, vocab_size)
        F.cross_entropy(logits.float().flatten(0, 1), labels.flatten()).backward()
        optimizer.step()

    return step


def our_step(model: nn.Module, *ids: Tensor, bf16: bool = False) -> Callable[[], None]:
    """Return a training step of one of our models, as `train` does it."""
    step = training_step(model, *ids, bf16=bf16)

    def learn() -> None:
        with fast.learning(model):
            step()

    return learn


def encoder_decoder_steps() -> dict[str, Callable[[], None]]:
    """Return steps of the peer and of ours; all start from the same weights."""
    warnings.filterwarnings("ignore", "enable_nested_tensor")
    torch.manual_seed(0)
    source, target = torch.randint(1000, (32, 32)), torch.randint(1000, (32, 33))
    peer = TorchTransformer(SAME)
    assert_equal_outputs(ours_of_torch(peer, SAME), peer, source, target[:, :-1])

    def peer_again() -> nn.Module:
        model = TorchTransformer(SAME)
        model.load_state_dict(peer.state_dict())
        return model

    return {
        "peer": training_step(peer_again(), source, target),
        "same places": our_step(ours_of_torch(peer, SAME), source, target),
        "paper's places": our_step(ours_of_torch(peer, PAPER), source, target),
        "peer, bf16": training_step(peer_again(), source, target, bf16=True),
        "same places, bf16": our_step(ours_of_torch(peer, SAME), source, target, bf16=True),
        "paper's places, bf16": our_step(ours_of_torch(peer, PAPER), source, target, bf16=True),
    }


def gpt_steps() -> dict[str, Callable[[], None]]:
    """Return steps of GPT-2, with our exact GELU and with its own, and of ours."""
    torch.manual_seed(0)
    config, ids = gpt_config(), torch.randint(65, (12, 65))
    peer, published = GPT2(config, "gelu"), GPT2(config, "gelu_new")
    ours = ours_of_gpt2(peer, config)
    assert_equal_outputs(ours, peer, ids[:, :-1])
    return {
        "peer": training_step(peer, ids),
        "published": training_step(published, ids),
        "ours": our_step(ours, ids),
    }


def main() -> None:
    torch.set_num_threads(THREADS)
    ours = interleaved(encoder_decoder_steps(), ROUNDS)
    share = {name: ratios(seconds, ours["peer"]) for name, seconds in ours.items()}
    gpt = interleaved(gpt_steps(), ROUNDS)
    milliseconds = f"{1000 * min(ours['peer']):.0f} ms at best"
    peer = f"`nn.Transformer` = 1.00 ({milliseconds})"
    ed, paper = "Encoder-decoder step", "dropout at the paper's places only"
    rows = [
        Row(f"{ed}, float32, same dropout places", peer, "The Annotated Transformer 1.03 to 1.06; "
            "a clean version 0.93", *at_most(0.92, share["same places"])),
        Row(f"{ed}, float32, {paper}", "the same", "–", "–", spread(share["paper's places"]), None),
        Row(f"{ed}, bf16 autocast, same dropout places", "the same, in float32", "0.59 to 0.66",
            *at_most(0.55, share["same places, bf16"])),
        Row(f"{ed}, bf16 autocast, {paper}", "the same, in float32", "0.39",
            *at_most(0.55, share["paper's places, bf16"])),
        Row("`nn.Transformer` itself in bf16 autocast", "the same, in float32", "–", "–",
            spread(share["peer, bf16"]), None),
        Row("GPT step, float32", f"GPT-2 = 1.00 ({1000 * min(gpt['peer']):.0f} ms at best)",
            "nanoGPT about 1.0, minGPT 1.1", *at_most(0.97, ratios(gpt["ours"], gpt["peer"]))),
        Row("GPT step, float32", "GPT-2 with its published GELU = 1.00", "–", "–",
            spread(ratios(gpt["ours"], gpt["published"])), None),
    ]  # fmt: skip
    write("training_speed", rows, NOTES)


if __name__ == "__main__":
    main()
