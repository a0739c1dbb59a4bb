"""A plane in which a query meets four keys: scores, weights and the mix of values move with it."""

import math

import traitlets

from transformer_lesson.explorables.in_page import PageExplorable, task

REACH = 3.0
"""How far the plane reaches from 0 in each direction."""
COLORS = ((240, 228, 66), (0, 114, 178), (0, 158, 115), (213, 94, 0))
"""Each word's value: red, green and blue; distinguishable with any color vision."""
ALIKE = {  # two nouns that resemble each other; all four keys lie above 0
    "words": ["the", "child", "opens", "window"],
    "key_points": [[-0.4, 2.2], [1.6, 1.5], [-1.7, 1.2], [2.2, 0.4]],
    "query_points": [[-0.8, 1.0], [0.8, 1.0]],
    "offered": ["d_k"],
}
QUESTIONS = {
    "window": ALIKE
    | {
        "task": task(
            "Drag the query until “window” gets 0.9 of the weight.",
            shows=r"“window” gets (?:0\.9\d|1\.00) of the weight",
        )
    },
    "nobody": ALIKE
    | {
        "task": task(
            "Make nobody win. Can you? First try to point away from all the keys.",
            shows="^Nobody wins",
        )
    },
    "two facts": {
        "words": ["woman", "sees", "the₂", "dog"],
        "asking": "the₂",
        "key_points": [[-1.8, -1.2], [-0.9, 1.9], [1.2, -1.9], [1.9, 0.9]],
        "query_points": [[0.0, 0.0], [-1.2, -0.4]],
        "offered": ["heads"],
        "task": task(
            "“the₂” needs two facts: drag its query until “sees” and “dog” get half each.",
            shows=r"^“(?:sees|dog)” gets 0\.(?:4[5-9]|5[0-5]) of the weight, "
            r"“(?:sees|dog)” 0\.(?:4[5-9]|5[0-5])",
        ),
    },
}
"""What a lesson may ask: where it starts, the controls that are offered, and the task."""


class QueryPlane(PageExplorable):
    """Drag a query, or a key, and see softmax share out 1 again and mix the values' colors.

    What `d_k` does in a plane is modeled: the dot product of random vectors grows like √d_k, so
    the plane's is multiplied by √(d_k / 2), and then divided by √d_k if `root` is on.

    Args:
        question: what the task asks, one of `QUESTIONS`; without one there is no task.
        key_points: four pairs of numbers from -3 to 3, one for each word.
        query_points: two such pairs; the second is used with two heads.
        heads: how many queries ask, 1 or 2, each with a softmax of its own.
        d_k: how many numbers a query and a key have: 2, 8, 32 or 128.
        root: whether scores are divided by √d_k.
        asking: the word whose query it is, written beside it; "" for none.
        held: what moves to where the plane is pressed: "query0", "query1", "key0" to "key3".
    """

    words = traitlets.List().tag(sync=True, fact=True)
    colors = traitlets.List([list(color) for color in COLORS]).tag(sync=True, fact=True)
    offered = traitlets.List(["d_k", "heads"]).tag(sync=True, fact=True)
    asking = traitlets.Unicode("").tag(sync=True, fact=True)
    reach = traitlets.Float(REACH).tag(sync=True, fact=True)
    key_points = traitlets.List().tag(sync=True)
    query_points = traitlets.List().tag(sync=True)
    heads = traitlets.Int(1, min=1, max=2).tag(sync=True)
    d_k = traitlets.Enum([2, 8, 32, 128], 2).tag(sync=True)
    root = traitlets.Bool(True).tag(sync=True)
    held = traitlets.Enum(["query0", "query1", *(f"key{i}" for i in range(4))], "query0").tag(
        sync=True
    )

    def __init__(self, question: str = "", **values):
        if question and question not in QUESTIONS:
            known = ", ".join(map(repr, QUESTIONS))
            raise ValueError(f"the question is {question!r}: choose from {known}.")
        start = QUESTIONS.get(question, ALIKE | {"offered": ["d_k", "heads"]})
        super().__init__(**start | values)

    @traitlets.validate("key_points", "query_points")
    def _in_the_plane(self, proposal) -> list[list[float]]:
        name, points = proposal["trait"].name, proposal["value"]
        count = 4 if name == "key_points" else 2
        pairs = len(points) == count and all(
            isinstance(point, list | tuple) and len(point) == 2 for point in points
        )
        if not pairs or not all(_inside(number) for point in points for number in point):
            raise ValueError(
                f"{name} are {points}: give {count} pairs of numbers from {-REACH:g} to {REACH:g}."
            )
        return [[float(number) for number in point] for point in points]


def _inside(number) -> bool:
    return isinstance(number, int | float) and math.isfinite(number) and abs(number) <= REACH
