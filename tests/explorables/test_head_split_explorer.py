"""Where twelve numbers go when they are split into heads, in the page: against PyTorch's view."""

import re
from itertools import product

import pytest
import torch

from transformer_lesson.explorables import HeadSplitExplorer
from transformer_lesson.explorables.head_split_explorer import SIZES

pytestmark = pytest.mark.browser
CELLS = """() => [...document.querySelector('div.explorable > div').shadowRoot
    .querySelectorAll('svg rect[aria-label*=" now at "]')]
    .map(cell => [cell.y.baseVal.value, cell.x.baseVal.value, cell.getAttribute('aria-label')])"""


def stages(n: int, d_model: int, heads: int, transposed: bool) -> list[torch.Tensor]:
    """The twelve numbers after each step."""
    x = torch.arange(12).view(n, d_model)
    if transposed:
        cut = x.view(n, heads, -1)  # (n, head, d_head)
        return [x, x.flatten(), cut, cut.transpose(0, 1)]
    return [x, x.flatten(), x.view(heads, -1), x.view(heads, n, -1)]


def wrong_pairs(shown: list[str], wanted: list[str]) -> list[tuple[str, str]]:
    """Where two lists differ; pytest needs minutes to compare many lines that are much alike."""
    return [pair for pair in zip(shown, wanted, strict=True) if pair[0] != pair[1]]


AXES = {
    False: [["token"], [], ["head"], ["head", "row"]],
    True: [["token"], [], ["token", "head"], ["head", "row"]],
}


def told(stage: torch.Tensor, axes: list[str], d_model: int, when: str) -> list[str]:
    """What the cells of a stage tell, in the order of memory."""
    words = []
    for number in range(12):
        *place, column = (stage == number).nonzero()[0].tolist()
        token, dimension = divmod(number, d_model)
        names = [*(f"{axis} {i}" for axis, i in zip(axes, place, strict=True)), f"column {column}"]
        where = ", ".join(names) if axes else f"place {number} in memory"
        stray = ", the row of another token" if axes[1:] == ["row"] and place[1] != token else ""
        what = f"{token}.{dimension}, of token {token}, dimension {dimension}"
        words.append(f"{what}: {when} at {where}{stray}")
    return words


def test_every_number_is_where_view_and_transpose_put_it(show):
    page = show(HeadSplitExplorer())
    for sizes, transposed, step in product(SIZES, (False, True), range(4)):
        page.set(sizes=sizes, transposed=transposed, step=step)
        stage, d_model = stages(*sizes, transposed)[step], sizes[1]
        now = told(stage, AXES[transposed][step], d_model, "now")
        before = told(torch.arange(12).view(-1, d_model), ["token"], d_model, "before")
        assert wrong_pairs(page.told(), before + now) == []
        shown = [words for *_, words in sorted(page.page.evaluate(CELLS))]
        rows = stage.transpose(0, 1) if stage.dim() == 3 else stage  # blocks stand side by side
        assert wrong_pairs(shown, [now[number] for number in rows.flatten().tolist()]) == []
        name = re.sub(r"now: [a-z ]+", "", next(t for t in page.written() if t.startswith("now")))
        assert name == str(tuple(stage.shape))
        assert page.written().count("×") == sum("another token" in words for words in now)
        assert now[4] in page.said


def test_view_alone_mixes_tokens(show):
    page = show(HeadSplitExplorer())
    assert (
        page.title == "No head gets every token: head 0 only tokens 0, 1; head 1 only tokens 1, 2"
    )
    assert "x.view(2, 3, 2): 8 of the 12 numbers stand in the row of another token" in page.said


def test_transpose_puts_each_token_into_its_row(show):
    page = show(HeadSplitExplorer((3, 4, 2), True))
    assert page.title == "Every head gets all 3 tokens, each token in its own row"
    assert "x.view(3, 2, 2).transpose(0, 1): 0 of the 12 numbers" in page.said


def test_only_the_transpose_is_right_for_every_size(show):
    page = show(HeadSplitExplorer())
    for sizes, transposed in product(SIZES, (False, True)):
        page.set(sizes=sizes, transposed=transposed)
        final = stages(*sizes, transposed)[3]
        own = final // sizes[1] == torch.arange(sizes[0])[:, None]  # (head, n, d_head)
        assert f": {12 - int(own.sum())} of the 12" in page.said
        heads = [sorted({int(x) // sizes[1] for x in head.flatten()}) for head in final]
        seen = "; ".join(
            f"head {i} {'all' if len(tokens) == sizes[0] else 'only'} "
            f"token{'s' * (len(tokens) > 1)} {', '.join(map(str, tokens))}"
            for i, tokens in enumerate(heads)
        )
        none = "Not every" if "all" in seen else "No"
        right = f"Every head gets all {sizes[0]} tokens, each token in its own row"
        assert page.title == (right if transposed else f"{none} head gets every token: {seen}")


def test_each_step_says_what_it_does(show):
    page = show(HeadSplitExplorer(step=0))
    assert page.title == "3 tokens of 4 numbers: a row is a token"
    page.set(step=1)
    assert page.title == "In memory the numbers stand in one line, token after token"
    page.set(step=2)
    assert page.title == "The line is cut into 2: head 0 only tokens 0, 1; head 1 only tokens 1, 2"
    page.set(transposed=True)
    assert page.title == "Each token’s 4 numbers are cut into 2 parts, one for each head"
    assert "The shape is (3, 2, 2)" in page.said


def test_a_number_is_followed_by_click_and_by_key(show):
    page = show(HeadSplitExplorer())
    page.page.get_by_role("button", name="2.1, of token 2, dimension 1: before").click()
    page.set()  # waits for the picture
    assert page.get("number") == 9 and "2.1, of token 2, dimension 1: now" in page.said
    assert page.page.locator("svg [data-lit]").count() == 2  # before and now
    assert page.press("ArrowLeft").startswith("2.0, of token 2, dimension 0: before")
    page.press("Enter")
    assert page.get("number") == 8


def test_sizes_and_steps_are_chosen_and_played(show):
    page = show(HeadSplitExplorer(transposed=True))
    page.page.get_by_role("button", name="4 × 3, 3 heads").click()
    assert page.get("sizes") == [4, 3, 3]
    page.page.get_by_role("button", name="2 view (4, 3, 1)").click()
    assert page.get("step") == 2
    page.set()  # waits for the picture
    pressed = page.page.locator(".controls [aria-pressed=true]").all_inner_texts()
    assert pressed == ["4 × 3, 3 heads", "view, then transpose", "2 view (4, 3, 1)"]
    page.page.get_by_role("button", name="Play").click()
    page.page.get_by_text("Every head gets all 4 tokens").first.wait_for()


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match=r"sizes are \[5, 4, 2\]: choose one of \(3, 4, 2\), "):
        HeadSplitExplorer((5, 4, 2))
