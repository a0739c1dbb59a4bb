"""What holds for every explorable that lives in the page."""

import ast
import csv
import json
import re
import subprocess
import sys
import warnings
from inspect import signature
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import quote

import pytest
from lxml import etree
from traitlets import Int, TraitError

from tests.browser.accessibility import AXE, FORM
from tests.explorables.conftest import HOSTILE
from tests.explorables.examples import made
from tests.explorables.looks import LOOK, faults
from tests.explorables.page_modules import NODE
from tests.explorables.shown import HOST, MODEL, RESTED, WINDOW, Shown, assert_refused
from tests.security.hostile_texts import TEXTS
from transformer_lesson import explorables
from transformer_lesson.checkpoints.translator import TRANSLATOR
from transformer_lesson.explorables import html
from transformer_lesson.explorables.bundle import WEB, bundle, front_ends
from transformer_lesson.explorables.in_page import (
    LARGEST_MODEL,
    ReadsTranslator,
    Text,
    Weights,
)

PLAYED = {  # what is played, from where to where; ModelFlow's beats: test_model_flow
    "AnswerExplorer": ("step", 1, 5),
    "AttentionExplorer": ("added", 0, 3),
    "AttentionFilm": ("number", 0, 4),
    "DecodingStepper": ("step", 1, 17),
    "GroupExplorer": ("drawn", 1, 8),
    "LeakProbe": ("position", 0, 11),
    "Leash": ("stop", 0, 12),
    "NormExplorer": ("step", 0, 4),
    "OnlineSoftmax": ("step", 0, 4),
    "PatchExplorer": ("stage", 0, 2),
    "PipelineExplorer": ("time", 0, 21),
    "PositionalEncodingExplorer": ("position", 0, 15),  # the later one is at 49
    "StreamExplorer": ("point", 0, 5),
    "TokenizerExplorer": ("step", 0, 22),
    "TrainingReplay": ("number", 1, 6),
    "TranslationPlayground": ("shown", 1, 12),
}
PLAY = f"""(() => {{
    const button = root.querySelector("button.play");
    const seen = [], timers = [window.setInterval, window.clearInterval];
    let tick = null;
    window.setInterval = act => {{ tick = act; return 1; }};
    window.clearInterval = () => {{ tick = null; }};
    button?.click();
    while (tick) {{ seen.push({MODEL}.get(argument)); tick(); }}
    [window.setInterval, window.clearInterval] = timers;
    return seen;
}})()"""
"""Plays to the end, without waiting for the clock, and returns the values that were shown."""
TO_THE_END = f"""await (async () => {{
    for (const one of root.querySelectorAll(".controls :is([type=range], fieldset)")) {{
        const node = one.querySelector("button:last-child") ?? one; // after what was pressed before
        node.value = node.max;
        node.dispatchEvent(new Event(node.max ? "input" : "click"));
        await ({RESTED})();
    }}
}})()"""
STANDING = """[...root.querySelectorAll(".controls :is(output, [aria-pressed=true])")]
    .map(node => node.textContent)"""
UNFINISHED = re.compile(r"NaN|undefined|Infinity|\[object|null")
UNRINGED = """(() => {
    const ring = node => { const { stroke, outlineStyle } = getComputedStyle(node);
        return outlineStyle !== "none" || stroke === argument; };
    return [...root.querySelectorAll("svg [aria-pressed=true]")].filter(node => {
        node.focus();
        return ![node, ...node.querySelectorAll(".box")].some(ring);
    }).map(node => node.outerHTML);
})()"""
"""The pressed places without a ring of the color in `argument` where the focus is."""
FOCUS_COLOR = "rgb(106, 53, 217)"
TIP = 'getComputedStyle(root.querySelector(".tip")).visibility'
POINTED_AT = """root.querySelector("svg [tabindex]")?.dispatchEvent(
    new PointerEvent("pointermove", {bubbles: true, composed: true, screenX: 1, screenY: 1}))"""
UNNAMED = """[...root.querySelectorAll("svg [tabindex], svg [role=button], svg [role=img]")]
    .filter(node => !node.getAttribute("aria-label") || node.getAttribute("tabindex") === null)
    .map(node => node.outerHTML)"""
UNTOLD = """[...root.querySelectorAll("svg text")].filter(node =>
    !node.closest("[aria-hidden], [aria-label][tabindex]") &&
    /^[-−]?[\\d.,]+$/.test(node.textContent))
    .map(node => node.outerHTML)"""
