"""What the lessons say of themselves is that of data/course.toml; no answer comes too early."""

import re
from pathlib import Path

import nbformat
import pytest

from tests.stored_lessons import PATHS, cells, lesson, read, source, unfolded
from tools.handout import is_stub
from tools.lesson_files import NOTEBOOKS, place_of
from transformer_lesson.course import DEEPER, LESSONS
from transformer_lesson.exercises.engine.question_bank import find_question

TO_A_LESSON = re.compile(r"\[(\d\d) · ([^\]]+)\]\((\d\d_\w+\.ipynb)\)")
each_lesson = pytest.mark.parametrize("number", LESSONS)

WORDS = 150  # that a learner reads in a minute, thinking
LINE, PICTURE, PREDICTION, EXPLORABLE = 0.1, 0.75, 1.5, 4  # minutes
EXERCISE = 2  # times what it says
WHY = re.compile(
    r'<details class="lesson-answer"><summary>[^\n]+</summary>\n\n.*?\n\n</details>', re.DOTALL
)
MARKUP = re.compile(r"<[^>]+>|\$+[^$]*\$+|`[^`]*`")
EXPLORABLE_MADE = re.compile(r"^[A-Z][A-Za-z]+\(", re.MULTILINE)
PLOTTED = re.compile(r"\b(plots|plt|diagrams|axes)\b")
DIG_DEEPER = re.compile("#+ Dig deeper")
EXERCISE_MINUTES = re.compile(r"^### Exercise \d.*\((\d+) minutes?\)$", re.MULTILINE)


def test_every_notebook_is_listed_in_order_and_has_its_row():
    for listed, folder in ((LESSONS, "."), (DEEPER, "deeper")):
        places = [place_of(path) for path in PATHS if place_of(path).parent == Path(folder)]
        assert [place.as_posix() for place in places] == sorted(one.file for one in listed.values())
    assert [one.lesson for one in DEEPER.values()] == sorted(one.lesson for one in DEEPER.values())
    deeper = [(one.lesson, one) for one in DEEPER.values()]
    for page, to, listed in (("README.md", "", LESSONS.items()), ("docs/deeper.md", "../", deeper)):
        assert re.findall(r"^\| \[.*\]\(.*\.ipynb\).*$", read(page), re.MULTILINE) == [
            f"| [{number} {one.title}]({to}notebooks/{one.file}) | {one.question} | {one.minutes} |"
            for number, one in listed
        ]


def test_the_readme_is_short_and_says_truly_how_long_things_take():
    readme = read("README.md")
    assert len(readme.splitlines()) <= 130
    for last, reached in (("07", "you have written"), ("10", "a GPT"), ("17", "you have found")):
        minutes = sum(one.minutes for number, one in LESSONS.items() if number <= last)
        assert f"**After {minutes / 60:.0f} hours** {reached}" in readme
    assert f"About {minutes / 60:.0f} hours in all" in readme
    start = cells(lesson("00"))
    code = [source(cell) for cell in start if cell["cell_type"] == "code"]
    assert (
        "TranslationPlayground(" in code[0] and "**In the first cell** you change a word" in readme
    )
    (first,) = [i for i, cell in enumerate(start) if EXERCISE_MINUTES.search(source(cell))]
    (minutes,) = re.findall(r"After (\d+)\s+minutes you write the loop", readme)
    assert abs(minutes_of(lesson("00"), end=first) - int(minutes)) <= 1


@each_lesson
def test_the_head_of_a_lessons_folder_says_what_is_in_it(number):
    folder = NOTEBOOKS.parent / "transformer_lesson" / "lessons" / f"lesson_{number}"
    head = (folder / "__init__.py").read_text(encoding="utf-8")
    files = [path.stem for path in folder.iterdir() if path.is_file()]
    assert [stem for stem in files if stem != "__init__" and stem not in head] == []


@pytest.mark.parametrize("name", DEEPER)
def test_a_notebook_behind_a_lesson_names_its_title_question_minutes_and_its_lesson(name):
    one = DEEPER[name]
    home, path = LESSONS[one.lesson], NOTEBOOKS / one.file
    back = f"[{one.lesson} · {home.title}](../{home.file})"
    facts = f"**Minutes:** {one.minutes} · **After:** {back}"
    title, question, minutes, *_ = source(cells(path)[0]).split("\n\n")
    assert title == f"# {one.lesson} · Deeper: {one.title}"
    assert question == f"**Question:** {one.question}"
    assert minutes == f"{facts} · **Words:** [glossary](../glossary.md)"
    assert source(cells(path)[-1]).endswith(f"**Back:** {back}")
    assert f"]({one.file})" in "\n".join(map(source, cells(lesson(one.lesson)))), "link to it"
    assert abs(minutes_of(path) - one.minutes) <= 1 and one.minutes <= 30


@each_lesson
def test_a_notebook_names_its_title_minutes_glossary_and_other_lessons(number):
    first, *others = map(source, cells(lesson(number)))
    text = "\n".join([first, *others])
    assert first.splitlines()[0] == f"# {number} · {LESSONS[number].title}"
    assert re.search(r"\*\*Minutes:\*\* (\d+)", first)[1] == str(LESSONS[number].minutes)
    assert "(glossary.md)" in first
    for other, title, file in TO_A_LESSON.findall(text):
        assert (title, file) == LESSONS[other][:2]
    following = f"{int(number) + 1:02}"
    if following in LESSONS:
        assert f"**Next:** [{following} · {LESSONS[following].title}](" in text


