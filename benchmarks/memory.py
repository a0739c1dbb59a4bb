"""How much memory a training step takes, above weights and optimizer."""

from collections.abc import Callable
from itertools import accumulate

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.results import Row, write
from benchmarks.training_speed import encoder_decoder_steps
from transformer_lesson.model.attention import MultiHeadAttention
from transformer_lesson.model.masks import causal_mask

NOTES = """
PyTorch's profiler notes everything that its CPU allocator hands out and takes back, temporary
memory of a kernel included; what is reported is the largest sum during one step, counted from its
start, when weights and optimizer are there and gradients are not. The models are those of the
section above. A peak does not vary, so there is no spread.

Attention: one `MultiHeadAttention` of d_model 512 and 8 heads, forward and backward, on 20 texts of
512 tokens with a causal mask. While anybody records its weights it computes them step by step;
otherwise the fused kernel never stores them.
"""


def peak(step: Callable[[], object]) -> float:
    """Return the most memory, in MiB, that PyTorch held at once during a call, above its start."""
    step()  # the first call makes the optimizer's memory
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        step()
    events = sorted(record.profiler.kineto_results.events(), key=lambda event: event.start_ns())
    changes = [event.nbytes() for event in events if event.name() == "[memory]"]
    return max(accumulate(changes)) / 2**20


def attention_peaks() -> tuple[float, float]:
    """Return the peak of attention at 512 tokens, fused and step by step."""
    attention, mask = MultiHeadAttention(512, 8), causal_mask(512)
    x = torch.randn(20, 512, 512, requires_grad=True)

    def forward_and_backward() -> None:
        attention.zero_grad()
        x.grad = None
        attention(x, x, x, mask).sum().backward()

    fused = peak(forward_and_backward)
    attention.weights.register_forward_hook(lambda *_: None)  # the weights are watched
    return fused, peak(forward_and_backward)


def main() -> None:
    torch.set_num_threads(1)  # each further thread adds some buffers of a kernel
    mib = {name: peak(step) for name, step in encoder_decoder_steps().items()}
    fused, explicit = attention_peaks()
    peer = f"`nn.Transformer` {mib['peer']:.0f} MiB"

    def row(measure: str, known: str, limit: float, name: str) -> Row:
        enough = mib[name] <= limit
        return Row(measure, peer, known, f"at most {limit}", f"**{mib[name]:.0f} MiB**", enough)

    step, places = "Encoder-decoder step", ("same dropout places", "the paper's places only")
    rows = [
        row(f"{step}, float32, {places[0]}", "peer 215, clean 198", 198, "same places"),
        row(f"{step}, float32, {places[1]}", "–", 198, "paper's places"),
        row(f"{step}, bf16 autocast, {places[0]}", "126", 130, "same places, bf16"),
        row(f"{step}, bf16 autocast, {places[1]}", "–", 130, "paper's places, bf16"),
        Row("Attention at 512 tokens", f"explicit softmax {explicit:.0f} MiB", "630 and 181 MB",
            "fused unless recorded", f"**{fused:.0f} MiB**", fused < explicit / 3),
    ]  # fmt: skip
    write("memory", rows, NOTES)


if __name__ == "__main__":
    main()
