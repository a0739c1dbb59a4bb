"""How fast a GPU trains GPT-2's smallest configuration, against `transformers`."""

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.peers import GPT2
from benchmarks.results import Row, write
from benchmarks.timing import interleaved, ratios, spread
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer

GPT2_124M = ModelConfig(
    vocab_size=50257,
    d_model=768,
    n_heads=12,
    n_layers=12,
    d_ff=3072,
    max_len=1024,
    dropout=0.0,
    activation="gelu_tanh",
    positions="learned",
    scale_embedding=False,
)
LENGTH, ROUNDS = 1024, 20
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}
"""The makers' figures for dense bfloat16, in operations per second (SXM versions)."""

NOTES = """
{device}, torch {torch}, CUDA {cuda}. GPT-2's smallest configuration, 124 million weights, tied,
{batch} windows of {length} random tokens, bfloat16 autocast, no dropout, PyTorch's cross-entropy,
gradient clipped to 1, fused AdamW: the same for both models. `transformers`' GPT-2 has
`attn_implementation="sdpa"`. A ratio is its seconds divided by ours, round by round, so larger is
faster. Compiling took {ours_compile:.0f} s for ours and {peer_compile:.0f} s for the peer.

Model FLOPs: {per_token:,} per token, 6 for each weight that takes part in a matrix product and
12 * n_layers * d_model * length for attention (PaLM, appendix B; the causal half is not taken
off). Utilization is their number per second divided by {peak}.
"""


class Measured(NamedTuple):
    """What was measured: the seconds of each step by name, and of compiling."""

    seconds: dict[str, list[float]]
    compile_seconds: dict[str, float]


def matmul_weights(config: ModelConfig) -> int:
    """Return how many weights of a GPT take part in a matrix product.

    Four projections and a feed-forward network of two maps per layer, and the output projection.
    Biases, norms and what is only looked up do not count.
    """
    block = 4 * config.d_model**2 + 2 * config.d_model * config.d_ff
    return config.n_layers * block + config.vocab_size * config.d_model


def flops_per_token(config: ModelConfig, length: int) -> int:
    """Return the floating point operations of a training step, per token.

    A product costs 2 for each weight forward, and twice that backward. Attention's two products
    (scores, and weights times values) cost 2 * length * d_model each.

    Source: Chowdhery et al., "PaLM" (2022), appendix B.
    """
    return 6 * matmul_weights(config) + 12 * config.n_layers * config.d_model * length


def peak_flops(device_name: str) -> float | None:
    """Return the maker's figure for bfloat16, or `None` for a device not in the table."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)


def rows(seconds: dict[str, list[float]], tokens: int, per_token: int, peak: float) -> list[Row]:
    """Return the lines of the table from the seconds of each step.

    Args:
        seconds: of "peer", "peer, compiled", "ours" and "ours, compiled".
        tokens: per step.
        per_token: model FLOPs.
        peak: of the device, FLOPs per second.
    """
    table = []
    for name, limit, least in (("ours", None, None), ("ours, compiled", 1.3, 0.4)):
        for peer in ("peer", "peer, compiled"):
            ratio = ratios(seconds[peer], seconds[name])
            judged = limit is not None and peer == "peer"
            label = f"`transformers` GPT-2{', compiled' if 'compiled' in peer else ''} = 1.00"
            table.append(_row(f"Step, {name}", label, ratio, limit if judged else None))
        used = [tokens * per_token / value / peak for value in seconds[name]]
        speed = f"{tokens / min(seconds[name]):,.0f} tokens/s at best"
        table.append(_row(f"Model FLOPs utilization, {name} ({speed})", "–", used, least))
    for peer in ("peer", "peer, compiled"):
        used = [tokens * per_token / value / peak for value in seconds[peer]]
        speed = f"{tokens / min(seconds[peer]):,.0f} tokens/s at best"
        table.append(_row(f"Model FLOPs utilization, {peer} ({speed})", "–", used, None))
    return table


def _row(measure: str, peer: str, values: list[float], limit: float | None) -> Row:
    middle = sorted(values)[len(values) // 2]
    reach = "–" if limit is None else f"at least {limit:.2f}"
    reached = None if limit is None else middle >= limit
    return Row(measure, peer, "–", reach, spread(values), reached)


def training_step(model: nn.Module, ids: Tensor) -> Callable[[], float]:
    """Return a function that does one whole step: forward, loss, backward, clip, update."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)

    def step() -> float:
        optimizer.zero_grad()
        with torch.autocast(ids.device.type, torch.bfloat16):
            predicted = model(ids[:, :-1])
            loss = F.cross_entropy(predicted.flatten(0, 1).float(), ids[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.item()  # waits for the GPU

    return step


def steps(config: ModelConfig, ids: Tensor) -> dict[str, Callable[[], float]]:
    """Return a training step of each model, plain and compiled, each with its own weights."""
    runs: dict[str, Callable[[], float]] = {}
    for name in ("peer", "peer, compiled", "ours", "ours, compiled"):
        torch.manual_seed(0)
        theirs = name.startswith("peer")
        model = GPT2(config, "gelu_new") if theirs else DecoderOnlyTransformer(config)
        model.to(ids.device).train()
        if "compiled" in name:
            model.compile()
        runs[name] = training_step(model, ids)
    return runs


def measure(config: ModelConfig, ids: Tensor, rounds: int) -> Measured:
    """Time all steps in turns, after a first call of each, which compiles."""
    runs = steps(config, ids)
    first = {name: interleaved({name: run}, 1, warm_up=0)[name][0] for name, run in runs.items()}
    return Measured(interleaved(runs, rounds, warm_up=3), first)


def counted_flops(model: nn.Module, ids: Tensor) -> int:
    """Return the operations that PyTorch counts in a forward and backward pass."""
    with FlopCounterMode(display=False) as counter:
        model(ids).sum().backward()
    return counter.get_total_flops()


def measured_peak() -> float:
    """Return the operations per second of a large bfloat16 product, for an unknown device."""
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def multiply() -> None:
        a @ b
        torch.cuda.synchronize()

    return 2 * n**3 / min(interleaved({"matmul": multiply}, 20)["matmul"])


def main() -> None:
    if not torch.cuda.is_available():
        print("No GPU was found, so nothing was measured: `make bench-gpu` needs one with CUDA.")
        return
    device = torch.cuda.get_device_name()
    torch.set_float32_matmul_precision("high")
    memory = torch.cuda.get_device_properties(0).total_memory
    batch = 32 if memory > 60e9 else 4
    ids = torch.randint(GPT2_124M.vocab_size, (batch, LENGTH + 1), device="cuda")
    measured = measure(GPT2_124M, ids, ROUNDS)
    promised, per_token = peak_flops(device), flops_per_token(GPT2_124M, LENGTH)
    peak = promised or measured_peak()
    source = "the maker's dense bfloat16 peak" if promised else "a product of two 8192 matrices"
    notes = NOTES.format(
        device=device,
        torch=torch.__version__,
        cuda=torch.version.cuda,
        batch=batch,
        length=LENGTH,
        ours_compile=measured.compile_seconds["ours, compiled"],
        peer_compile=measured.compile_seconds["peer, compiled"],
        per_token=per_token,
        peak=f"{peak / 1e12:.0f} TFLOP/s, {source}",
    )
    write("gpu", rows(measured.seconds, batch * LENGTH, per_token, peak), notes)


if __name__ == "__main__":
    main()
