"""The plane of a query and four keys: every number it shows is computed again here."""

import math
import re

import pytest
import torch

from tests.explorables.shown import MODEL, assert_refused, assert_tells
from tools.browser import new_context
from transformer_lesson.explorables import QueryPlane
from transformer_lesson.explorables.query_plane import COLORS, QUESTIONS

TICKED = """"done" in root.querySelector(".task").dataset"""
BARS = """[...root.querySelectorAll('svg rect[aria-label*=" weight "]')]
    .map(bar => bar.width.baseVal.value)"""
FILLS = """[...root.querySelectorAll('svg [aria-label*="hands over"]')]
    .map(one => one.getAttribute("fill"))"""
STATES = [
    {},
    {"query_points": [[3.0, -3.0], [0.0, 0.0]]},
    {"query_points": [[1.5, -2.5], [-0.05, 2.95]], "heads": 2},
    {"d_k": 8, "root": False},
    {"d_k": 128, "root": False, "query_points": [[0.1, 0.1], [0.8, 1.0]], "heads": 2},
    {"d_k": 128, "root": True},
    {"d_k": 2, "root": False, "key_points": [[3, 0], [0, -3], [-1.25, 1], [0, 0]]},
]


def looks(page: dict) -> list[tuple[list, list, list]]:
    """Scores, weights and mixed color of each query."""
    queries = torch.tensor(page["query_points"][: page["heads"]], dtype=torch.float64)
    factor = math.sqrt(page["d_k"] / 2) / (math.sqrt(page["d_k"]) if page["root"] else 1)
    scores = factor * queries @ torch.tensor(page["key_points"], dtype=torch.float64).T
    weights = scores.softmax(dim=-1)
    mixed = weights @ torch.tensor(COLORS, dtype=torch.float64)
    return list(zip(scores.tolist(), weights.tolist(), mixed.tolist(), strict=True))


def mixed(wanted: list[tuple]) -> list[list[int]]:
    """The color that each query hands over, as whole numbers."""
    return [[math.floor(number + 0.5) for number in mix] for *_, mix in wanted]


def test_every_number_is_that_of_softmax(show):
    shown = show(QueryPlane())
    for state in STATES:
        shown.set(**state)
        names = ("key_points", "query_points", "heads", "d_k", "root")
        page = dict(zip(names, shown.get(*names), strict=True))
        wanted, told = looks(page), shown.told()
        for kind, n in (("key", 4), ("query", page["heads"])):
            x, y = zip(*page[f"{kind}_points"][:n], strict=True)
            assert_tells(told, rf"^{kind} .*at \((\S+),", x)
            assert_tells(told, rf"^{kind} .*at .*, (\S+)\)$", y)
        weights = [weight for _, row, _ in wanted for weight in row]
        assert_tells(told, r": score (\S+),", [score for row, *_ in wanted for score in row])
        assert_tells(told, r", weight (\S+)$", weights)
        assert [re.findall(r"\d+", one)[-3:] for one in told if "hands over" in one] == [
            list(map(str, mix)) for mix in mixed(wanted)
        ]
        bars = shown.read(BARS)
        full = max(bars) / max(weights)
        assert all(
            bar == pytest.approx(max(1, weight * full), abs=0.1)
            for bar, weight in zip(bars, weights, strict=True)
        )
        assert shown.read(FILLS) == [f"rgb({', '.join(map(str, mix))})" for mix in mixed(wanted)]


def test_a_point_is_dragged_pressed_for_and_moved_by_keys_and_stays_in_the_plane(show):
    shown = show(QueryPlane("window"))
    mouse, (left, top) = shown.page.mouse, corner(shown)
    x, y = middle(shown, "query at")
    mouse.move(x, y)
    mouse.down()
    mouse.move(x + 30, y - 40, steps=3)
    mouse.up()
    (moved, _), held = shown.get("query_points", "held")
    assert held == "query0" and moved[0] > -0.8 and moved[1] > 1.0
    mouse.move(x, y)  # nothing holds it any more
    assert shown.get("query_points")[0] == moved
    x, y = middle(shown, "key of “child”")
    mouse.click(x, y)
    assert shown.get("held") == "key1" and shown.get("key_points")[1] == [1.6, 1.5]
    mouse.click(left + 8, top + 20)  # the empty plane: what is held comes
    (u, v), query = shown.get("key_points")[1], shown.get("query_points")[0]
    assert u == -3.0 < 2.9 < v and query == moved
    assert shown.press("Shift+ArrowLeft").startswith("key of “child” at (-3.00,")
    assert shown.press("Shift+ArrowRight", "Shift+ArrowDown").startswith("key of “child” at (-2.90")
    assert shown.get("key_points")[1] == pytest.approx([-2.9, v - 0.1])


def test_a_finger_drags_the_query_and_does_not_scroll(chromium, tmp_path):
    phone = {"width": 390, "height": 600}
    context = new_context(chromium, viewport=phone, has_touch=True, is_mobile=True)
    page = context.new_page()
    QueryPlane("window").save_html(tmp_path / "plane.html")
    page.goto((tmp_path / "plane.html").as_uri())
    box = page.locator("svg .grab rect").first.bounding_box()
    finger, (x, y) = context.new_cdp_session(page), (box["x"] + 60, box["y"] + 60)
    for i in range(9):
        kind = "touchMove" if i else "touchStart"
        at = {"x": x + 20 * i, "y": y + 20 * i}
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [at]})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    page.wait_for_function(f"() => {MODEL}.get('query_points')[0][0] > 0.5")
    assert page.evaluate("scrollY") == 0
    context.close()


def corner(shown) -> tuple[float, float]:
    box = shown.page.locator("svg .grab rect").first.bounding_box()
    return box["x"], box["y"]


def middle(shown, name: str) -> tuple[float, float]:
    box = shown.page.locator(f'svg circle[aria-label^="{name}"]').bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def solved(shown, **values) -> bool:
    shown.set(**values)
    return shown.read(TICKED)


@pytest.mark.parametrize(
    ("question", "wrong", "right"),
    [
        ("window", [[-0.8, 1.0], [2.95, 0.55]], {"query_points": [[1.5, -2.5], [0, 0]]}),
        ("nobody", [[0.0, -3.0], [-3.0, -3.0], [3.0, -3.0]], {"query_points": [[0.0, 0.0]] * 2}),
        (
            "two facts",
            [[0.0, 0.0], [0.3, 0.85], [2.9, 1.9]],
            {"query_points": [[1.0, 2.8], [0, 0]]},
        ),
    ],
)
def test_a_task_is_done_by_its_solution_only(question, wrong, right, show):
    shown = show(QueryPlane(question))
    for point in wrong:
        assert not solved(shown, query_points=[point, [0, 0]])
    assert solved(shown, **right)


def test_what_cannot_be_drawn_is_refused():
    assert_refused("the question is 'who': choose from 'window'", QueryPlane, "who")
    three = r"key_points are \[\[1, 1\]\]: give 4 pairs of numbers from -3 to 3"
    assert_refused(three, QueryPlane, key_points=[[1, 1]])
    for wrong in ([[0, 0], [0, 4]], [[0, 0], [0, math.nan]], [[0, 0], [0, "1"]], [[0, 0], 3]):
        assert_refused("query_points are ", QueryPlane, query_points=wrong)
    assert all(one["task"]["say"] for one in QUESTIONS.values())
