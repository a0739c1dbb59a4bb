"""Who sees the future, in the page: every number against `interpretability.causality`."""

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
SQUARES = {  # what became of each output, a row for each replaced token
    "breaks": "mbmm.m. lbmm.m. lbmmbm. lblm.m. lbll.m. lbll.m. lbll.lm",
    "large": "m...... .m..... ..m.... ...m... ....m.. .....m. ......m",
    "early": "mmmmmmm lmmmmmm .lmmmmm ..lmmmm ...lmmm ....lmm .....lm",
}
VERDICTS = ["✗ 14 of 21 leak", "✓ 0 of 21 leak", "✗ 6 of 21 leak"]
STATES = {  # how far each output moves
    ("breaks", 6): "6 NaN/∞ 6 6 – 6 6e-4",
    ("breaks", 2): "2 NaN/∞ 2 2 NaN/∞ 2 –",
    ("large", 5): "– – – – – 5e+30 –",
    ("early", 0): "1 1 1 1 1 1 1",
}


def breaking(ids: torch.Tensor) -> torch.Tensor:
    """Sums of all ids, but one is NaN, one becomes infinite, and the last moves little."""
    outputs = ids.float().sum(1, keepdim=True).expand(ids.shape).clone()
    outputs[:, 1] = torch.nan
    outputs[:, 4] = torch.inf if ids[0, 2] != 2 else 0  # infinite by the change alone
    outputs[:, 6] = 1e-4 * ids[:, 6] + 1e-6 * ids[:, 5]  # the second one is rounding
    return outputs[..., None]


def large(ids: torch.Tensor) -> torch.Tensor:
    return (ids * torch.tensor([1, 1e3, 1e6, 1e9, 1e20, 1e30, 1]))[..., None]


def early(ids: torch.Tensor) -> torch.Tensor:
    """Sums of all ids up to the next one, which leaks."""
    sums = ids.float().cumsum(1)
    return torch.cat([sums[:, 1:], sums[:, -1:]], 1)[..., None]


def test_every_output_is_told_also_nan_infinity_rounding_and_large_numbers(show):
    models = {"breaks": breaking, "large": large, "early": early}
    page = show(LeakProbe(models, IDS, TOKENS, True))
    for (model, position), numbers in STATES.items():
        page.set(model=model, position=position)
        kinds, numbers = SQUARES[model].split()[position], numbers.split()
        words = {
            ".": "does not move",
            "b": "is NaN or infinite, which cannot be compared",
            "m": "moves by {}",
            "l": f"moves by {{}}: a leak, “{TOKENS[position]}” comes later",
        }
        does = [words[kind].format(number) for kind, number in zip(kinds, numbers, strict=True)]
        told = lines("replace token {}, “{}”", enumerate(TOKENS))
        told += lines("output {}, at “{}”, {}", zip(range(7), TOKENS, does, strict=True))
        told += lines("{}: {}", zip(SQUARES, VERDICTS, strict=True))
        told += [
            f"{name}, token {t} “{TOKENS[t]}” replaced: {row.count('l')} of {t} earlier "
            "outputs move"
            for name, square in SQUARES.items()
            for t, row in enumerate(square.split())
        ]
        assert page.told() == told
        leaks = f"leaks: replacing “{TOKENS[position]}” moves {kinds.count('l')} of {position} earl"
        assert (leaks in page.title) == ("l" in kinds)
        assert ("NaN or infinite" in page.said) == ("b" in kinds)


def test_changes_are_those_of_the_package_in_two_digits():
    probe = LeakProbe()
    known = sorted(set(probe.tokens))
    ids = torch.tensor([[known.index(token) for token in probe.tokens]])
    for name, model in example_models().items():
        exact = torch.stack([changed_positions(model, ids, i) for i in range(ids.size(1))])
        sent = torch.tensor(probe.changes[name])
        assert torch.allclose(sent, exact, rtol=0.051, atol=THRESHOLD)
        assert ((exact > THRESHOLD) == (sent > 0)).all()


def test_tokens_rows_and_squares_are_buttons(show):
    page = show(LeakProbe(model="no mask at all"))
    page.click("replace token 3, “an”")
    assert page.get("position") == 3 and "“an” moves 3 of 3 earlier" in page.title
    assert page.press("ArrowRight", "Enter") == "replace token 4, “identity”"
    assert page.get("position") == 4
    page.named(f"{CAUSAL}: ?").click(position={"x": 20, "y": 10})
    assert page.get("model") == CAUSAL and page.title.startswith("No leak here")
    page.click(f"{SHIFTED}, token 9 ")
    assert page.get("model", "position") == [SHIFTED, 9]
    assert "moves 2 of 9 earlier outputs" in page.title


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
    tried = LeakProbe({"a": early, "b": early}, IDS[:, :2], tried=True).tried
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
    assert_refused("token id 99 is outside the vocabulary of 16", LeakProbe, ids=IDS[:, :1] + 99)
    assert_refused("ids have shape None", LeakProbe, tokens=["a"])
