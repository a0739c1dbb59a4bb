"""What every explorable shares: redrawing, the stored picture, text that cannot act."""

import io
import subprocess
import sys
from html.parser import HTMLParser

import ipywidgets
import pytest
from PIL import Image

from transformer_lesson import explorables
from transformer_lesson.explorables.base import Explorable, Rendering, as_html, drawable, sentence
from transformer_lesson.explorables.in_page import PageExplorable
from transformer_lesson.figures.plots import figure
from transformer_lesson.files import printable

DRAWN_BY_THE_KERNEL = [
    name for name in explorables.__all__ if issubclass(getattr(explorables, name), Explorable)
]


class Doubler(Explorable):
    def __init__(self, n=3):
        super().__init__({"n": ipywidgets.IntSlider(n, 0, 9), "name": ipywidgets.Text("x" * 99)})

    def render(self):
        made, axes = figure("doubled", f"twice {self.values['n']} is {2 * self.values['n']}")
        axes.bar([0, 1], [self.values["n"], 2 * self.values["n"]])
        return Rendering(made.png(), made.alt)


class Tags(HTMLParser):
    """Collects the tags, attributes and words of a page as a browser would read them."""

    def __init__(self, page: str):
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.words += data


def test_moving_a_control_changes_picture_and_words():
    doubler = Doubler()
    before = doubler.picture.value
    doubler.controls["n"].value = 4
    page = Tags(doubler.picture.value)
    assert doubler.picture.value != before
    assert page.words == "twice 4 is 8"
    assert page.tags[0][1]["alt"] == "twice 4 is 8"
    assert page.tags[1] == ("p", page.tags[1][1]) and page.tags[1][1]["role"] == "status"


def test_stored_output_holds_the_widget_a_picture_and_a_short_line():
    doubler = Doubler()
    doubler.controls["n"].value = 5
    data, metadata = doubler._repr_mimebundle_()
    model_id = data["application/vnd.jupyter.widget-view+json"]["model_id"]
    assert model_id == doubler.model_id
    assert Image.open(io.BytesIO(data["image/png"])).format == "PNG"
    assert metadata["image/png"]["alt"] == "twice 5 is 10"
    assert data["text/plain"] == repr(doubler)
    assert repr(doubler).startswith("Doubler(n=5, name='xxx") and len(repr(doubler)) < 60


class Echo(Explorable):
    """Says what was typed."""

    picture_of_nothing = figure("", "")[0].png()

    def __init__(self, typed):
        super().__init__({"typed": ipywidgets.Text(typed)})

    def render(self):
        return Rendering(self.picture_of_nothing, self.values["typed"])


def test_typed_text_stays_text(hostile):
    echo = Echo(hostile)
    page = Tags(echo.picture.value)
    assert [tag for tag, _ in page.tags] == ["img", "p"]
    assert set(page.tags[0][1]) == {"alt", "width", "height", "style", "src"}
    assert page.words == printable(hostile)
    echo._repr_mimebundle_()[1]["image/png"]["alt"].encode()  # can be sent to the browser


def test_picture_keeps_its_size_while_it_is_replaced():
    made, _ = figure("", "", width=4.0, height=2.0)
    _, attributes = Tags(as_html(Rendering(made.png(), ""))).tags[0]
    assert (attributes["width"], attributes["height"]) == ("360", "180")


def test_sentence_is_drawn_and_told(hostile):
    drawn = sentence(f"Type a word instead of {hostile[:300]}.")
    assert Image.open(io.BytesIO(drawn.png)).width == 540
    assert drawn.text == f"Type a word instead of {hostile[:300]}."


def test_only_characters_without_a_shape_become_boxes():
    assert drawable("aé שלום ▁ 注\n") == "aé שלום ▁ □□"


def test_an_explorable_without_render_says_so():
    with pytest.raises(NotImplementedError, match="Explorable has to define render"):
        Explorable({})


@pytest.mark.parametrize("name", explorables.__all__)
def test_every_exported_name_is_an_explorable(name):
    assert issubclass(getattr(explorables, name), Explorable | PageExplorable)


def test_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        explorables.Oracle  # noqa: B018


def test_importing_the_package_loads_no_widgets():
    program = "import sys, transformer_lesson.explorables; print('ipywidgets' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN_BY_THE_KERNEL)
def test_equal_states_give_equal_bytes(name):
    first, second = getattr(explorables, name)(), getattr(explorables, name)()
    assert first.rendering == second.rendering
    assert repr(first) == repr(second)


@pytest.mark.slow
@pytest.mark.parametrize("name", DRAWN_BY_THE_KERNEL)
def test_every_control_has_a_label_and_can_be_reached_by_keyboard(name):
    for control in getattr(explorables, name)().controls.values():
        assert control.description
        assert not isinstance(control, ipywidgets.Dropdown)  # JupyterLab takes its arrow keys
