"""Curves that grow while a model trains: every state, few messages, the last one kept."""

import math
import re
from copy import deepcopy
from decimal import ROUND_HALF_UP, Context, Decimal
from itertools import product

import nbformat
import pytest
from nbclient import NotebookClient

from transformer_lesson.explorables import LiveCurves, live_curves
from transformer_lesson.explorables.export import WIDGET, saved_widgets
from transformer_lesson.explorables.live_curves import MOST, SHARE, as_sent, number, thinned
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import WindowBatches, windows_in_order
from transformer_lesson.training import StepReport, train
from transformer_lesson.training.config import TrainConfig

RUN = {
    "training": [(step, 1 + 5 / step) for step in range(1, 201)],
    "validation": [(step, 0.2 + 5 / step) for step in range(50, 201, 50)],
    "exact match": [(100, 0.25), (200, 0.96875)],
}
STATES = {
    "nothing": {"training": [], "validation": []},
    "one": {"training": [(1, 5.0)], "validation": []},
    "a run": RUN,
    "other": {"training": [], "validation": [], "only this": [(7, 0.0), (9, -3.5)]},
    "heads": RUN | {f"head {i}.{j}": [(5 * k, i + j / k) for k in range(1, 40)]
                    for i in range(4) for j in range(3)},
    "level": {"training": [(step, 2.0) for step in range(1, 9)], "validation": []},
    "small": {"training": [(step, 10.0**-step) for step in range(1, 12)], "validation": []},
}  # fmt: skip


def report(step, loss=1.0, validation=None):
    return StepReport(step, loss, 0.0, 0.0, 0.0, validation, None)


class Kernel:
    """What sends the curves' messages, as far as they know it: cells that end, and a clock."""

    def __init__(self, monkeypatch, live: LiveCurves, sending: float):
        self.now, self.sending, self.at_end, self.sent = 0.0, sending, [], []
        self.events = self
        monkeypatch.setattr(live, "_send", self.send)
        monkeypatch.setattr(live_curves, "get_ipython", lambda: self)
        monkeypatch.setattr(live_curves.time, "perf_counter", lambda: self.now)

    def send(self, message, buffers):
        self.now += self.sending
        assert message["method"] == "update" and list(message["state"]) == ["series"]
        self.sent.append(dict(message["state"]["series"]))

    def register(self, event, function):
        assert event == "post_run_cell"
        self.at_end.append(function)

    def unregister(self, event, function):
        self.at_end.remove(function)

    def end_cell(self):
        for function in list(self.at_end):
            function(None)


@pytest.mark.slow
@pytest.mark.parametrize("sending", [0.001, 0.1, 2.0])
def test_sending_takes_a_small_share_of_the_time(monkeypatch, sending):
    live = LiveCurves()
    kernel = Kernel(monkeypatch, live, sending)
    for step in range(1, 2_001):
        kernel.now += 0.1
        live(report(step))
    sent = len(kernel.sent)
    assert sent * sending <= SHARE * kernel.now + sending
    assert 2 <= sent <= kernel.now / live_curves.INTERVAL + 1  # it moves all the same


def test_the_last_state_is_sent_when_the_cell_ends(monkeypatch):
    live = LiveCurves("t")
    kernel = Kernel(monkeypatch, live, 0.0)
    for step in (1, 2, 3):
        live(report(step, validation=0.5 if step == 2 else None))
    assert kernel.sent == [{"training": [[1, 1.0]], "validation": []}]
    kernel.end_cell()
    last = {"training": [[1, 1.0], [2, 1.0], [3, 1.0]], "validation": [[2, 0.5]]}
    assert kernel.sent[1:] == [last]
    kernel.end_cell()
    assert len(kernel.sent) == 2  # nothing new, nothing sent
    live.add("anything", 4, 5)
    kernel.end_cell()
    assert kernel.sent[2:] == [last | {"anything": [[4, 5.0]]}]


def test_it_takes_the_reports_of_real_training_also_in_a_plain_python():
    ids, live = list(range(10)) * 20, LiveCurves("A model learns")
    model = DecoderOnlyTransformer(ModelConfig(10, 8, 2, 1, 16, 8))
    batches, config = WindowBatches(ids, batch_size=4, length=8), TrainConfig(4, warmup_steps=1)
    checked = {"validation": windows_in_order(ids[:40], 4, 8), "validate_every": 2}
    history = train(model, batches, config, live, **checked)
    assert [loss for _, loss in live.series["training"]] == history.losses
    assert live.series["validation"] == history.validation
    assert live.get_state("series") == {"series": as_sent(live.series)}
    assert repr(live) == "LiveCurves(logarithmic=False, step=None, title='A model learns')"
    assert LiveCurves().series == {"training": [], "validation": []}  # no points of another run