REACHED = """(() => {
    const places = [...root.querySelectorAll("svg [tabindex]")];
    const seen = new Set([0]), open = [0];
    while (open.length && seen.size < places.length) {
        const from = places[open.pop()];
        for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) {
            from.focus();
            from.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
            const to = places.indexOf(root.activeElement);
            if (!seen.has(to)) open.push(to);
            seen.add(to);
        }
    }
    return [...seen];
})()"""
"""The numbers of the places to which arrows lead from the first one."""
SENTENCES = """() => [...document.querySelectorAll("div.explorable > div")]
    .map(host => host.shadowRoot.querySelector(".said").innerText)"""


@pytest.fixture(scope="module", params=explorables.__all__)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def opened(name, chromium, tmp_path_factory):
    """Yield one explorable's page, which the tests that ask for it use in their order."""
    page = Shown(chromium)
    yield page.open(made(name), tmp_path_factory.mktemp("page"), WINDOW)
    page.close()
    assert page.problems == []


@pytest.mark.slow
def test_its_values_can_be_linked_and_its_repr_is_short_and_stable(name):
    one, other = made(name), made(name)
    assert one.values == other.values and repr(one) == repr(other)
    assert repr(one).startswith(f"{name}(") and len(repr(one)) < 400
    for key in one.values:
        assert one.has_trait(key) and one.trait_metadata(key, "sync")


def test_it_is_finished_accessible_and_fits(opened):
    assert opened.read("root.activeElement?.blur()") is None
    shown = opened.all()
    words = " ".join([shown["title"], shown["said"], *shown["told"]])
    assert shown["said"] and not UNFINISHED.search(words)
    opened.page.evaluate(AXE)
    assert opened.page.evaluate(FORM) == opened.read(UNNAMED) == opened.read(UNTOLD) == []
    for scheme in ("dark", "light"):
        opened.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        opened.page.wait_for_function(f"scheme => {HOST}.dataset.theme === scheme", arg=scheme)
    for width in (320, 1400, 390):
        opened.page.set_viewport_size({"width": width, "height": 2500})
        opened.set()
        assert opened.width() <= width
    assert faults([{"state": "on a phone", **opened.read(LOOK)}]) == {}
    opened.page.emulate_media(color_scheme="light", reduced_motion="reduce")
    opened.page.set_viewport_size(WINDOW)


def test_arrows_lead_to_every_place_of_the_picture(opened):
    """Each explorable's still shows in its lesson that Tab leads to the picture and the rest."""
    places = len(opened.told())
    assert not places or set(opened.read(REACHED)) == set(range(places))


def test_the_focus_has_a_ring_on_what_is_pressed_and_keys_are_explained(opened):
    opened.page.keyboard.press("Tab")
    assert opened.read(UNRINGED, FOCUS_COLOR) == []
    keys = opened.read('root.querySelector("svg").ariaDescribedByElements[0].textContent')
    assert keys == "Arrow keys move in the picture, Enter chooses."


def test_what_changes_is_spoken_and_escape_takes_the_tip_away(opened):
    """The picture's sentence is a live region; the tip of a place goes without moving the hand."""
    assert opened.read('root.querySelector("p.said").role') == "status"
    opened.read("root.activeElement?.blur()")
    opened.read(POINTED_AT)
    if opened.told():
        assert opened.read(TIP) == "visible"
        opened.page.keyboard.press("Escape")
    assert opened.read(TIP) == "hidden"


def test_play_goes_on_to_the_end_and_begins_again_there(name, opened):
    trait, first, last = PLAYED.get(name, ("", 0, -1))
    start = opened.get(trait) if trait else 0
    played = list(range(first, last + 1))
    begun = played if start >= last else played[start - first :]
    assert [opened.read(PLAY, trait), opened.read(PLAY, trait)] == [begun, played]
    opened.set(**{trait: start} if trait else {})


def test_past_the_last_value_each_control_stands_at_the_last(name, opened):
    traits = getattr(explorables, name).class_traits(sync=True, fact=None)
    endless = {
        key
        for key, one in traits.items()
        if isinstance(one, Int) and one.min is not None and one.max is None
    }
    opened.read(f"globalThis.start = {{...{MODEL}.values}}, null")
    opened.read(TO_THE_END)
    opened.set(**dict.fromkeys(endless - {"top_k"}, 999))  # whose slider grows with it
    standing = opened.read(STANDING)
    opened.read(TO_THE_END)
    assert opened.read(STANDING) == standing
    opened.read(f"Object.entries(start).forEach(one => {MODEL}.set(...one))")


