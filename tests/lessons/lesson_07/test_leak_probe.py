"""Who sees the future, in the page: every number against `interpretability.causality`."""

import math
import re

import pytest
import torch

from tests.explorables.shown import assert_refused, lines
from transformer_lesson.explorables import LeakProbe
from transformer_lesson.interpretability.causality import changed_positions, leaks_future
from transformer_lesson.lessons.lesson_07.leak_probe import LONGEST, THRESHOLD, example_models
from transformer_lesson.model.config import ModelConfig
from transformer_lesson.model.transformers import DecoderOnlyTransformer

CAUSAL, SHIFTED = "decoder-only, causal mask", "mask shifted by one"
IDS = torch.arange(7)[None]
TOKENS = ["zero", "one", "two", "three", "four", "five", "six"]
DRAWN = """(() => {
    const svg = root.querySelector("svg");
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
})()"""
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
    rows = enumerate(table.tolist())
    return [sum(kind(one, i, t) == of for i, one in enumerate(row)) for t, row in rows]


def verdict(table: torch.Tensor) -> str:
    leaks, broken = sum(counts(table, "leaks")), sum(counts(table, "broken"))
    pairs = len(table) * (len(table) - 1) // 2
    if broken and not leaks:
        return f"? {broken} NaN or ∞"
    return f"{'✗' if leaks else '✓'} {leaks} of {pairs} leak"


def expected(tables: dict, model: str, position: int, tokens: list[str], gauge_lines: int) -> dict:
    """All that the page tells and says of a state, its gauges with so many lines."""
    row, word = tables[model][position].tolist(), tokens[position]
    kinds = [kind(change, i, position) for i, change in enumerate(row)]
    does = [output_did(row, i, position, tokens) for i in range(len(row))]
    told = lines("replace token {}, “{}”", enumerate(tokens))
    told += lines("output {}, at “{}”, {}", zip(range(len(row)), tokens, does, strict=True))
    told += [f"{name}: {verdict(table)}" for name, table in tables.items()]
    told += [
        f"{name}, token {t} “{tokens[t]}” replaced: {leaks} of {t} earlier outputs move"
        for name, table in tables.items()
        for t, leaks in enumerate(counts(table, "leaks"))
    ]
    signs = {"stays": "–", "broken": "NaN/∞"}
    written = [signs.get(one) or number(row[i]) for i, one in enumerate(kinds)]
    title = claim(kinds, position, word)
    return {
        "told": told,
        "written": [*scale(tables, gauge_lines), *written, *["leak"] * kinds.count("leaks")],
        "verdicts": [verdict(table) for table in tables.values()],
        "title": title,
        "said": f"{model}: {title}{sentence(row, kinds, position, does[position])}",
    }


def decades(tables: dict[str, torch.Tensor]) -> int:
    """How many powers of ten the gauges show, from the threshold up."""
    finite = [c for table in tables.values() for c in table.flatten().tolist() if math.isfinite(c)]
    return round(math.log10(float(f"{max(1, *finite):.2g}")) + 5 + 0.499999)


def scale(tables: dict[str, torch.Tensor], gauge_lines: int) -> list[str]:
    every = math.ceil(decades(tables) / gauge_lines)
    return [number(THRESHOLD * 10**i) for i in range(every, decades(tables) + 1, every)]


def claim(kinds: list[str], position: int, word: str) -> str:
    leaks, broken = (kinds[:position].count(one) for one in ("leaks", "broken"))
    moved = f"replacing “{word}” moves {leaks} of {position} earlier outputs"
    if not position:
        return f"No output comes before “{word}”, so replacing it shows no leak"
    if broken and not leaks:
        return f"{broken} of {position} outputs before “{word}” are NaN or infinite"
    return f"{'The future leaks' if leaks else 'No leak here'}: {moved}"


def sentence(row: list[float], kinds: list[str], position: int, own: str) -> str:
    said, later = "", kinds[position + 1 :]
    if leaks := {i: float(f"{row[i]:.2g}") for i, one in enumerate(kinds) if one == "leaks"}:
        first = max(leaks, key=lambda i: (leaks[i], -i))
        said = f", by up to {number(row[first])} (output {first})"
    said += f". Its own output {own}; {later.count('moves')} of {len(later)} later outputs move."
    if "broken" in kinds:
        said += f" NaN or infinite: {kinds.count('broken')} of {len(kinds)} outputs."
    return said + " Changes up to 1e-5 are rounding."


