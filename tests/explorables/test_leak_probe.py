"""Who sees the future, in the page: every number against `interpretability.causality`."""

import math
import re

import pytest
import torch

from transformer_lesson.explorables import LeakProbe
from transformer_lesson.explorables.leak_probe import LONGEST, THRESHOLD, example_models
from transformer_lesson.interpretability.causality import changed_positions, leaks_future
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer

browser = pytest.mark.browser
CAUSAL, SHIFTED = "decoder-only, causal mask", "mask shifted by one"
IDS = torch.arange(7)[None]
TOKENS = ["zero", "one", "two", "three", "four", "five", "six"]
DRAWN = """() => {
    const svg = document.querySelector("div.explorable > div").shadowRoot.querySelector("svg");
    const layer = (...names) => names.reduce((node, name) => node.layers.get(name), svg);
    const all = (names, read) => [...layer(...names).children].map(read);
    const size = node => [node.width.baseVal.value, node.height.baseVal.value];
    const ribbon = node => [node.dataset.links, node.getAttribute("stroke-dasharray")];
    return {
        ribbons: all(["ribbons", "ribbons"], ribbon),
        boxes: all(["gauges", "boxes"], size),
        fills: all(["gauges", "fills"], node => [node.dataset.links, ...size(node)]),
        cells: all(["squares", "cells"], node => node.getAttribute("d")),
        stairs: all(["squares", "stairs"], node => node.getAttribute("d")),
    };
}"""
KINDS = ("leaks", "moves", "broken")


def probed_by_hand(models: dict, ids: torch.Tensor) -> dict[str, torch.Tensor]:
    """How far each output moves, (replaced token, output), by model."""
    n = ids.size(1)
    return {
        name: torch.stack([changed_positions(model, ids, i) for i in range(n)])
        for name, model in models.items()
    }


