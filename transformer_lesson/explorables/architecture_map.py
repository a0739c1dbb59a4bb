"""The Transformer of the paper's figure 1; each part names the lesson that builds it."""

from contextlib import suppress
from typing import NamedTuple

import traitlets

from transformer_lesson.course import DEEPER, LESSONS
from transformer_lesson.exercises.engine.progress import progress_file, read_progress
from transformer_lesson.explorables.in_page import PageExplorable


class Part(NamedTuple):
    """What the map says about one part."""

    lesson: str
    what: str
    formula: str
    shapes: str
    code: str
    """Its module and name in `transformer_lesson`."""
    exercises: tuple[str, ...] = ()
    """The exercises a learner passes to have built it."""


PARTS = {
    "Token embedding": Part(
        "01",
        "It turns each token into a vector, a row of a table that training has filled.",
        "x = table[ids] · √d_model",
        "ids (batch, n) → (batch, n, d_model)",
        "model.embedding.embed",
    ),
    "Positional encoding": Part(
        "02",
        "It adds where each token stands, because attention alone cannot tell word order.",
        "PE(pos, 2i) = sin(pos / 10000^(2i / d_model)), PE(pos, 2i + 1) = cos(the same angle)",
        "(n, d_model), added to (batch, n, d_model)",
        "model.positions.sinusoidal_encoding",
        ("sinusoidal_encoding",),
    ),
    "Attention": Part(
        "03",
        "Each token gathers what it needs from the others, most from those that match it best.",
        "softmax(Q Kᵀ / √d_head) V",
        "Q, K, V (batch, head, n, d_head) → weights (batch, head, query, key) "
        "→ (batch, head, query, d_head)",
        "model.attention.scaled_dot_product_attention",
        ("attention_scores", "scaled_dot_product_attention"),
    ),
    "Masked attention": Part(
        "03",
        "It is attention that hides all later tokens, so that no guess can read its own answer.",
        "softmax(Q Kᵀ / √d_head, with −∞ where key > query) V",
        "mask (1, 1, n, n), True = may attend, applied to scores (batch, head, query, key)",
        "model.masks.causal_mask",
        ("attention_scores", "causal_mask", "scaled_dot_product_attention"),
    ),
    "Multi-head attention": Part(
        "04",
        "Several attentions run side by side, each with its own idea of what to look for.",
        "Concat(head_1, …, head_h) W_O",
        "(batch, n, d_model) → (batch, head, n, d_head) → (batch, n, d_model)",
        "model.attention.MultiHeadAttention",
        ("split_heads", "merge_heads", "multi_head_attention"),
    ),
    "Add & norm": Part(
        "05",
        "It adds a box's input to its output. The norm brings a token's numbers to one scale.",
        "post: LayerNorm(x + Sublayer(x)); pre: x + Sublayer(LayerNorm(x))",
        "(batch, n, d_model) → (batch, n, d_model)",
        "model.blocks.residual_branch",
        ("layer_norm", "residual_branch"),
    ),
    "Feed-forward": Part(
        "05",
        "Two linear maps with a ReLU between them change each token by itself.",
        "max(0, x W_1 + b_1) W_2 + b_2",
        "(batch, n, d_model) → (batch, n, d_ff) → (batch, n, d_model)",
        "model.feed_forward.feed_forward",
        ("feed_forward",),
    ),
    "Encoder block": Part(
        "06",
        "Tokens look at each other, then each thinks alone. A stack of blocks makes the memory.",
        "memory = block_N(… block_2(block_1(x)))",
        "(batch, source, d_model) → memory (batch, source, d_model)",
        "model.blocks.EncoderBlock",
        ("encoder_block", "encoder_forward"),
    ),
    "Decoder block": Part(
        "07",
        "It reads the target so far, then the memory, then works on each token by itself.",
        "y = block_N(… block_2(block_1(y, memory), memory) …, memory)",
        "target (batch, target, d_model) and memory (batch, source, d_model) "
        "→ (batch, target, d_model)",
        "model.blocks.DecoderBlock",
        ("decoder_forward",),
    ),
    "Cross-attention": Part(
        "07",
        "Each token of the target gathers what it needs from the source.",
        "softmax(Q Kᵀ / √d_head) V with Q = y W_Q, K = memory W_K, V = memory W_V",
        "y (batch, target, d_model), memory (batch, source, d_model) → weights "
        "(batch, head, target, source) → (batch, target, d_model)",
        "model.attention.cross_attention",
        ("cross_attention",),
    ),
    "Linear + softmax": Part(
        "07",
        "Every token of the vocabulary gets a probability: to be the next one, or the hidden one.",
        "softmax(y tableᵀ)",
        "(batch, n, d_model) → (batch, n, vocab_size)",
        "model.transformers.output_projection",
    ),
    "GPT block": Part(
        "10",
        "A decoder block without cross-attention. In code: an encoder block with a causal mask.",
        "x = block_N(… block_2(block_1(x)))",
        "(batch, n, d_model) → (batch, n, d_model)",
        "model.transformers.DecoderOnlyTransformer",
    ),
}
"""The parts in the order the lessons build them."""


def passed() -> set[str]:
    """Return the names of the exercises that the learner has passed."""
    with suppress(OSError):  # `progress()` reports an unreadable file
        return set(read_progress(progress_file())["passed"])
    return set()


def facts() -> dict[str, dict]:
    """Return what the page shows about each part: its lesson, what may follow, open exercises."""
    done = passed()
    return {
        name: {
            **part._asdict(),
            "title": LESSONS[part.lesson].title,
            "file": LESSONS[part.lesson].file.removesuffix(".ipynb"),
            "deeper": [
                {"title": notebook.title, "file": notebook.file.removesuffix(".ipynb")}
                for notebook in DEEPER.values()
                if notebook.lesson == part.lesson
            ],
            "left": [exercise for exercise in part.exercises if exercise not in done],
        }
        for name, part in PARTS.items()
    }


class ArchitectureMap(PageExplorable):
    """The Transformer of the paper's figure 1: choose a part, read about it, open its lesson.

    Parts whose exercises are all passed when the map is made are marked as built.

    Args:
        part: the part chosen at first, a key of `PARTS`.
        kind: "encoder-decoder", "encoder-only" or "decoder-only".
        norm_position: "post" (the paper) or "pre".
    """

    part = traitlets.Enum([*PARTS], "Attention").tag(sync=True)
    kind = traitlets.Enum(
        ["encoder-decoder", "encoder-only", "decoder-only"], "encoder-decoder"
    ).tag(sync=True)
    norm_position = traitlets.Enum(["post", "pre"], "post").tag(sync=True)
    parts = traitlets.Dict().tag(sync=True, fact=True)

    def __init__(self, part: str = "Attention", **values):
        super().__init__(part=part, parts=facts(), **values)