def wrong_states(page, tables: dict, tokens: list[str], gauge_lines: int = 3) -> list:
    """In which states the page shows something else than what was computed by hand."""
    states = [{"model": model, "position": i} for model in tables for i in range(len(tokens))]
    wrong = []
    for state, shown in zip(states, page.states(states), strict=True):
        wanted, texts = expected(tables, *state.values(), tokens, gauge_lines), shown["written"]
        shown["verdicts"] = [text for text in texts if re.match("[✓✗?] ", text)]
        begin = texts.index("moves by") + 1
        shown["written"] = texts[begin : begin + len(wanted["written"])]
        wrong += [(*state.values(), key) for key in wanted if shown[key] != wanted[key]]
    return wrong


def test_every_number_of_every_state_is_that_of_the_package(show):
    probe, models = LeakProbe(tried=True), example_models()
    known = sorted(set(probe.tokens))
    ids = torch.tensor([[known.index(token) for token in probe.tokens]])
    assert wrong_states(show(probe), probed_by_hand(models, ids), probe.tokens) == []


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


@pytest.mark.parametrize(("width", "gauge_lines"), [(1000, 3), (300, 1)], ids=["across", "down"])
def test_nan_infinity_rounding_and_large_numbers_are_said_and_drawn(show, width, gauge_lines):
    models = {"breaks": breaking, "no number": nothing_but_nan, "large": large}
    models["shifted"] = example_models()[SHIFTED]
    tables = probed_by_hand(models, IDS)
    page = show(LeakProbe(models, IDS, TOKENS, True), viewport={"width": width, "height": 900})
    assert wrong_states(page, tables, TOKENS, gauge_lines) == []
    for model, position in (("breaks", 6), ("shifted", 3), ("large", 5), ("breaks", 2)):
        page.set(model=model, position=position)
        drawn, row = page.read(DRAWN), tables[model][position].tolist()
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
    for name, table in enumerate(tables.values()):
        n = len(table)
        kinds = {(i, t): kind(table[t, i].item(), i, t) for t in range(n) for i in range(n)}
        for of in KINDS:
            assert cells(drawn)[name, of] == [place for place in kinds if kinds[place] == of]


def cells(drawn: dict) -> dict[tuple[int, str], list[tuple[int, int]]]:
    """The (output, replaced token) of each cell in each model's square, by kind."""
    found = {}
    for i, path in enumerate(drawn["cells"]):
        model, of = divmod(i, len(KINDS))
        stairs = re.match(r"M([\d.]+) ([\d.]+)v([\d.]+)", drawn["stairs"][model])
        left, top, high = map(float, stairs.groups())
        corners = re.findall(r"M([\d.]+) ([\d.]+)", path)
        found[model, KINDS[of]] = [
            (round((float(x) - left) / high), round((float(y) - top) / high)) for x, y in corners
        ]
    return found


def test_tokens_rows_and_squares_are_buttons(show):
    page = show(LeakProbe(model="no mask at all"))
    page.click("replace token 3, “an”")
    assert page.get("position") == 3 and "“an” moves 3 of 3 earlier" in page.title
    assert len(page.lit()) == 6  # the token, its row in five squares
    assert page.press("ArrowRight", "Enter") == "replace token 4, “identity”"
    assert page.get("position") == 4
    page.named(f"{CAUSAL}: ?").click(position={"x": 20, "y": 10})
    assert page.get("model") == CAUSAL and page.title.startswith("No leak here")
    page.click(f"{SHIFTED}, token 9 ")
    assert page.get("model", "position") == [SHIFTED, 9]
    assert "moves 2 of 9 earlier outputs" in page.title
    page.named("output 8", "img").hover()
    assert page.lit().count("path") == 1