def test_its_picture_is_saved_whole(opened, tmp_path):
    opened.read("root.activeElement?.blur()")
    with opened.page.expect_download() as download:
        opened.page.get_by_role("button", name="SVG", exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    svg = etree.parse(path).getroot()
    texts = ["".join(node.itertext()) for node in svg.iter("{*}text")]
    assert texts[0] == opened.title and set(opened.written()) <= set(texts)
    assert svg.findtext("{*}desc") == opened.said
    assert "var(" not in path.read_text() and "class=" not in path.read_text()


def test_its_numbers_leave_as_a_table(opened, tmp_path):
    with opened.page.expect_download() as download:
        opened.page.get_by_role("button", name="CSV", exact=True).click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    with path.open(encoding="utf-8", newline="") as file:
        head, *rows = csv.reader(file)
    assert path.suffix == ".csv" and head[:1] == ["what"]
    assert [row[0].removeprefix("'") for row in rows] == opened.told()
    for words, *numbers in rows:
        plain = words.replace(",", "").replace("−", "-")
        assert all(number in plain for number in numbers)
        assert bool(numbers) == bool(re.search(r"\d", words))


def test_a_link_and_a_line_of_python_bring_its_state_back(name, opened):
    opened.read(f"{MODEL}.copied = [], navigator.clipboard.writeText = async text => "
                f"{MODEL}.copied.push(text)")  # fmt: skip
    opened.read(TO_THE_END)
    free, state = html.free_names(getattr(explorables, name)), opened.all()
    opened.page.get_by_role("button", name="link", exact=True).click()
    (link,) = opened.read(f"{MODEL}.copied")
    assert link == opened.page.url and "#state=0.%7B" in link
    opened.read(f"{MODEL}.place = undefined, {MODEL}.values._anywidget_id = argument", f"a.{name}")
    opened.page.get_by_role("button", name="link", exact=True).click()
    line = opened.read(f"{MODEL}.copied.at(-1)")
    given = {one.arg: ast.literal_eval(one.value) for one in ast.parse(line).body[0].value.keywords}
    assert [*given.values()] == opened.read(f"argument.map(name => {MODEL}.get(name))", free)
    explorable = made(name)
    for value in given:
        setattr(explorable, value, given[value])
    assert line.startswith(f"{name}(") and explorable.values == explorable.values | given
    opened.page.goto("about:blank")
    opened.page.goto(link)
    opened.page.wait_for_function("said => document.querySelector('div.explorable > div')"
        "?.shadowRoot.querySelector('.said').innerText === said", arg=state["said"])  # fmt: skip
    again = opened.all()
    assert {key: sorted(again[key]) for key in state} == {key: sorted(state[key]) for key in state}
    others = {key: 1 if isinstance(given[key], dict) else {"no": "value"} for key in free}
    wrong = f"#state=0.{json.dumps(others)}"
    opened.page.goto("about:blank")
    opened.page.goto(link.partition("#")[0] + quote(wrong, safe="#=."))
    assert opened.read(f"{MODEL}.opening") == opened.read(f"{MODEL}.values")


@pytest.mark.everything
def test_any_typed_text_stays_text_and_is_drawn_or_answered(name, opened):
    explorable, section = made(name), opened.page.locator("section")
    typed = [key for key, trait in explorable.traits().items() if isinstance(trait, Text)]
    for text in [*HOSTILE.values(), *TEXTS.values()] if typed else ():
        with warnings.catch_warnings(action="error"):
            setattr(explorable, typed[0], text)
        text, fields = text.encode(errors="replace").decode(), section.get_by_role("textbox")
        if text in HOSTILE.values() and fields.count():
            fields.first.fill(text)
            opened.set(**dict.fromkeys(typed[1:], text))
        else:
            opened.set(**dict.fromkeys(typed, text))
        shown = opened.all()
        assert shown["said"] and not UNFINISHED.search(shown["said"].replace(text, ""))
        if fields.count() and not text.strip():
            assert ": type " in f"{shown['title']} {shown['said']}"
        assert section.locator("script, img, iframe, link, style").count() == 0


def test_a_missing_and_a_damaged_model_are_told(show):
    whole, wrong = TRANSLATOR.read_bytes(), "The model's file cannot be used, it "
    given = {
        "The trained translator is missing. In a terminal, ": None,
        f"{wrong}is cut off": Weights(b"no model"),
        f"{wrong}was changed after it was": Weights(whole[:-1] + bytes([whole[-1] ^ 1])),
    }
    readers = [name for name in explorables.__all__ if isinstance(made(name), ReadsTranslator)]
    parts, models = [], {}
    for name, weights in product(readers, given.values()):
        explorable = made(name)
        explorable.weights = weights
        part, own = html.shown(explorable)
        parts.append(part)
        models |= own
    text = html.whole_page(parts, models)
    tab = show(SimpleNamespace(save_html=lambda path: path.write_text(text, encoding="utf-8")))
    tab.page.wait_for_function(f"() => ({SENTENCES})().every(said => !said.includes('on its way'))")
    assert len(readers) == 8
    for said, answer in zip(tab.page.evaluate(SENTENCES), [*given] * 8, strict=True):
        assert said.startswith(answer)


WORKS = """
const frames = [], page = { asked: 1, redraw() {} }, steps = [];
const wait = () => new Promise((done) => setTimeout(done, 50));
globalThis.requestAnimationFrame = (frame) => frames.push(frame);
let now = 0;
performance.now = () => (now += 5); // two steps a piece
const work = (function* () { for (let i = 0; i < 3; i++) { steps.push(i); yield; } })();
inPieces(page, work);
await wait();
const before = steps.length, waiting = frames.length;
page.asked = 0;
frames.pop()();
await wait();
console.log([before, waiting, steps.length, page.work]);
"""


def test_a_piece_of_work_lets_a_picture_that_is_due_come_first(tmp_path):
    program = tmp_path / "program.mjs"
    program.write_text(bundle("in_pieces") + WORKS, encoding="utf-8")
    run = subprocess.run([NODE, program], capture_output=True, text=True)
    assert (run.stdout, run.stderr) == ("[ 1, 1, 3, null ]\n", "")


UNKNOWN = {
    "AttentionExplorer": "sentence",
    "DecodingStepper": "text",
    "ModelFlow": "text",
    "PatchingGrid": "clean",
    "StreamExplorer": "text",
    "TranslationPlayground": "sentence",
}


@pytest.mark.parametrize(("name", "field"), UNKNOWN.items())
def test_words_that_the_model_does_not_know_are_told(name, field, show):
    page = show(made(name))
    page.set(**{field: "the old astronaut sees the small moussaka ."})
    for told in ("“astronaut” is not in", "“moussaka” is not in", "<unk>: it can only guess."):
        assert told in page.said
    page.set(**{field: "the old child sees the small window ."})
    assert "<unk>" not in page.said


def test_what_a_constructor_does_not_know_is_refused():
    for name in set(explorables.__all__) - {"CircuitGraph"}:
        kind = getattr(explorables, name)
        if all(one.default is not one.empty or one.kind is one.VAR_KEYWORD
               for one in signature(kind).parameters.values()):  # fmt: skip
            assert_refused(f"a {name} has no 'sentense' to set: choose from", kind, sentense="a")


def test_what_looks_like_a_reference_stays_text(show, tmp_path):
    given, weights = html.shown(explorables.MaskExplorer("IPY_MODEL_x"))
    assert given["values"]["batch"] == "IPY_MODEL_x" and weights == {}
    page = show(explorables.ModelFlow(text="IPY_MODEL_x"))
    assert "“IPY_MODEL_x” is not in the vocabulary" in page.said


def test_half_a_surrogate_pair_can_be_sent_and_what_is_out_of_range_is_refused(monkeypatch):
    assert explorables.MaskExplorer("a \ud83d b").batch == "a ? b"
    with pytest.raises(TraitError, match="should be greater than or equal to 0|not.*-1"):
        explorables.MaskExplorer(sentence=-1)
    monkeypatch.setattr("transformer_lesson.explorables.in_page.LARGEST_MODEL", 10)
    assert_refused("a model of 11 bytes is too large for a page", Weights, b"12345678901")
    assert LARGEST_MODEL == 64 * 2**20


# The files of `web/`

TOP = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)


