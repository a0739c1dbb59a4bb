"""Gemma 3 270M from its GGUF file: how long it takes to load, to read and to write."""

import time

import torch
import transformers

from benchmarks.chat_model import N_READ, library_twin, reading
from benchmarks.results import THREADS, Row, write
from benchmarks.timing import at_least, at_most, interleaved, ratios
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
    write("gemma", [*rows, reading(model, theirs, words)], NOTES)


if __name__ == "__main__":
    main()