def number(change: float) -> str:
    """A change as the page writes it: two digits."""
    rounded = float(f"{change:.2g}")
    if 1e-3 <= rounded < 1e5:
        return f"{rounded:g}"
    mantissa, exponent = f"{rounded:.1e}".split("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+d}"


def kind(change: float, output: int, position: int) -> str:
    if not math.isfinite(change):
        return "broken"
    return "stays" if change <= 1e-5 else "leaks" if output < position else "moves"


def output_did(row: list[float], output: int, position: int, tokens: list[str]) -> str:
    words = {
        "stays": "does not move",
        "moves": "moves by {}",
        "leaks": f"moves by {{}}: a leak, “{tokens[position]}” comes later",
        "broken": "is NaN or infinite, which cannot be compared",
    }[kind(row[output], output, position)]
    amount = number(row[output]) if math.isfinite(row[output]) else ""
    return words.format(amount)


def counts(table: torch.Tensor, of: str) -> list[int]:
    """How many outputs are of a kind, for each replaced token."""
    rows = enumerate(table.tolist())
    return [sum(kind(one, i, t) == of for i, one in enumerate(row)) for t, row in rows]


def verdict(table: torch.Tensor) -> str:
    leaks, broken = sum(counts(table, "leaks")), sum(counts(table, "broken"))
    pairs = len(table) * (len(table) - 1) // 2
    if broken and not leaks:
        return f"? {broken} NaN or ∞"
    return f"{'✗' if leaks else '✓'} {leaks} of {pairs} leak"


def expected(
    tables: dict[str, torch.Tensor], model: str, position: int, tokens: list[str], lines: int
) -> dict:
    """All that the page tells and says of a state, its gauges with so many lines."""
    n, row = len(tokens), tables[model][position].tolist()
    told = [f"replace token {i}, “{token}”" for i, token in enumerate(tokens)]
    told += [
        f"output {i}, at “{tokens[i]}”, {output_did(row, i, position, tokens)}" for i in range(n)
    ]
    told += [f"{name}: {verdict(table)}" for name, table in tables.items()]
    told += [
        f"{name}, token {t} “{tokens[t]}” replaced: {leaks} of {t} earlier outputs move"
        for name, table in tables.items()
        for t, leaks in enumerate(counts(table, "leaks"))
    ]
    kinds = [kind(change, i, position) for i, change in enumerate(row)]
    written = [
        {"stays": "–", "broken": "NaN/∞"}.get(one) or number(change)
        for one, change in zip(kinds, row, strict=True)
    ]
    return {
        "told": told,
        "written": [*scale(tables, lines), *written, *["leak"] * kinds.count("leaks")],
        "verdicts": [verdict(table) for table in tables.values()],
        "title": claim(kinds, position, tokens[position]),
        "said": sentence(row, kinds, position, tokens, model),
    }


def decades(tables: dict[str, torch.Tensor]) -> int:
    """How many powers of ten the gauges show, from the threshold up."""
    finite = [c for table in tables.values() for c in table.flatten().tolist() if math.isfinite(c)]
    return round(math.log10(float(f"{max(1, *finite):.2g}")) + 5 + 0.499999)


def scale(tables: dict[str, torch.Tensor], lines: int) -> list[str]:
    """What stands at the gauges' lines."""
    every = math.ceil(decades(tables) / lines)
    return [number(THRESHOLD * 10**i) for i in range(every, decades(tables) + 1, every)]


def claim(kinds: list[str], position: int, word: str) -> str:
    leaks, broken = (kinds[:position].count(one) for one in ("leaks", "broken"))
    moved = f"replacing “{word}” moves {leaks} of {position} earlier outputs"
    if not position:
        return f"No output comes before “{word}”, so replacing it shows no leak"
    if leaks:
        return f"The future leaks: {moved}"
    if broken:
        return f"{broken} of {position} outputs before “{word}” are NaN or infinite"
    return f"No leak here: {moved}"


def sentence(row: list, kinds: list, position: int, tokens: list[str], model: str) -> str:
    leaks = {i: change for i, change in enumerate(row) if kinds[i] == "leaks"}
    said = f"{model}: {claim(kinds, position, tokens[position])}"
    if leaks:
        rounded = {i: float(f"{change:.2g}") for i, change in leaks.items()}
        first = max(rounded, key=lambda i: (rounded[i], -i))
        said += f", by up to {number(leaks[first])} (output {first})"
    later = kinds[position + 1 :]
    said += f". Its own output {output_did(row, position, position, tokens)}; "
    said += f"{later.count('moves')} of {len(later)} later outputs move."
    if "broken" in kinds:
        said += f" NaN or infinite: {kinds.count('broken')} of {len(kinds)} outputs."
    return said + " Changes up to 1e-5 are rounding."


def wrong_states(page, tables: dict, tokens: list[str], lines: int = 3) -> list:
    """In which states the page shows something else than what was computed by hand."""
    states = [{"model": model, "position": i} for model in tables for i in range(len(tokens))]
    wrong = []
    for state, shown in zip(states, page.states(states), strict=True):
        wanted = expected(tables, **state, tokens=tokens, lines=lines)
        texts = shown["written"]
        shown["verdicts"] = [text for text in texts if re.match("[✓✗?] ", text)]
        begin = texts.index("moves by") + 1
        shown["written"] = texts[begin : begin + len(wanted["written"])]
        wrong += [(*state.values(), key) for key in wanted if shown[key] != wanted[key]]
    return wrong


@browser
def test_every_number_of_every_state_is_that_of_the_package(show):
    probe, models = LeakProbe(), example_models()
    known = sorted(set(probe.tokens))
    ids = torch.tensor([[known.index(token) for token in probe.tokens]])
    page = show(probe, viewport={"width": 1100, "height": 900})
    assert wrong_states(page, probed_by_hand(models, ids), probe.tokens) == []


def breaking(ids: torch.Tensor) -> torch.Tensor:
    """Sums of all ids, but one is NaN, one becomes infinite, and the last moves little."""
    outputs = ids.float().sum(1, keepdim=True).expand(ids.shape).clone()
    outputs[:, 1] = torch.nan
    outputs[:, 4] = torch.inf if ids[0, 2] != 2 else 0  # infinite by the change alone
    outputs[:, 6] = 1e-4 * ids[:, 6] + 1e-6 * ids[:, 5]  # the second one is rounding
    return outputs[..., None]


def nothing_but_nan(ids: torch.Tensor) -> torch.Tensor:
    return torch.full((*ids.shape, 2), torch.nan)


def large(ids: torch.Tensor) -> torch.Tensor:
    return (ids * torch.tensor([1, 1e3, 1e6, 1e9, 1e20, 1e30, 1]))[..., None]


@browser
@pytest.mark.parametrize(("width", "lines"), [(1000, 3), (300, 1)])
def test_nan_infinity_rounding_and_large_numbers_are_said(show, width, lines):
    models = {"breaks": breaking, "no number": nothing_but_nan, "large": large}
    page = show(LeakProbe(models, IDS, TOKENS), viewport={"width": width, "height": 900})
    assert wrong_states(page, probed_by_hand(models, IDS), TOKENS, lines) == []
    page.set(model="no number", position=3)
    assert page.title == "3 of 3 outputs before “three” are NaN or infinite"
    assert "no number: ? 49 NaN or ∞" in page.told()


# What is drawn


@browser
@pytest.mark.parametrize("width", [1000, 300], ids=["across", "down"])
def test_ribbons_gauges_and_squares_are_the_numbers(show, width):
    models = {"breaks": breaking, "shifted": example_models()[SHIFTED], "large": large}
    tables = probed_by_hand(models, IDS)
    page = show(LeakProbe(models, IDS, TOKENS), viewport={"width": width, "height": 900})
    page.page.emulate_media(reduced_motion="reduce")
    for model, position in (("breaks", 6), ("shifted", 3), ("large", 5), ("breaks", 2)):
        page.set(model=model, position=position)
        drawn, row = page.page.evaluate(DRAWN), tables[model][position].tolist()
        kinds = {i: kind(change, i, position) for i, change in enumerate(row)}
        dashes = {"leaks": "7 5", "moves": None, "broken": "1 6"}
        moved = [[f"output{i}", dashes[one]] for i, one in kinds.items() if one != "stays"]
        assert drawn["ribbons"] == moved
        axis = 1 if width == 1000 else 0  # time runs to the right, or downward
        long = drawn["boxes"][0][axis]
        filled = [[links, size[axis] / long] for links, *size in drawn["fills"]]
        wanted = [
            [f"output{i}", max(2 / long, math.log10(row[i] / THRESHOLD) / decades(tables))]
            for i, one in kinds.items()
            if one in ("leaks", "moves")
        ]
        assert [links for links, _ in filled] == [links for links, _ in wanted]
        parts = torch.tensor([[part for _, part in both] for both in (filled, wanted)])
        torch.testing.assert_close(parts[0], parts[1], atol=0.01, rtol=0)  # of two digits
    assert cells(drawn) == {
        (name, of): [
            (i, t)
            for t, row in enumerate(table.tolist())
            for i, change in enumerate(row)
            if kind(change, i, t) == of
        ]
        for name, table in zip(range(3), tables.values(), strict=True)
        for of in KINDS
    }


def cells(drawn: dict) -> dict[tuple[int, str], list[tuple[int, int]]]:
    """The (output, replaced token) of each cell in each model's square, by kind."""
    found = {}
    for number_of_path, path in enumerate(drawn["cells"]):
        model, of = divmod(number_of_path, len(KINDS))
        left, top, high = map(
            float, re.match(r"M([\d.]+) ([\d.]+)v([\d.]+)", drawn["stairs"][model]).groups()
        )
        corners = re.findall(r"M([\d.]+) ([\d.]+)", path)
        found[model, KINDS[of]] = [
            (round((float(x) - left) / high), round((float(y) - top) / high)) for x, y in corners
        ]
    return found


# What is clicked and pressed


@browser
def test_tokens_rows_and_squares_are_buttons(show):
    page = show(LeakProbe(), viewport={"width": 1100, "height": 900})
    button = page.page.get_by_role("button", name="replace token 3, “an”")
    button.click()
    assert page.get("position") == 3 and "“an” moves 3 of 3 earlier" in page.title
    assert page.page.locator("svg [data-lit]").count() == 6  # the token, its row in five squares
    assert page.press("ArrowRight", "Enter") == "replace token 4, “identity”"
    assert page.get("position") == 4
    page.page.get_by_role("button", name=f"{CAUSAL}: ✓").click(position={"x": 20, "y": 10})
    assert page.get("model") == CAUSAL and page.title.startswith("No leak here")
    page.page.get_by_role("button", name=f"{SHIFTED}, token 9 ").click()
    assert (page.get("model"), page.get("position")) == (SHIFTED, 9)
    assert "moves 2 of 9 earlier outputs" in page.title
    page.page.get_by_role("img", name="output 8").hover()
    assert page.page.locator("svg path[data-lit]").count() == 1


@browser
def test_a_model_that_is_not_there_is_answered(show):
    page = show(LeakProbe({"a": large, "b": large}, IDS, model="c"))
    assert page.said == "There is no model “c”: choose “a”, “b”." and page.title == ""
    page.set(model="b", position=99)
    assert page.title == "No leak here: replacing “6” moves 0 of 6 earlier outputs"


@browser
def test_the_longest_sentence_is_drawn_on_the_narrowest_page(show):
    ids = torch.arange(LONGEST)[None]
    probe = LeakProbe({"own": lambda ids: ids[..., None].float()}, ids, ["a" * 99] * LONGEST)
    page = show(probe, viewport={"width": 290, "height": 900})
    assert page.page.evaluate("() => document.documentElement.scrollWidth") <= 290
    assert len(page.told()) == 3 * LONGEST + 1 and "✓ 0 of 276 leak" in page.written()


# Python


@pytest.mark.parametrize("name", example_models())
def test_only_the_causal_example_keeps_the_future_hidden(name):
    assert leaks_future(example_models()[name], IDS) == (name != CAUSAL)


def test_shifted_mask_shows_one_token_more_in_each_of_two_layers():
    changes = changed_positions(example_models()[SHIFTED], IDS, 5)
    assert (changes > THRESHOLD).tolist() == [False] * 3 + [True] * 4


def test_it_opens_where_most_leaks():
    assert LeakProbe().values == {"model": "no mask at all", "position": 11}
    models = {"large": large, "shifted": example_models()[SHIFTED], "breaks": breaking}
    assert LeakProbe(models, IDS).values == {"model": "shifted", "position": 2}
    assert LeakProbe({"large": large}, IDS).values == {"model": "large", "position": 3}
    assert LeakProbe(models, IDS, model="large").values == {"model": "large", "position": 2}


def test_tokens_are_the_ids_where_none_are_given():
    assert LeakProbe({"large": large}, IDS).tokens == list("0123456")
    assert LeakProbe({"no number": nothing_but_nan}, IDS[:, :1]).values["position"] == 0


def test_bad_input_says_what_to_change(unchecked):
    with pytest.raises(ValueError, match="models must be a dict"):
        LeakProbe(large, IDS)
    with pytest.raises(ValueError, match="models must be a dict"):
        LeakProbe({}, IDS)
    with pytest.raises(ValueError, match=r"ids have shape None"):
        LeakProbe({"m": large})
    with pytest.raises(ValueError, match=r"ids have shape \(7,\).*ids\[None\]"):
        LeakProbe({"m": large}, IDS[0])
    with pytest.raises(ValueError, match="2 tokens for 7 ids"):
        LeakProbe({"m": large}, IDS, ["a", "b"])
    with pytest.raises(ValueError, match=r"25 tokens, .* room for 24: pass ids\[:, :24\]"):
        LeakProbe({"m": large}, torch.arange(25)[None])
    training = DecoderOnlyTransformer(ModelConfig(7, 4, 2, 1, 8, 7))
    with pytest.raises(ValueError, match="'mine' is in training mode"):
        LeakProbe({"mine": training}, IDS)


def test_leaves_the_learners_random_numbers_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    example_models.__wrapped__()
    assert torch.rand(1) == expected


def test_repr_has_the_values_alone():
    assert repr(LeakProbe()) == "LeakProbe(model='no mask at all', position=11)"