def test_a_long_curve_keeps_true_points_its_ends_and_its_extremes_and_no_numbers_become_words():
    values = [math.nan, math.inf, -math.inf, 1e300, 1 / 3]
    sent = list(map(list, enumerate(["nan", "inf", "-inf", 1e300, 0.333333])))
    assert as_sent({"a\x00\ud83d": list(enumerate(values))}) == [[r"a\x00\ud83d", sent]]
    points = [(step, math.sin(step) + 1 / step) for step in range(1, 100_001)]
    points[777] = (778, math.nan)
    kept = thinned(points, {50_000})
    assert len(kept) <= MOST + 3 and set(kept) <= set(points) and kept == sorted(kept)
    assert {points[0], points[-1], points[777], points[49_999]} <= set(kept)
    values = [value for _, value in points if value == value]
    assert {min(values), max(values)} <= {value for _, value in kept}
    assert thinned(points[:MOST]) == points[:MOST]
    long = [(step, 1 / step) for step in range(1, 5001)]
    sent = dict(as_sent({"training": long, "validation": long[49::50]}))  # at common steps
    assert len(sent["training"]) < 700
    assert {step for step, _ in sent["validation"]} <= {step for step, _ in sent["training"]}


@pytest.mark.slow
def test_a_saved_notebook_holds_the_last_state_also_after_an_interrupt():
    training = (
        "for step in range({}, {}):\n"
        "    live(SimpleNamespace(step=step, loss=1 / step, validation=None))\n"
    )
    cells = [
        "from types import SimpleNamespace\n"
        "from transformer_lesson.explorables import LiveCurves\n"
        "live = LiveCurves('run')",
        "display(live)\n" + training.format(1, 31),
        training.format(31, 41) + "raise KeyboardInterrupt",
    ]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    client, seen = NotebookClient(notebook, kernel_name="python3", allow_errors=True), []
    client.on_cell_executed = lambda **_: seen.append(deepcopy(client.widget_state))
    client.execute()
    (output,) = notebook.cells[1].outputs
    assert output.data["text/plain"] == "LiveCurves(logarithmic=False, step=None, title='run')"
    assert "image/png" not in output.data  # Chromium makes it of the state
    name = output.data[WIDGET]["model_id"]
    series = {"training": [[step, number(1 / step)] for step in range(1, 41)], "validation": []}
    assert dict(seen[1][name]["series"]) == series | {"training": series["training"][:30]}
    assert dict(saved_widgets(notebook)[name]["state"]["series"]) == series


def short(value: float | str) -> str:
    """A value in four digits, as JavaScript writes a number."""
    if isinstance(value, str):
        return value
    rounded = Context(prec=4, rounding=ROUND_HALF_UP).create_decimal(Decimal(value))
    text = repr(float(rounded)).removesuffix(".0")
    if 1e-7 < abs(value) < 1e-4:  # written out there
        text = f"{float(text):.15f}".rstrip("0")
    return re.sub(r"e-0(\d)", r"e-\1", text)


def expected(series: dict) -> list[str]:
    """What is told of each step: of losses first, then of other curves."""
    losses = {name: points for name, points in series.items() if name in ("training", "validation")}
    places: dict[int, list[str]] = {}
    for name, points in (losses | series).items():
        for step, value in points:
            places.setdefault(step, []).append(f"{name} {short(value)}")
    return [f"step {step:,}: {', '.join(words)}" for step, words in sorted(places.items())]


def test_every_state_tells_every_point(show):
    page = show(LiveCurves("A run"))
    cases = list(product(map(as_sent, STATES.values()), (False, True)))
    states = [{"series": series, "logarithmic": log} for series, log in cases]
    for (series, _), shown in zip(cases, page.states(states), strict=True):
        ends = {f"{name} {short(points[-1][1])}" for name, points in series if points}
        assert ends <= {*shown["written"]} and shown["told"] == expected(dict(series))


