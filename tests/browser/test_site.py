"""The web site, built from what is committed: every page, from the disk, without a network."""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from lxml import html

from tests.browser.accessibility import AXE, CONTRAST, FORM, TOO_WIDE
from tests.browser.lab import UNFOLD, behind_lessons_before_a_release
from tools import site
from tools.browser import new_context
from tools.lesson_files import lesson_files, place_of
from tools.site_pages import STILLS
from tools.site_weight import local_links, page_files
from transformer_lesson.checkpoints.translator import TRANSLATOR
from transformer_lesson.explorables.html import model_key

pytestmark = [pytest.mark.browser, pytest.mark.everything]
LESSONS = [place_of(path).with_suffix("").as_posix() for path in lesson_files()]
LIVE = [one for one in LESSONS if any((STILLS / Path(one).name).glob("*.json"))]  # explorables
SCREEN = {"width": 1400, "height": 1000}
MEGABYTES = 5  # of a lesson's page with everything that it can show, apart from models
MEGABYTES_OF_TRANSLATOR = 6.3  # which all pages share
MEGABYTES_OF_MODELS = 1.3  # of a lesson's own
TRANSLATORS = model_key(TRANSLATOR.read_bytes())
STOPS = """() => [...document.querySelectorAll("pre")]
    .every(it => it.tabIndex === 0 || it.scrollWidth <= it.clientWidth)"""
"""Tab reaches all code that is wider than the page, as the theme arranges after a change."""
CUT_CODE = """() => [...document.querySelectorAll(".cell_input pre")]
    .filter(it => it.scrollWidth > it.clientWidth).map(it => it.textContent.slice(0, 60))"""
HIDDEN_FOCUS = """() => {
    let node = document.activeElement, root = document;
    for (; node.shadowRoot?.activeElement; node = root.activeElement) root = node.shadowRoot;
    if (node === document.body) return null;
    const { left, top, width, height } = node.getBoundingClientRect();
    const shows = ([x, y]) => {
        const front = root.elementFromPoint(left + x * width, top + y * height);
        return front && (node.contains(front) || front.contains(node));
    };
    const corners = [0.1, 0.9].flatMap(x => [0.1, 0.9].map(y => [x, y]));
    return [[0.5, 0.5], ...corners].some(shows) ? "" : node.outerHTML.slice(0, 100);
}"""
"""Of what has the focus, the start if nothing of it is seen; null where nothing has it."""
STEALS = """() => {
    const script = document.createElement("script");
    script.textContent = "window.stolen = true";
    document.body.append(script);
    const picture = "<img src=x: onerror='window.stolen = true'>";
    document.body.insertAdjacentHTML("beforeend", picture);
}"""
SHIFTS = """
globalThis.shifted = 0;
const isSet = ({ node }) => (node?.nodeType === 1 ? node : node?.parentElement)
    ?.closest("p, li, td, .math")?.querySelector("mjx-container");  // a line may break elsewhere
new PerformanceObserver(list => list.getEntries().forEach(one => {
    shifted += one.sources.some(isSet) ? 0 : one.value;
})).observe({ type: "layout-shift", buffered: true });"""
SHIFTED = """() => new Promise(done =>
    requestAnimationFrame(() => setTimeout(() => done(shifted))))"""
DRAWN = """() => [...document.querySelectorAll("div.explorable")].filter(it => it.checkVisibility())
    .every(it => it.firstElementChild?.nextElementSibling?.shadowRoot
        .querySelector("section:not([aria-busy])"))"""
