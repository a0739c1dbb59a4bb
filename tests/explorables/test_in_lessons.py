"""Each explorable as its lesson opens it: its task open at first, then done."""

import re

import pytest

from tests.explorables.shown import HOST
from tests.explorables.stills import as_stored, one_of_each_kind, stills

LOWEST = "the step of the lowest validation loss"
SOLVED = {  # by lesson and cell, what a learner does who solves the task: buttons, or values given
    "00/0106bdcd": ["decoder-only (GPT)"],
    "00/24f2edd5": [("English sentence", "the child closes the window .")],
    "00/forced-dass-shown": ["force “schließt”"],
    "01/7edb2b45": [("Text", "how many r's are in s t r a w b e r r y?")],
    "01/noun-neighbors": [("plurals", True), "gender"],
    "02/b197adc9": [("distance", 19)],
    "02/counted-playground": [("First position", 4), "the child sleeps ."],
    "03/query-plane": [["query at", *["Shift+ArrowRight"] * 38, *["Shift+ArrowDown"] * 30]],
    "03/film": [("Step", 14)],
    "03/1745176f": ["left", ("causal mask", False)],
    "04/two-facts": [["query at", *["Shift+ArrowRight"] * 10, *["Shift+ArrowUp"] * 28]],
    "04/board": [
        re.compile("^head 6 of decoder block 1 .* is on; "),
        re.compile("^head 3 of encoder block 1 is on; "),
    ],
    "05/norm-explorer": [("scale", 3), ("Step", 2)],
    "05/stream-drawn": ["the"],
    "05/c67e969b": ["Layer", "10"],
    "06/hunt-in-the-page": [("English sentence", "they know that the queen is good .")],
    "07/0c1d4300": [("Text", "the child closes the window .")],
    "07/0e1dad53": ["B, token 5 “Fenster” has not been replaced yet"],
    "07/patches-see": [("Row", 7), ("Column", 11)],
    "08/1e6d0eda": [re.compile(r"^step [\d,]+: .*exact match 0(\.[0-4]\d*)?$")],
    "08/5044e6bd": [("Snapshot", 19)],
    "09/1d01777a": [("Step", 12)],
    "09/sausage": [("top-p", 0.5), ("Step", 8)],
    "11/8acae264": [re.compile(r"^step (80|90): .*right 0\.[56]")],
    "11/circuit-graph": [
        "embedding to values of head 1.0, there",
        "embedding to values of head 1.1, there",
    ],
    "11/3e33190c": ["heads"],
    "12/every-head": [re.compile("^loss on copying: "), re.compile("^block 16, head 0: 8")],
    "13/length-explorer": [("Positions divided by", 4), ("slow pairs only", True)],
    "13/cache-calculator": ["128k", "1 in 6"],
    "15/budget-drawn": [("Weights", 34)],
    "15/one-pass-drawn": [("Score of key 1", 7)],
    "15/devices-drawn": [("Parts of a batch", 13)],
    "14/clinic-shown": [
        re.compile("^rates, "),
        re.compile("^order, "),
        "The optimizer was not given all of the weights.",
    ],
    "15/will-it-fit": [re.compile("^2 devices: "), re.compile("^blocks computed twice: ")],
    "16/group": ["finally the red bicycle wobbles", "push", re.compile("^answer 1, reward 0")],
    "16/clinic-shown": [
        re.compile("^variety, "),
        "It draws the likeliest word each time.",
    ],
    "16/leash-explored": ["0.3", ("Stop at step", 9), "Stop here"],
}
DONE = """[root.querySelector(".task").checkVisibility(), "done" in
    root.querySelector(".task").dataset]"""
STOPS = """[...root.querySelectorAll("section :is(button, input, textarea, a):enabled, section a")]
    .filter(node => node.checkVisibility()).length"""
STOP = f"""() => {{
    const root = {HOST}.shadowRoot, node = root.activeElement;
    return !node ? null : node.closest("svg") ? "picture" : [...root.querySelectorAll("*")]
        .indexOf(node);
}}"""


def test_every_explorable_of_the_story_has_a_task_and_its_solution():
    own = stills()
    maps = {name for name in own if own[name]["kind"] == "ArchitectureMap"}  # signposts
    assert set(SOLVED) == {*own} - maps | {name for name in maps if own[name]["values"]["task"]}


@pytest.mark.parametrize("name", one_of_each_kind())
def test_it_is_reached_by_keyboard_and_its_task_can_be_done(name, show):
    shown = show(as_stored(name), viewport={"width": 414, "height": 800})  # as on a phone
    assert len(tabbed(shown)) == shown.read(STOPS) + 1  # the picture
    if name in SOLVED:
        assert shown.read(DONE) == [True, False]
        for action in SOLVED[name]:
            act(shown, action)
        assert shown.read(DONE) == [True, True]


def tabbed(shown) -> set:
    """Every place where the Tab key stops until it leaves the explorable or begins again."""
    stops = set()
    while True:
        shown.page.keyboard.press("Tab")
        if (stop := shown.page.evaluate(STOP)) is None or stop in stops:
            return stops
        stops.add(stop)


def act(shown, action: str | list | re.Pattern | tuple) -> None:
    """Press the first button with this name, or keys there, or set the control of that label."""
    if action == LOWEST:
        (step,) = re.findall(r"validation [^;]* at step ([\d,]+)", shown.said)
        action = re.compile(f"^step {step}:")
    if isinstance(action, re.Pattern):
        shown.named(action).first.click(force=True)
    elif isinstance(action, list):
        name, *keys = action
        shown.named(name).focus()
        shown.press(*keys)
    elif isinstance(action, str):
        shown.named(action, exact=True).first.click(force=True)
    else:
        label, value = action
        control = shown.page.locator("label", has_text=re.compile(f"^{label}"))
        control = control.locator("input, textarea").first
        control.set_checked(value) if isinstance(value, bool) else control.fill(str(value))
    shown.read("null")
