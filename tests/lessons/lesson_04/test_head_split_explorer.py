"""Where twelve numbers go when they are split into heads, in the page: against PyTorch's view."""

import re
from itertools import product

import torch

from tests.explorables.shown import assert_refused
from transformer_lesson.explorables import HeadSplitExplorer
from transformer_lesson.lessons.lesson_04.head_split_explorer import SIZES

CELLS = """[...root.querySelectorAll('svg rect[aria-label*=" now at "]')]
    .map(cell => [cell.y.baseVal.value, cell.x.baseVal.value, cell.getAttribute("aria-label")])"""
AXES = {
    False: [["token"], [], ["head"], ["head", "row"]],
    True: [["token"], [], ["token", "head"], ["head", "row"]],
}


def stages(n: int, d_model: int, heads: int, transposed: bool) -> list[torch.Tensor]:
    x = torch.arange(12).view(n, d_model)
    if transposed:
        cut = x.view(n, heads, -1)  # (n, head, d_head)
        return [x, x.flatten(), cut, cut.transpose(0, 1)]
    return [x, x.flatten(), x.view(heads, -1), x.view(heads, n, -1)]


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


def seen(final: torch.Tensor, n: int, d_model: int) -> str:
    heads = [sorted({int(x) // d_model for x in head.flatten()}) for head in final]
    return "; ".join(
        f"head {i} {'all' if len(tokens) == n else 'only'} token{'s' * (len(tokens) > 1)} "
        f"{', '.join(map(str, tokens))}"
        for i, tokens in enumerate(heads)
    )


def claim(sizes: tuple, transposed: bool, step: int) -> str:
    n, d_model, heads = sizes
    parts = seen(stages(*sizes, transposed)[step], n, d_model) if step > 1 else ""
    if transposed and step > 1:
        cut = f"Each token’s {d_model} numbers are cut into {heads} parts, one for each head"
        return [cut, f"Every head gets all {n} tokens, each token in its own row"][step - 2]
    return [
        f"{n} tokens of {d_model} numbers: a row is a token",
        "In memory the numbers stand in one line, token after token",
        f"The line is cut into {heads}: {parts}",
        f"{'Not every' if 'all' in parts else 'No'} head gets every token: {parts}",
    ][step]


def test_every_number_is_where_view_and_transpose_put_it(show):
    page = show(HeadSplitExplorer())
    for sizes, transposed, step in product(SIZES, (False, True), range(4)):
        page.set(sizes=sizes, transposed=transposed, step=step)
        shown, cells = page.all(), sorted(page.read(CELLS))
        all_stages, (n, d_model, _) = stages(*sizes, transposed), sizes
        stage = all_stages[step]
        now = told(stage, AXES[transposed][step], d_model, "now")
        before = told(all_stages[0], ["token"], d_model, "before")
        same = shown["told"] == before + now  # pytest would compare such lists for minutes
        rows = stage.transpose(0, 1) if stage.dim() == 3 else stage  # blocks stand side by side
        same &= [words for *_, words in cells] == [now[i] for i in rows.flatten().tolist()]
        assert same, (sizes, transposed, step)
        shapes = [text for text in shown["written"] if text.startswith("now")]
        assert re.sub(r"now: [a-z ]+", "", shapes[0]) == str(tuple(stage.shape))
        assert shown["written"].count("×") == sum("another token" in words for words in now)
        said = f"The shape is {tuple(stage.shape)}"
        if step == 3:
            view = str(tuple(all_stages[2 if transposed else 3].shape))
            view += ".transpose(0, 1)" * transposed
            own = stage // d_model == torch.arange(n)[:, None]  # (head, n, d_head)
            said = f"x.view{view}: {12 - int(own.sum())} of the 12 numbers stand in the row of "
            said += "another token"
        title = claim(sizes, transposed, step)
        assert (shown["title"], shown["said"]) == (title, f"{said}. {now[4]}.")


def test_a_number_is_followed_by_click_and_by_key_and_sizes_and_steps_are_chosen(show):
    page = show(HeadSplitExplorer())
    page.click("2.1, of token 2, dimension 1: before")
    assert page.get("number") == 9 and "2.1, of token 2, dimension 1: now" in page.said
    assert len(page.lit()) == 2  # before and now
    assert page.press("ArrowLeft").startswith("2.0, of token 2, dimension 0: before")
    page.press("Enter")
    assert page.get("number") == 8
    page.set(transposed=True)
    page.click("4 × 3, 3 heads", "2 view (4, 3, 1)")
    assert page.get("sizes", "step") == [[4, 3, 3], 2]
    pressed = page.page.locator(".controls [aria-pressed=true]").all_inner_texts()
    assert pressed == ["4 × 3, 3 heads", "view, then transpose", "2 view (4, 3, 1)"]
    choose = r"sizes are \[5, 4, 2\]: choose one of \(3, 4, 2\), "
    assert_refused(choose, HeadSplitExplorer, (5, 4, 2))