@each_lesson
def test_a_stub_is_blank(number):
    for cell in filter(is_stub, nbformat.read(lesson(number), as_version=4).cells):
        assert cell.source.endswith("raise NotImplementedError")


def test_the_glossary_has_every_term_once_and_its_lesson_uses_it():
    row = r"^\| (.+?) \| .+ \| .* \| \[\d\d\]\((.+)\) \|$"
    rows = re.findall(row, read("notebooks/glossary.md"), re.MULTILINE)
    names = [(name, file) for terms, file in rows for name in terms.split(", ")]
    assert len(rows) > 100 and len(names) == len({name.strip() for name, _ in names})
    for name, file in names:
        word = re.sub(r" \(.*", "", name).strip("`").lower()
        known = word.startswith("$") or word in read(f"notebooks/{file}").lower()
        assert known, f"{file} has no {word!r}"


# Lessons as a learner meets them: questions before answers, and honest minutes


def hidden(cell: dict, what: str) -> bool:
    return cell["metadata"].get("jupyter", {}).get(f"{what}_hidden", False)


def asked(cell: dict) -> str | None:
    found = re.match(r'predict\("([^"]+)"\)', source(cell))
    return found and found[1]


def seen(cell: dict) -> str:
    """What a reader sees who opens nothing, without what predictions and solutions unfold."""
    if cell["cell_type"] == "markdown":
        return unfolded(source(cell))
    if re.match(r"(predict|hint|solution)\(", source(cell)):
        return ""
    text = "" if hidden(cell, "source") else source(cell)
    for output in [] if hidden(cell, "outputs") else cell["outputs"]:
        text += "\n" + "".join(output.get("text", output.get("data", {}).get("text/plain", "")))
    return text


def plain(text: str) -> str:
    return " ".join(re.findall(r"[\w.,%]*\w%?", text.lower()))


def telling(question) -> list[str]:
    """The right option, if it is longer than three words, and its numbers that no other one has."""
    others = " ".join([question.text, *(o.text for o in question.options if not o.right)])
    numbers = re.findall(r"\d[\d.,]*\d", question.answer.text)
    told = [number for number in numbers if number not in others]
    return [plain(question.answer.text)][: len(question.answer.text.split()) > 3] + told


@each_lesson
def test_what_answers_a_prediction_comes_after_it_and_is_folded(number):
    before, all_cells = "", cells(lesson(number))
    for i, cell in enumerate(all_cells):
        if name := asked(cell):
            assert [text for text in telling(find_question(name)) if text in before] == [], name
            answer = next(c for c in all_cells[i + 1 :] if c["cell_type"] == "code")
            assert hidden(answer, "source") and hidden(answer, "outputs"), name
        before += " " + plain(seen(cell))


def shut(cell: dict) -> bool:
    """Whether it opens only with the answer: a folded cell, or prose in a fold of its own."""
    if cell["cell_type"] == "code":
        return hidden(cell, "outputs") or not cell["outputs"]
    return not WHY.sub("", source(cell)).strip()


@each_lesson
def test_what_explains_an_answer_is_as_shut_as_the_answer(number):
    question, is_open, wrong = None, False, []
    for cell in cells(lesson(number)):
        is_code = cell["cell_type"] == "code"
        if name := asked(cell):
            question, is_open = find_question(name), False
        elif source(cell).startswith("#") or is_code and not hidden(cell, "source"):
            question = None
        elif question:
            is_open = is_open or "new-thought" in cell["metadata"].get("tags", [])
            told = [text for text in telling(question) if text in plain(seen(cell))]
            wrong += [(question.name, cell["id"])] * bool(told if is_open else not shut(cell))
    assert wrong == []


def minutes_of(path: Path, end: int | None = None) -> float:
    """How long a learner needs for a notebook up to what it calls *Dig deeper*: reading all of it,
    and the code that is not folded. Readers who timed themselves took about as long.

    Args:
        path: of the notebook.
        end: the cell before which to stop, by default none.
    """
    all_cells, spent = cells(path)[:end], 0.0
    ends = [i for i, cell in enumerate(all_cells) if DIG_DEEPER.match(source(cell))]
    for cell in all_cells[: ends[0]] if ends else all_cells:
        text = source(cell)
        if cell["cell_type"] == "markdown":
            spent += len(MARKUP.sub(" x ", text).split()) / WORDS
            spent += EXERCISE * sum(map(int, EXERCISE_MINUTES.findall(text)))
        elif asked(cell):
            spent += PREDICTION
        else:
            drawn = any("image/png" in output.get("data", {}) for output in cell["outputs"])
            alive = drawn and EXPLORABLE_MADE.search(text) and not PLOTTED.search(text)
            spent += EXPLORABLE if alive else PICTURE * drawn
            lines = [] if hidden(cell, "source") else filter(str.strip, text.splitlines())
            spent += LINE * len([*lines])
    return spent


@each_lesson
def test_minutes_are_honest(number):
    spent = minutes_of(lesson(number))
    assert abs(spent - LESSONS[number].minutes) <= 1, f"{spent:.1f} minutes"