def test_what_is_not_there_is_answered_and_the_longest_sentence_drawn(show):
    page = show(LeakProbe({"a": large, "b": large}, IDS, model="c"))
    assert page.said == "There is no model “c”: choose “a”, “b”." and page.title == ""
    page.set(model="b", position=99)
    assert page.title == "No leak here: replacing “6” moves 0 of 6 earlier outputs"
    ids = torch.arange(LONGEST)[None]
    own = {"own": lambda ids: ids[..., None].float()}
    probe = LeakProbe(own, ids, ["a" * 99] * LONGEST, True)
    page = show(probe, viewport={"width": 290, "height": 900})
    assert page.width() <= 290
    assert len(page.told()) == 3 * LONGEST + 1 and "✓ 0 of 276 leak" in page.written()


def test_a_model_keeps_its_verdict_until_each_token_was_replaced_with_it(show):
    page = show(LeakProbe({"large": large, "shifted": example_models()[SHIFTED]}, IDS, TOKENS))
    names = {name: f"{name}, token 2 “two” " for name in ("large", "shifted")}
    untried = names["large"] + "has not been replaced yet"
    assert {"large: ? 0 of 7 tried", untried} <= set(page.told())
    page.set(position=2)  # which leaves token 0
    assert page.get("tried") == [["large", 0], ["large", 2]]
    page.click(names["shifted"])
    leaks = names["shifted"] + "replaced: 2 of 2 earlier outputs move"
    assert {"large: ? 2 of 7 tried", "shifted: ? 1 of 7 tried", leaks} <= set(page.told())
    page.states([{"position": position} for position in (6, 5, 4, 3, 1)])
    assert "shifted: ? 6 of 7 tried" in page.told()
    page.click("replace token 0, “zero”")
    assert "shifted: ✗ 11 of 21 leak" in page.told() and "large: ? 2 of 7 tried" in page.told()
    assert len(cells(page.read(DRAWN))[0, "moves"]) == 2


def test_only_the_causal_example_hides_the_future_and_ids_are_tokens_where_none_are_given():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    examples = example_models()
    assert torch.rand(1) == expected  # the learner's random numbers are left alone
    assert [name for name, model in examples.items() if not leaks_future(model, IDS)] == [CAUSAL]
    changes = changed_positions(examples[SHIFTED], IDS, 5)  # one token more in each of two layers
    assert (changes > THRESHOLD).tolist() == [False] * 3 + [True] * 4
    assert repr(LeakProbe()) == f"LeakProbe(model='{CAUSAL}', position=0, tried=[])"
    assert LeakProbe({"large": large}, IDS).tokens == list("0123456")
    tried = LeakProbe({"a": nothing_but_nan, "b": nothing_but_nan}, IDS[:, :2], tried=True).tried
    assert tried == [["a", 0], ["a", 1], ["b", 0], ["b", 1]]


def test_bad_input_says_what_to_change(unchecked):
    assert_refused("models must be a dict", LeakProbe, large, IDS)
    assert_refused("models must be a dict", LeakProbe, {}, IDS)
    assert_refused(r"ids have shape None", LeakProbe, {"m": large})
    assert_refused(r"ids have shape \(7,\).*ids\[None\]", LeakProbe, {"m": large}, IDS[0])
    assert_refused("2 tokens for 7 ids", LeakProbe, {"m": large}, IDS, ["a", "b"])
    long = r"25 tokens, .* room for 24: pass ids\[:, :24\]"
    assert_refused(long, LeakProbe, {"m": large}, torch.arange(25)[None])
    training = DecoderOnlyTransformer(ModelConfig(7, 4, 2, 1, 8, 7))
    assert_refused("'mine' is in training mode", LeakProbe, {"mine": training}, IDS)


def test_the_models_by_default_read_ids_of_yours():
    probe = LeakProbe(ids=torch.tensor([[3, 1, 2]]), tokens=["a", "b", "c"])
    assert probe.tokens == ["a", "b", "c"] and len(probe.changes["no mask at all"]) == 3
    assert_refused(
        "token id 99 is outside the vocabulary of 16", LeakProbe, ids=torch.tensor([[99]])
    )
    assert_refused("ids have shape None", LeakProbe, tokens=["a"])
