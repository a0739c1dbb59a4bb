"""Curves that grow while a model trains: every state, few redraws, the last one kept."""

import io
import math
import warnings

import nbformat
import pytest
from nbclient import NotebookClient
from PIL import Image

from transformer_lesson.explorables import LiveCurves, live_curves
from transformer_lesson.explorables.live_curves import SHARE, render_live_curves
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer
from transformer_lesson.text.batches import WindowBatches, windows
from transformer_lesson.training import StepReport, train
from transformer_lesson.training.config import TrainConfig


def report(step, loss=1.0, validation=None):
    return StepReport(step, loss, 0.0, 0.0, 0.0, validation, None)


class Shell:
    """A notebook's kernel, as far as the curves know it: cells that end, and a clock."""

    def __init__(self, monkeypatch, drawing):
        self.now, self.drawing, self.at_end = 0.0, drawing, []
        self.shown, self.stored = [], []  # texts of the pictures drawn, and of those stored
        self.events = self
        monkeypatch.setattr(live_curves, "render_live_curves", self.draw)
        monkeypatch.setattr(live_curves, "get_ipython", lambda: self)
        monkeypatch.setattr(live_curves, "display", self.display)
        monkeypatch.setattr(live_curves.time, "perf_counter", lambda: self.now)

    def display(self, data, metadata, raw, display_id):
        assert raw and display_id
        return self

    def update(self, data, metadata, raw):
        self.stored.append(metadata["image/png"]["alt"])

    def draw(self, title, series, log):
        self.now += self.drawing
        drawn = render_live_curves(
            title, {name: points[-9:] for name, points in series.items()}, log
        )
        self.shown.append(drawn.text)
        return drawn

    def register(self, event, function):
        assert event == "post_run_cell"
        self.at_end.append(function)

    def unregister(self, event, function):
        self.at_end.remove(function)

    def end_cell(self):
        for function in list(self.at_end):
            function(None)


def test_text_says_the_last_value_of_every_curve():
    live = LiveCurves("A model learns")
    for step in range(1, 21):
        live(report(step, 2 / step, validation=0.5 if step == 10 else None))
    live.add("exact match", 20, 0.97)
    expected = "A model learns, step 20: training 0.1, validation 0.5, exact match 0.97."
    assert live.render().text == expected


def test_takes_the_reports_of_real_training():
    ids = list(range(10)) * 20
    live = LiveCurves()
    model = DecoderOnlyTransformer(ModelConfig(10, 8, 2, 1, 16, 8))
    batches = WindowBatches(ids, batch_size=4, length=8)
    config = TrainConfig(steps=4, warmup_steps=1)
    history = train(
        model, batches, config, live, validation=windows(ids[:40], 4, 8), validate_every=2
    )
    assert [loss for _, loss in live.series["training"]] == history.losses
    assert live.series["validation"] == history.validation


@pytest.mark.slow
@pytest.mark.parametrize("drawing", [0.001, 0.1, 2.0])
def test_drawing_takes_a_small_share_of_the_time(monkeypatch, drawing):
    shell, live = Shell(monkeypatch, drawing), LiveCurves()
    live._ipython_display_()
    shell.shown.clear()
    for step in range(1, 20_001):
        shell.now += 0.01
        live(report(step))
    drawn = len(shell.shown)
    assert drawn * drawing <= SHARE * shell.now + drawing
    assert drawn <= shell.now / live_curves.INTERVAL + 1
    assert drawn >= 2  # it moves all the same
    assert shell.stored == []


def test_the_last_state_is_drawn_and_stored_when_the_cell_ends(monkeypatch):
    shell, live = Shell(monkeypatch, 0.0), LiveCurves("t")
    live._ipython_display_()
    for step in (1, 2, 3):
        live(report(step))
    assert shell.shown[-1] == live.rendering.text == "t, step 1: training 1."
    shell.end_cell()
    assert shell.stored == [live.rendering.text] == ["t, step 3: training 1."]
    shell.end_cell()
    assert len(shell.stored) == 1  # nothing new, nothing stored
    live(report(4))
    shell.end_cell()
    assert shell.stored[1:] == ["t, step 4: training 1."]


def test_what_came_before_it_was_shown_is_shown_too(monkeypatch):
    shell, live = Shell(monkeypatch, 0.0), LiveCurves("t")
    live(report(1))
    live.add("anything", 2, 5)
    assert shell.at_end == [] and live.series["anything"] == [(2, 5.0)]
    live._ipython_display_()
    assert live.rendering.text == "t, step 2: training 1, anything 5."


def test_the_axis_can_be_changed_afterwards():
    live = LiveCurves()
    for step in range(1, 20):
        live(report(step, 5 / step))
    live._redraw()
    before = live.picture.value
    live.controls["log"].value = True
    assert live.picture.value != before
    assert live.rendering == LiveCurves.render(live)


@pytest.mark.slow
@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    "series",
    [
        {},
        {"training": [(1, 5.0)]},
        {"training": [(1, math.nan), (2, math.inf), (3, 1e300)], "validation": [(2, -1.0)]},
        {"training": [(i, 1.0) for i in range(100_000)]},
        {f"curve {i} $x$ <b> 🦄 {'x' * 300}": [(1, i), (9, -i)] for i in range(20)},
        {"only this": [(7, 0.0)]},
    ],
    ids=["nothing", "one", "not numbers", "long", "many", "other"],
)
def test_anything_is_drawn(series, log):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = render_live_curves("<script> $ 🦄", series, log)
        assert first == render_live_curves("<script> $ 🦄", series, log)
    assert Image.open(io.BytesIO(first.png)).width <= 950


def test_log_changes_the_picture():
    series = {"training": [(i, 5 / i) for i in range(1, 30)]}
    assert render_live_curves("t", series, True).png != render_live_curves("t", series, False).png


def test_repr_is_short_and_stable():
    live = LiveCurves("A model learns")
    live(report(1))
    assert repr(live) == "LiveCurves('A model learns')"


@pytest.mark.slow
def test_a_saved_notebook_holds_the_last_picture():
    source = (
        "from types import SimpleNamespace\n"
        "from transformer_lesson.explorables import LiveCurves\n"
        "live = LiveCurves('run')\n"
        "display(live)\n"
        "for step in range(1, 31):\n"
        "    live(SimpleNamespace(step=step, loss=1 / step, validation=None))"
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source)])
    NotebookClient(notebook, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert {"image/png", "text/plain"} < set(output.data)  # and the widget
    assert output.data["text/plain"] == "LiveCurves('run')"
    assert output.metadata["image/png"]["alt"] == "run, step 30: training 0.03333."
