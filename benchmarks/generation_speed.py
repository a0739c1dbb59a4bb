"""How fast a GPT writes: ours against `transformers`, with and without cache, in 16 bits."""

import copy

import torch

from benchmarks.peers import GPT2, gpt_config, ours_of_gpt2
from benchmarks.results import THREADS, Row, write
from benchmarks.timing import at_least, interleaved, ratios
from transformer_lesson.generation import generate

N_PROMPT, N_NEW, ROUNDS = 16, 256, 5

NOTES = """
Greedy, 16 tokens read and 256 written, the GPT of the training section (context 512, no dropout).
Both models have the same weights, drawn wide enough that the text does not repeat, and write the
same tokens (asserted). A ratio is the other's seconds divided by ours, so larger is faster. Without
a cache every token reads the whole text again. One sentence at a time, decoding waits for memory:
every token reads all weights, and 16 bits are half as many bytes.
"""


def measure(batch: int) -> list[Row]:
    """Return the rows of one batch size."""
    torch.manual_seed(0)
    config = gpt_config(dropout=0.0, attention_dropout=0.0)
    peer = GPT2(config, "gelu").eval()
    for weight in peer.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.08)
    ours = ours_of_gpt2(peer, config).eval()
    ids = torch.randint(0, config.vocab_size, (batch, N_PROMPT))

    def theirs():
        mask, options = torch.ones_like(ids), {"do_sample": False, "pad_token_id": 0}
        return peer.model.generate(ids, attention_mask=mask, max_new_tokens=N_NEW, **options)

    def write_with(model, use_cache=True):
        return lambda: generate(model, ids, N_NEW, use_cache=use_cache, eos_id=None).ids

    cached, uncached = write_with(ours), write_with(ours, use_cache=False)
    assert cached() == uncached() == theirs()[:, N_PROMPT:].tolist()
    runs = {"transformers": theirs, "cached": cached, "uncached": uncached}
    if batch == 1:
        runs["bfloat16"] = write_with(copy.deepcopy(ours).bfloat16())
        runs["float16"] = write_with(copy.deepcopy(ours).half())
    seconds = interleaved(runs, ROUNDS, warm_up=1)
    peer_name = (
        f"`transformers` generate with cache = 1.00 ({_speed(seconds['transformers'], batch)})"
    )

    def row(measure: str, known: str, limit: float, name: str, base: str = "transformers") -> Row:
        gained = ratios(seconds[base], seconds[name])
        against = peer_name if base == "transformers" else "ours without cache = 1.00"
        return Row(f"{measure}, batch {batch}", against, known, *at_least(limit, gained))

    plain = "nanoGPT and minGPT 0.24; plain preallocated cache 1.2 to 1.4"
    rows = [row("Greedy, float32, with cache", plain, 1.3, "cached")]
    if batch == 1:
        rows.append(row("Greedy, weights in float16", "4", 2.0, "float16"))
        rows.append(row("Greedy, weights in bfloat16", "2.1", 2.0, "bfloat16"))
    known, limit = ("4 to 5", 4.0) if batch == 1 else ("15 to 20", 12.0)
    return [*rows, row("Cached against uncached", known, limit, "cached", "uncached")]


def _speed(seconds: list[float], batch: int) -> str:
    return f"{batch * N_NEW / min(seconds):,.0f} tokens/s at best"


def main() -> None:
    torch.set_num_threads(THREADS)
    write("generation_speed", [row for batch in (1, 8) for row in measure(batch)], NOTES)


if __name__ == "__main__":
    main()