FRAME = """[...root.querySelectorAll("svg > g > g:first-child > g")].map(frame => {
    const [, lines, ticks, curves] = frame.children;
    const y = node => Number(node.getAttribute("d").match(/ ([-\\d.e]+)H/)[1]);
    return {
        ticks: [...lines.children].map((node, i) => [+ticks.children[i].textContent, y(node)]),
        curves: [...curves.children].map(node => node.getAttribute("d")),
    };
})"""
STEPS = """[...root.querySelectorAll("svg text.middle")]
    .map(node => [Number(node.textContent.replaceAll(",", "")), Number(node.getAttribute("x"))])"""


def between(values: list[float], start: tuple, end: tuple) -> pytest.approx:
    """Where values stand on an axis of which two (value, place) are known."""
    (low, at_low), (high, at_high) = start, end
    places = [at_low + (at_high - at_low) * (value - low) / (high - low) for value in values]
    return pytest.approx(places, abs=0.1)


@pytest.mark.parametrize("log", [False, True])
def test_curves_stand_where_the_axes_say(show, log):
    page = show(LiveCurves("A run", log))
    page.set(series=as_sent(RUN))
    first, *_, last = page.read(STEPS)
    names = [["training", "validation"], ["exact match"]]
    for frame, own, logarithmic in zip(page.read(FRAME), names, (log, False), strict=True):
        scaled = math.log10 if logarithmic else float
        low, *_, high = [(scaled(value), y) for value, y in frame["ticks"]]
        for name, path in zip(own, frame["curves"], strict=True):
            places = [tuple(map(float, pair.split())) for pair in re.split("[ML]", path)[1:]]
            steps, values = zip(*RUN[name], strict=True)
            assert [x for x, _ in places] == between(steps, first, last)
            assert [y for _, y in places] == between(map(scaled, values), low, high)


@pytest.mark.parametrize("log", [False, True])
def test_levels_lie_where_the_axis_says_and_no_lower_than_the_frame(show, log):
    page = show(LiveCurves("A run", log, levels={"one": 2.0, "its floor": 0.01}))
    page.set(series=as_sent(RUN))
    lines = """[...root.querySelectorAll("svg path")].map(node => node.getAttribute("d") +
        node.getAttribute("stroke-dasharray")).filter(one => one.endsWith("2 4"))"""
    one, floor = (float(line.split()[1].split("H")[0]) for line in page.read(lines))
    ticks = page.read(FRAME)[0]["ticks"]
    scaled = math.log10 if log else float
    (low, at_low), *_, (high, at_high) = [(scaled(value), y) for value, y in ticks]
    assert [one] == between([scaled(2.0)], (low, at_low), (high, at_high))
    assert floor >= one and {"one 2", "its floor 0.01"} <= {*page.written()}
    assert page.said.endswith(" Dashed: one 2. Dashed: its floor 0.01.")


def test_a_step_is_pointed_at_pressed_and_reached_by_keys(show):
    page = show(LiveCurves("A run"))
    page.set(series=as_sent(RUN))
    wanted = expected(dict(as_sent(RUN)))
    step = page.named(wanted[99], exact=True)
    step.hover()
    page.page.locator(".tip", has_text=wanted[99]).wait_for()
    step.focus()
    assert page.press("ArrowRight") == wanted[100]
    assert page.press("ArrowLeft", "ArrowLeft") == wanted[98]
    page.press("ArrowRight", "Enter")
    assert page.title.endswith("step 100: training 1.05; validation 0.25; exact match 0.25")
    page.click(wanted[199])
    assert "training 1.025, its lowest; validation 0.225, its lowest; exact" in page.title
    page.click(wanted[199])
    assert page.title.endswith(": training 1.025, validation 0.225") and "lowest" in page.said


def test_anything_is_drawn(show):
    page = show(LiveCurves("<script> $ 🦄" * 99), viewport={"width": 320, "height": 900})
    bad = [(1, math.nan), (2, math.inf), (3, 1e300), (4, -math.inf), (5, -1.0), (6, 0.0)]
    many = {f"curve {i} $x$ <b> 🦄 {'x' * 300}": [(1, float(i)), (9, -float(i))] for i in range(20)}
    flat = {"training": [(i, 1.0) for i in range(100_000)]}
    one, bad = {"training": [(3, math.nan)]}, {"training": bad, "validation": [(2, -1.0)]}
    for series, log in product((bad, flat, many, one), (False, True)):
        page.set(series=as_sent(series), logarithmic=log)
        assert not re.search(r"NaN|Infinity", page.read("root.innerHTML"))
        assert page.told() and page.said and page.width() <= 320
    assert page.told() == ["step 3: training nan"] and page.written().count("×") == 1