AT_ONCE = "* { transition: none !important; }"  # colors do not fade from one scheme to the other


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """The site, built anew; a warning of Sphinx fails it."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "tools.site", folder / "site", folder / "build"]
    run = subprocess.run(command, cwd=site.ROOT, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder / "site"


@pytest.fixture(scope="module")
def pages(built) -> dict[Path, html.HtmlElement]:
    """Every page, parsed."""
    return {path: html.parse(path).getroot() for path in sorted(built.rglob("*.html"))}


@pytest.mark.parametrize("lesson", LESSONS)
def test_what_a_lesson_folds_is_folded(lesson, pages, built):
    notebook = json.loads((site.ROOT / "notebooks" / f"{lesson}.ipynb").read_text("utf-8"))
    folded = [cell["metadata"].get("jupyter", {}) for cell in notebook["cells"]]
    folds = pages[built / "notebooks" / f"{lesson}.html"].xpath("//details[@class]")
    folds = [fold for fold in folds if "hide" in fold.get("class").split()]
    assert len(folds) == sum(one.get("source_hidden", False) for one in folded)
    assert [fold for fold in folds if fold.get("open") is not None] == []


def test_every_link_leads_somewhere_and_nothing_is_fetched_from_outside(pages):
    anchors = {path: set(page.xpath("//@id")) | set(page.xpath("//a/@name"))
               for path, page in pages.items()}  # fmt: skip
    broken = []
    for path, page in pages.items():
        for link, (file, fragment) in local_links(path, page).items():
            if not file.exists() or fragment and fragment not in anchors.get(file, {fragment}):
                broken.append(f"{path.name}: {link}")
    assert broken == []


def test_every_picture_has_a_text_alternative(pages):
    for path, page in pages.items():
        assert page.xpath("//img[not(@alt) or normalize-space(@alt) = '']/@src") == [], path
        for frame in page.xpath("//iframe"):
            assert frame.get("title"), path


def test_no_lesson_is_heavy(built):
    for lesson in LESSONS:
        files = page_files(built / "notebooks" / f"{lesson}.html")
        models = {file for file in files if file.parent.name == "models"}
        weight = sum(file.stat().st_size for file in files - models) / 1e6
        assert weight < MEGABYTES, f"{lesson}: {weight:.1f} MB"
        weights = {file.stem: file.stat().st_size / 1e6 for file in models}
        assert weights.pop(TRANSLATORS, 0) < MEGABYTES_OF_TRANSLATOR
        own = sum(weights.values())
        assert own < MEGABYTES_OF_MODELS, f"{lesson}: {own:.1f} MB of models of its own"


# In the browser


@contextmanager
def visiting(chromium, built) -> Iterator[Callable]:
    """Open pages from the disk; at the end nothing may have gone wrong, nor left the disk."""
    contexts, problems = [], []

    def open_page(name: str):
        context = new_context(chromium, viewport=SCREEN, color_scheme="light", offline=True)
        contexts.append(context)
        page = context.new_page()

        def note(what):
            return lambda event: problems.append(f"{name}: {what}: {event}")

        page.on("pageerror", note("page error"))
        page.on("requestfailed", lambda request: note("failed")(request.url))
        page.on("dialog", note("dialog"))
        page.on("console", lambda m: note(m.type)(m.text) if m.type == "error" else None)
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:", "about:"))
                else note("outside")(r.url))  # fmt: skip
        page.goto(f"{built.as_uri()}/{name}")
        page.evaluate(UNFOLD)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


@pytest.fixture
def visit(chromium, built):
    """A function that opens a page of its own."""
    with visiting(chromium, built) as open_page:
        yield open_page


@pytest.fixture(scope="module", params=behind_lessons_before_a_release(LESSONS, apart=LIVE))
def lesson(request, chromium, built):
    """A lesson's name and its page, opened once for all tests of that lesson."""
    with visiting(chromium, built) as open_page:
        yield request.param, open_page(f"notebooks/{request.param}.html")


def wait_for_mathematics(page) -> int:
    """Wait until MathJax is ready, and return how many formulas it set."""
    if page.locator(".math").count() == 0:
        return 0
    page.wait_for_function("() => window.MathJax?.startup?.promise !== undefined")
    page.evaluate("() => MathJax.startup.promise")
    return page.locator("mjx-container").count()


def test_every_page_opens_without_an_error_and_is_accessible(visit, pages, built):
    """Lessons come below; of the pages of source, which look alike, axe reads one a room."""
    page, found, rooms = visit("index.html"), {}, {built / "_modules"}
    for path in pages:
        if any(path.as_posix().endswith(f"notebooks/{lesson}.html") for lesson in LESSONS):
            continue
        page.goto(path.as_uri())
        assert page.locator("h1").count() == 1, path
        if built / "_modules" not in path.parents or path.parent not in rooms:
            found[path.name] = faults(page)
        rooms.add(path.parent)
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


def test_a_lesson_is_typeset_accessible_and_fits_a_phone(lesson):
    name, page = lesson
    assert page.locator("h1").count() == 1
    formulas = page.locator(".math").count()
    source = (site.ROOT / "notebooks" / f"{name}.ipynb").read_text(encoding="utf-8")
    assert wait_for_mathematics(page) == formulas >= source.count("$$") // 2
    assert page.locator("mjx-merror").count() == 0
    assert page.locator("mjx-assistive-mml > math").count() == formulas  # for a screen reader
    assert "$$" not in page.locator("article").inner_text()
    page.wait_for_function(STOPS)
    assert faults(page) == []
    page.set_viewport_size({"width": 1280, "height": 800})
    assert page.evaluate(CUT_CODE) == []
    page.set_viewport_size(SCREEN)


def faults(page) -> list[str]:
    """What axe finds in both schemes, and what a window of 320 pixels cuts off; leave it wide."""
    page.evaluate(AXE)
    found = page.evaluate(FORM)
    page.add_style_tag(content=AT_ONCE)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_function("it => document.documentElement.dataset.theme === it", arg=scheme)
        found += [f"in {scheme}: {fault}" for fault in page.evaluate(CONTRAST)]
    page.set_viewport_size({"width": 320, "height": 844})
    found += [f"too wide: {part}" for part in page.evaluate(TOO_WIDE)]
    page.set_viewport_size(SCREEN)
    return found


@pytest.mark.parametrize("width", [1280, 390])
def test_what_has_the_focus_is_never_hidden(width, visit):
    page = visit("notebooks/03_attention.html")
    page.add_style_tag(content=AT_ONCE)
    page.set_viewport_size({"width": width, "height": 800})
    page.wait_for_function(DRAWN)
    found = []
    while len(found) < 300:
        page.keyboard.press("Tab")
        if (hidden := page.evaluate(HIDDEN_FOCUS)) is None:
            break
        found.append(hidden)
    assert len(found) > 80 and {*found} == {""}


