"""Lesson 14, second part: half repairs and other bugs in what was found by reading."""

from transformer_lesson.exercises.bug_hunt import bugs_2
from transformer_lesson.exercises.specification import Mistake


def listing(model, ids, layers=slice(None)):
    """Embedding and layers, no projection."""
    x = model.embedding(ids)
    for layer in model.layers[layers]:
        x = layer(x)
    return x


def nothing_returned(model, ids):
    """All is computed, nothing handed over."""
    model.out(listing(model, ids))


def message(x, table, wanted, got=None):
    """Return the sentence with two values in it."""
    return f"Expected vectors of {wanted} numbers, but got {got or x.shape[-1]}."


BUG_HUNT_2_READING_MISTAKES = {
    "width_message": (
        Mistake(
            "a row of the table",
            "`table[1]` is the row of position 1, all its numbers. Its width stands in the shape.",
            bugs_2.width_message,
        ),
        Mistake(
            "the number of positions",
            "The table has shape (n_positions, d_model), and this is the first of the two.",
            lambda x, table: message(x, table, len(table)),
        ),
        Mistake(
            "the whole shape",
            "The sentence compares two widths. Which entry of the shape is one?",
            lambda x, table: message(x, table, table.shape),
        ),
        Mistake(
            "one number of the table",
            "`table[1, 1]`, or the like, is a number in the table, not a size of it.",
            lambda x, table: message(x, table, table[1, 1]),
        ),
        Mistake(
            "the two widths changed round",
            "Expected is what the table has. What came is the width of `x`.",
            lambda x, table: message(x, table, x.shape[-1], table.shape[1]),
        ),
        Mistake(
            "the number of axes",
            "`x.dim()` and `len(x.shape)` count axes. The width is the size of the last one.",
            lambda x, table: message(x, table, table.shape[1], x.dim()),
        ),
    ),
    "run_listing": (
        Mistake(
            "a part called by another name",
            "The model was given `embedding`, and the code asks for `embed`. Python looks a name "
            "up when the line runs, so only a run finds this.",
            bugs_2.run_listing,
        ),
        Mistake(
            "a forgotten return",
            "The name is repaired, all is computed, and nothing is handed over: a function "
            "without `return` returns `None`.",
            nothing_returned,
        ),
        Mistake(
            "a result before the projection",
            "`x` is returned, and the projection's result is thrown away.",
            listing,
        ),
        Mistake(
            "a return inside the loop",
            "The function ends in the first round, after one layer. The `return` belongs behind "
            "the loop: look at its indentation.",
            lambda model, ids: model.out(listing(model, ids, slice(1))),
        ),
        Mistake(
            "a last layer that reads the embedding",
            "Each layer must read what the layer before it gave: `x = layer(x)`.",
            lambda model, ids: model.out(listing(model, ids, slice(-1, None))),
        ),
    ),
    "gpt2_d_model": (
        Mistake(
            "80 numbers per head",
            "1280 is the width of GPT-2 large, which has 20 heads, not 16. All four sizes have "
            "heads of the same width.",
            bugs_2.gpt2_d_model,
        ),
        Mistake(
            "the width of large for every size",
            "The number of heads does not enter. Count the parameters for 16 heads.",
            lambda n_heads: 1280,
        ),
        Mistake(
            "the width of medium for every size",
            "Right for 16 heads, and for no other number. What is 1024 / 16?",
            lambda n_heads: 1024,
        ),
        Mistake(
            "the heads of GPT-3",
            "128 numbers per head is what the largest GPT-3 has. GPT-2's heads are half as wide.",
            lambda n_heads: 128 * n_heads,
        ),
        Mistake(
            "a number with a fraction",
            "`/` gives a float in Python, and no tensor has 1024.0 columns. `//` or a product of "
            "two int gives an int.",
            lambda n_heads: 64.0 * n_heads,
        ),
    ),
}
