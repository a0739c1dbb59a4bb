"""How far our models' logits are from the library's, for checkpoints with random weights."""

import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
import transformers

from benchmarks.results import THREADS, Row, write
from tests.checkpoints.families import FAMILIES, drawn_fields, inputs_of, library_model
from transformer_lesson.checkpoints import compare_layers, from_pretrained, to_transformers

SEEDS = range(8)
LOGITS, VECTORS = 1e-4, 1e-5
NAMES = {
    "gpt2": "GPT-2",
    "bert": "BERT, token head",
    "bert base": "BERT, base",
    "albert": "ALBERT, token head",
    "albert base": "ALBERT, base",
    "marian": "Marian",
    "llama": "Llama",
}
PADDING = {None: "none", "right": "right", "left": "left"}
NOTES = """
Each row is the worst of eight checkpoints with random weights: sizes, head counts, depths and
epsilons are drawn; gelu, gelu_new, relu and swish take turns (Llama: SwiGLU), tied and untied
heads too, and for Marian scaled and unscaled, shared and separate embeddings. The library writes
each to disk, `from_pretrained` reads it, and both models get the same ids. "Vectors" is the
largest difference of any layer's output, divided by that layer's largest number; padding is left
out. The bases of BERT and ALBERT have no logits: their last vectors stand there. Marian takes no
positions, so padding on the left is not compared. "Back" was written by `to_transformers` and
loaded by the library.
"""


class Worst(NamedTuple):
    """The largest difference of logits, and of vectors relative to their largest number."""

    logits: float
    vectors: float

    def with_(self, other: "Worst") -> "Worst":
        return Worst(max(self.logits, other.logits), max(self.vectors, other.vectors))


def measure(ours, theirs, inputs) -> Worst:
    """Return how far apart two models are on some inputs."""
    comparison = compare_layers(ours, theirs, inputs, quiet=True)
    layers = [layer for layer in comparison.layers if layer.ours != "logits"]
    return Worst(comparison.largest, max(layer.largest / layer.scale for layer in layers))


def of_family(family: str) -> dict[str, Worst]:
    """Return the worst of all configurations by kind of padding, and of the way back."""
    worst: dict[str, Worst] = {}
    for seed in SEEDS:
        torch.manual_seed(seed)
        theirs = library_model(family, **drawn_fields(family, seed))
        with tempfile.TemporaryDirectory() as folder:
            theirs.save_pretrained(folder)
            ours = from_pretrained(folder)
            to_transformers(ours, Path(folder) / "back")
            back = type(theirs).from_pretrained(Path(folder) / "back").eval()
        measured = {
            f"padding {name}": measure(ours, theirs, inputs_of(family, theirs, side))
            for side, name in PADDING.items()
            if family != "marian" or side != "left"
        }
        measured["back"] = measure(ours, back, inputs_of(family, theirs))
        for name, difference in measured.items():
            worst[name] = worst.get(name, difference).with_(difference)
    return worst


def main() -> None:
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(THREADS)
    rows = []
    for family in FAMILIES:
        for name, worst in of_family(family).items():
            measured = f"**{worst.logits:.0e}**, vectors {worst.vectors:.0e}"
            reached = worst.logits <= LOGITS and worst.vectors <= VECTORS
            reach = f"logits {LOGITS:.0e}, vectors {VECTORS:.0e}"
            peer = f"transformers {transformers.__version__}"
            rows.append(Row(f"{NAMES[family]}, {name}", peer, "–", reach, measured, reached))
    write("parity", rows, NOTES)


if __name__ == "__main__":
    main()
