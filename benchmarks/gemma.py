"""Gemma 3 270M from its GGUF file: how long it takes to load, to read and to write."""

import importlib
import importlib.util
import itertools
import time
from collections.abc import Callable
from pathlib import Path

import torch
import transformers
from torch import Tensor, nn

from benchmarks.chat_model import N_READ, library_twin, long_prompt, reading
from benchmarks.results import THREADS, Row, write
from benchmarks.timing import at_least, at_most, interleaved, ratios, spread
from transformer_lesson.checkpoints import from_pretrained
from transformer_lesson.checkpoints.llama_cpp import read_tokenizer
from transformer_lesson.checkpoints.weights import weights
from transformer_lesson.generation import generate

N_NEW, ROUNDS, LOADS = 32, 5, 3
NOTES = f"""
Loading: model and tokenizer from the file, {LOADS} times.
The library has the same numbers, in float32 like ours, and both write the same tokens (asserted). A
ratio is the library's seconds divided by ours, so larger is faster. Writing: {N_NEW} tokens after
"Monday, Tuesday, Wednesday,", with a cache. Reading: {N_READ} tokens, and the first one after them.
llama.cpp (its package `llama-cpp-python`, where that is installed) computes with the file's own 8
bits, in kernels for this processor; the ratio is its seconds divided by ours in float32.
"""


def main() -> None:
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(THREADS)
    seconds = []
    for _ in range(LOADS):
        start = time.perf_counter()
        path = weights("Gemma")
        model, words = from_pretrained(path), read_tokenizer(path)
        seconds.append(time.perf_counter() - start)
    rows = [
        Row("Loads, with its tokenizer, in seconds", "–", "–", *at_most(10.0, seconds, "{:.1f}"))
    ]
    theirs = library_twin(model, "gemma3_text")
    prompt = torch.tensor([words.start("Monday, Tuesday, Wednesday,")])
    options = {"max_new_tokens": N_NEW, "min_new_tokens": N_NEW, "do_sample": False}
    options |= {"attention_mask": torch.ones_like(prompt), "pad_token_id": 0}
    runs = {
        "library": lambda: theirs.generate(prompt, **options)[0, prompt.size(1) :].tolist(),
        "ours": lambda: generate(model, prompt, N_NEW, eos_id=None).ids[0],
    }
    assert runs["ours"]() == runs["library"]()
    seconds = interleaved(runs, ROUNDS, warm_up=1)
    peer = f"`transformers` in float32 = 1.00 ({N_NEW / min(seconds['library']):.1f} tokens/s)"
    speed_ups = ratios(seconds["library"], seconds["ours"])
    rows.append(Row(f"Writes {N_NEW} tokens, float32", peer, "–", *at_least(1.0, speed_ups)))
    rows.append(reading(model, theirs, words))
    if importlib.util.find_spec("llama_cpp"):
        rows += beside_llama_cpp(path, runs["ours"], prompt, model, long_prompt(words))
    write("gemma", rows, NOTES)


def beside_llama_cpp(
    path: Path, write_ours: Callable[[], list[int]], prompt: Tensor, model: nn.Module, long: Tensor
) -> list[Row]:
    """Return rows for writing after a prompt and for reading a long one, beside llama.cpp."""
    llama_cpp = importlib.import_module("llama_cpp")  # no requirement: who installs it compiles it
    sizes = {"n_ctx": 1024, "n_batch": N_READ, "n_threads": THREADS, "n_threads_batch": THREADS}
    theirs = llama_cpp.Llama(str(path), verbose=False, **sizes)

    def write_theirs() -> list[int]:
        theirs.reset()  # else it keeps what both prompts begin with
        tokens = theirs.generate(prompt[0].tolist(), temp=0.0, reset=True)
        return list(itertools.islice(tokens, N_NEW))

    def read_theirs() -> int:
        theirs.reset()
        return next(theirs.generate(long[0].tolist(), temp=0.0, reset=True))

    rows = []
    for what, count, runs in (
        ("Writes", N_NEW, {"llama.cpp": write_theirs, "ours": write_ours}),
        ("Reads", N_READ, {"llama.cpp": read_theirs, "ours": lambda: generate(model, long, 1)}),
    ):
        seconds = interleaved(runs, ROUNDS, warm_up=1)
        peer = f"llama.cpp, 8 bits = 1.00 ({count / min(seconds['llama.cpp']):.0f} tokens/s)"
        measured = spread(ratios(seconds["llama.cpp"], seconds["ours"]))
        rows.append(Row(f"{what} {count} tokens, float32", peer, "–", "–", measured, None))
    return rows


if __name__ == "__main__":
    main()