def test_attention_views_are_drawn_and_accessible(visit):
    page = visit("notebooks/deeper/04_neither_alone.html")
    frames = page.locator("iframe[srcdoc]")
    assert frames.count() >= 1
    for frame in frames.element_handles():
        inside = frame.content_frame()
        inside.wait_for_selector("svg line", state="attached")
        inside.evaluate(AXE)
        assert inside.evaluate(FORM) == inside.evaluate(CONTRAST) == []


def test_explorables_live_without_a_kernel(lesson):
    name, page = lesson
    stored = [json.loads(path.read_text()) for path in (STILLS / Path(name).name).glob("*.json")]
    places = page.locator("div.explorable")
    assert places.count() == sum("values" in still for still in stored)
    for place in places.all():
        place.locator("section:not([aria-busy])").wait_for()
        assert "run the cell" not in place.locator(".said").inner_text()
        places = place.locator("svg [tabindex]").count()
        assert places > 0 and place.locator("svg [tabindex='0']").count() == 1


def test_the_translator_can_be_tried_at_once(visit):
    page = visit("try.html")
    playground, flow = page.locator("div.explorable").all()
    for place in (playground, flow):
        place.locator("section:not([aria-busy])").wait_for()
    playground.get_by_label("English sentence").fill("the cat sees the dog .")
    playground.get_by_text("Katze").first.wait_for()
    flow.get_by_role("button", name="3 encoder").click()
    flow.get_by_role("button", name="row 2, “opens”").click()
    flow.get_by_text("Encoder: “opens” looks most at").first.wait_for()
    assert faults(page) == []


def test_a_link_opens_an_explorable_as_somebody_left_it(visit):
    page = visit("try.html")
    other, flow = page.locator("div.explorable").all()
    flow.locator("section:not([aria-busy])").wait_for()
    flow.get_by_role("button", name="3 encoder").click()
    flow.get_by_role("button", name="row 2, “opens”").click()
    said = flow.get_by_text("Encoder: “opens” looks most at").first
    said.wait_for()
    flow.get_by_role("button", name="link", exact=True).click()
    page.wait_for_function("() => location.hash")
    again = visit(page.url.rpartition("/")[2]).locator("div.explorable")
    again.nth(1).get_by_text(said.inner_text()).first.wait_for()
    words = other.locator(".said").inner_text()
    assert again.nth(0).locator(".said").inner_text() == words != said.inner_text()


def test_packed_and_unpacked_elsewhere_its_explorables_live(chromium, built, tmp_path):
    with zipfile.ZipFile(site.pack(built)) as packed:
        assert packed.testzip() is None
        packed.extractall(tmp_path / "für die Schule")
    unpacked = tmp_path / "für die Schule" / built.name
    assert {path.relative_to(unpacked) for path in unpacked.rglob("*.html")} == {
        path.relative_to(built) for path in built.rglob("*.html")
    }
    with visiting(chromium, unpacked) as open_page:
        page = open_page("try.html")
        page.get_by_label("English sentence").fill("the cat sees the dog .")
        page.get_by_text("Katze").first.wait_for()
        page.get_by_role("link", name="The lessons").first.click()
        page.locator("main a", has_text="03 · Attention").first.click()
        page.locator("div.explorable section:not([aria-busy])").first.wait_for()


@pytest.mark.parametrize(("nth", "size"), [(0, (1280, 800)), (1, (390, 844))])
def test_nothing_jumps_while_a_page_is_opened(nth, size, chromium, built):
    """Every other lesson in a wide window, the others on a phone."""
    pages = ["index", "try", *(f"notebooks/{lesson}" for lesson in LIVE[nth::2])]
    shifted = {}
    for name in pages:
        viewport = dict(zip(("width", "height"), size, strict=True))
        context = new_context(chromium, viewport=viewport, offline=True)
        context.add_init_script(SHIFTS)
        page = context.new_page()
        page.goto((built / f"{name}.html").as_uri())
        page.wait_for_function(DRAWN)
        shifted[name] = page.evaluate(SHIFTED)
        context.close()
    assert {name: one for name, one in shifted.items() if one >= 0.05} == {}


def test_a_script_that_was_not_there_when_the_page_was_built_does_nothing(chromium, built):
    context = new_context(chromium, offline=True)
    page, refused = context.new_page(), []
    page.on("console", lambda message: refused.append(message.text))
    page.goto((built / "notebooks" / "03_attention.html").as_uri())
    page.locator("section:not([aria-busy])").first.wait_for()
    page.evaluate(STEALS)
    page.evaluate("() => new Promise(done => setTimeout(done, 200))")
    assert page.evaluate("() => window.stolen") is None
    assert any("Content Security Policy" in text for text in refused)
    context.close()


def test_the_search_finds_a_lesson_from_the_disk(visit):
    page = visit("search.html?q=Witten")
    results = page.locator("#search-results li a")
    results.first.wait_for()
    assert any("deeper/10_counting" in (a.get_attribute("href") or "") for a in results.all())
