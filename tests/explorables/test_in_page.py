"""What holds for every explorable that lives in the page."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree
from traitlets import TraitError

from tests.browser.test_site import AXE, CONTRAST, FORM
from tests.explorables.examples import made
from tests.explorables.page_modules import NODE
from tests.explorables.shown import HOST
from tests.security.hostile_texts import TEXTS
from transformer_lesson import explorables
from transformer_lesson.explorables.bundle import WEB, bundle
from transformer_lesson.explorables.in_page import LARGEST_MODEL, Text, Weights

browser = pytest.mark.browser
each = pytest.mark.parametrize("name", explorables.__all__)
UNFINISHED = re.compile(r"NaN|undefined|Infinity|\[object|null")
DEEP_CONTRAST = CONTRAST.replace(
    'document.querySelectorAll("body *")', f'{HOST}.shadowRoot.querySelectorAll("section *")'
)
STOPS = "input:enabled, textarea:enabled, button:enabled, a[href]"
UNNAMED = f"""() => [...{HOST}.shadowRoot.querySelectorAll(
    "svg [tabindex], svg [role=button], svg [role=img]")]
    .filter(node => !node.getAttribute("aria-label") || node.getAttribute("tabindex") === null)
    .map(node => node.outerHTML)"""
UNTOLD = f"""() => [...{HOST}.shadowRoot.querySelectorAll("svg text")].filter(node =>
    !node.closest("[aria-hidden], [aria-label][tabindex]") &&
    /^[-−]?[\\d.,]+$/.test(node.textContent))
    .map(node => node.outerHTML)"""

GLIDE = f"""() => [...new Set([...{HOST}.shadowRoot.querySelectorAll("svg circle:not(.still)")]
    .map(node => getComputedStyle(node).transitionDuration.split(",")[0]))]"""


@each
def test_its_repr_is_short_and_stable(name):
    assert repr(made(name)) == repr(made(name))
    assert repr(made(name)).startswith(f"{name}(") and len(repr(made(name))) < 400


@each
def test_its_values_can_be_set_observed_and_linked(name):
    one, other = made(name), made(name)
    assert one.values == other.values
    for key in one.values:
        assert one.has_trait(key) and one.trait_metadata(key, "sync")


@browser
@each
def test_it_is_finished_accessible_and_fits(name, show):
    page = show(made(name), viewport={"width": 1100, "height": 900})
    assert page.said and not UNFINISHED.search(" ".join([page.title, page.said, *page.told()]))
    page.page.evaluate(AXE)
    assert page.page.evaluate(FORM) == []
    assert page.page.evaluate(UNNAMED) == [] and page.page.evaluate(UNTOLD) == []
    for scheme in ("light", "dark"):
        page.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.page.wait_for_function(f"scheme => {HOST}.dataset.theme === scheme", arg=scheme)
        assert page.page.evaluate(DEEP_CONTRAST) == [], f"in {scheme}"
    for width in (1400, 390, 320):
        page.page.set_viewport_size({"width": width, "height": 800})
        page.set()
        assert page.page.evaluate("() => document.documentElement.scrollWidth") <= width


@browser
@each
def test_the_keyboard_alone_reaches_everything(name, show):
    page = show(made(name), viewport={"width": 1100, "height": 900})
    controls = page.page.locator(f"section :is({STOPS}):visible").count()
    stops = 0
    while stops <= controls + 2:
        page.page.keyboard.press("Tab")
        if not page.page.evaluate(f"() => {HOST}.shadowRoot.activeElement !== null"):
            break
        stops += 1
    in_picture = bool(page.told())
    assert stops == controls + in_picture
    assert in_picture is False or reached_by_arrows(page) == set(range(len(page.told())))


def reached_by_arrows(page) -> set[int]:
    """Return the numbers of the places to which arrows lead from the first one."""
    return set(
        page.page.evaluate(f"""async () => {{
        const root = {HOST}.shadowRoot, places = [...root.querySelectorAll("svg [tabindex]")];
        const seen = new Set([0]), open = [0];
        while (open.length) {{
            const from = places[open.pop()];
            for (const key of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"]) {{
                from.focus();
                from.dispatchEvent(new KeyboardEvent("keydown", {{key, bubbles: true}}));
                const to = places.indexOf(root.activeElement);
                if (!seen.has(to)) open.push(to);
                seen.add(to);
            }}
        }}
        return [...seen];
    }}""")
    )


@browser
@each
def test_any_typed_text_stays_text(name, show):
    typed = [key for key, trait in made(name).traits().items() if isinstance(trait, Text)]
    page = show(made(name)) if typed else None
    for text in TEXTS.values() if typed else ():
        page.set(**{key: text.encode(errors="replace").decode() for key in typed})
        assert page.said and not UNFINISHED.search(page.said.replace(text, ""))
        root = page.page.locator("section")
        assert root.locator("script, img, iframe, link, style").count() == 0


@browser
@each
def test_its_picture_is_saved_whole(name, show, tmp_path):
    page = show(made(name), viewport={"width": 1100, "height": 900}, accept_downloads=True)
    for kind in ("SVG", "PNG"):
        with page.page.expect_download() as download:
            page.page.get_by_role("button", name=kind, exact=True).click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        if kind == "PNG":
            assert path.read_bytes()[:4] == b"\x89PNG" and path.stat().st_size > 3000
            continue
        svg = etree.parse(path).getroot()
        texts = ["".join(node.itertext()) for node in svg.iter("{*}text")]
        assert texts[0] == page.title and set(page.written()) <= set(texts)
        assert svg.findtext("{*}desc") == page.said
        assert "var(" not in path.read_text() and "class=" not in path.read_text()


@browser
def test_one_move_glides_and_of_several_each_is_shown_at_once(show):
    page = show(made("NormExplorer"), reduced_motion="no-preference")
    durations = []
    for milliseconds in (1000, 1100, 1390, 1700):
        page.page.evaluate("now => { performance.now = () => now; }", milliseconds)
        page.set(token=1 - page.get("token") % 2)
        durations += page.page.evaluate(GLIDE)
    assert durations == ["0.25s", "0s", "0s", "0.25s"]


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


def test_half_a_surrogate_pair_can_be_sent():
    assert explorables.MaskExplorer("a \ud83d b").batch == "a ? b"


def test_a_value_out_of_range_is_refused():
    with pytest.raises(TraitError, match="should be greater than or equal to 0|not.*-1"):
        explorables.MaskExplorer(sentence=-1)


def test_a_model_too_large_for_a_page_is_refused(monkeypatch):
    monkeypatch.setattr("transformer_lesson.explorables.in_page.LARGEST_MODEL", 10)
    with pytest.raises(ValueError, match="a model of 11 bytes is too large for a page"):
        Weights(b"12345678901")
    assert LARGEST_MODEL == 64 * 2**20


# The files of `web/`

TOP = re.compile(r"^(?:export )?(?:async )?(?:function\*?|const|let|class) (\w+)", re.MULTILINE)


def test_names_of_the_top_level_are_unique_over_all_files():
    found = [
        (name, path.name)
        for path in sorted(WEB.glob("*.js"))
        for name in TOP.findall(path.read_text(encoding="utf-8"))
    ]
    names = [name for name, _ in found]
    assert [one for one in found if names.count(one[0]) > 1] == []


def test_a_bundle_has_each_file_once_and_imports_nothing():
    text = bundle("mask_explorer", "host")
    assert text.count("function frame(") == text.count("function join(") == 1
    assert text.index("function join(") < text.index("function frame(")
    assert not re.search(r"^(import|export) ", text, re.MULTILINE)


def test_no_function_is_longer_than_forty_lines():
    for path in sorted(WEB.glob("*.js")):
        text = path.read_text(encoding="utf-8")
        functions = re.findall(r"^(?:export )?(?:async )?function.*?^}", text, re.M | re.S)
        assert functions or path.name in ("style.js", "weights.js")
        assert [one[:60] for one in functions if len(one.splitlines()) > 40] == [], path.name


def test_no_line_is_longer_than_a_hundred_letters():
    for path in sorted(WEB.glob("*.js")):
        long = [line for line in path.read_text(encoding="utf-8").splitlines() if len(line) > 100]
        assert long == [], path.name


# The guide


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
    page = show(names["Temperature"](temperature=0.5))
    assert page.told()[0] == "score 2: weight 0.87"
    page.set(temperature=10.0)
    assert page.title == "The largest weight is 0.37"


def test_importing_the_package_loads_no_widgets():
    program = "import sys, transformer_lesson.explorables; print('ipywidgets' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout.strip() == "False", run.stderr


def test_an_unknown_name_is_no_attribute():
    with pytest.raises(AttributeError, match="no attribute 'Oracle'"):
        explorables.Oracle  # noqa: B018