def test_names_of_the_top_level_are_unique_since_a_page_joins_all_files():
    texts = [path.read_text(encoding="utf-8") for path in front_ends().values()]
    names = [name for text in texts for name in TOP.findall(text)]
    assert len(names) > 300 and len(set(names)) == len(names)


def test_the_guides_example_works(show, monkeypatch, tmp_path):
    guide = Path(explorables.__file__).parents[2] / "docs" / "explorables.md"
    python, javascript = re.findall(
        r"```(?:python|javascript)\n(.*?)```", guide.read_text(encoding="utf-8"), re.DOTALL
    )
    for path in WEB.glob("*.js"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "temperature.js").write_text(javascript, encoding="utf-8")
    monkeypatch.setattr("transformer_lesson.explorables.bundle.WEB", tmp_path)
    monkeypatch.setitem(explorables.MODULES, "Temperature", "temperature")
    names = {"__name__": "transformer_lesson.explorables.temperature"}
    exec(compile(python, "temperature.py", "exec"), names)
    monkeypatch.setitem(vars(explorables), "Temperature", names["Temperature"])
    page = show(names["Temperature"](temperature=0.5))
    assert page.told()[0] == "score 2: weight 0.87"
    page.set(temperature=10.0)
    assert page.title == "The largest weight is 0.37"


def test_importing_the_package_loads_no_widgets_and_an_unknown_name_is_no_attribute():
    program = "import sys, transformer_lesson.explorables; print('ipywidgets' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        explorables.Oracle  # noqa: B018
