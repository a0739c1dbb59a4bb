"""The learner's lines beside `ModelFlow`: found in code of any style, only in what passed."""

import pytest

from tests.exercises.notebook import ATTENTION, IMPORTS, MASK, SCORES, Notebook, solved
from transformer_lesson import mine
from transformer_lesson.explorables import ModelFlow
from transformer_lesson.mine import PARTS
from transformer_lesson.mine.lines import as_ids, line_at, shown_values
from transformer_lesson.mine.side_by_side import translator

SDPA = "scaled_dot_product_attention"
OURS = f"split_heads, {SDPA}"
EINSUM = """def attention_scores(asks, offers):
    # in one go
    return torch.einsum("...qd, ...kd -> ...qk", asks, offers) / asks.shape[-1] ** 0.5
"""
HELPER = """def _share_out(s, seen):
    if seen is not None:
        s = s.masked_fill(~seen, -1e9)
    shares = torch.exp(s - s.amax(-1, keepdim=True))
    if seen is not None:
        shares = shares * seen
    return shares / shares.sum(-1, keepdim=True).clamp(min=1e-30)


def scaled_dot_product_attention(Q, K, V, mask=None):
    how_much = _share_out(attention_scores(Q, K), mask)
    return torch.einsum("...qk, ...kd -> ...qd", how_much, V), how_much
"""
LOOP = """def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    heads, d = [], x.size(-1) // n_heads
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        q, k, v = x @ W_Q[:, part], x @ W_K[:, part], x @ W_V[:, part]
        s = q @ k.mT / d**0.5
        if mask is not None:
            m = mask.expand(x.size(0), n_heads, x.size(1), x.size(1))[:, h]
            s = s.masked_fill(~m, -1e9)
        w = torch.softmax(
            s,
            dim=-1,
        )
        if mask is not None:
            w = w * m
        heads.append(w @ v)
    return torch.cat(heads, dim=-1) @ W_O
"""
SLICES = """def sinusoidal_encoding(n, d_model, base=10000.0):
    table = torch.zeros(n, d_model)
    angle = torch.arange(n)[:, None] / base ** (torch.arange(0, d_model, 2) / d_model)
    table[:, 0::2] = torch.sin(angle)
    table[:, 1::2] = torch.cos(angle)
    return table
"""


def of(stop):
    return {
        name: (function, line, code)
        for at, name, function, line, code in mine.lines()
        if at == stop
    }


def test_without_a_function_of_theirs_nothing_is_shown(folder):
    assert mine.lines() == []
    Notebook().check("attention_scores", SCORES.replace("sqrt(Q.size(-1))", "sqrt(7)"))
    assert mine.lines() == []  # it hasn't passed
    assert repr(ModelFlow(lines=mine.lines())) == repr(ModelFlow())


def test_ours_and_what_only_calls_ours_have_no_line(folder):
    notebook = Notebook(f"{IMPORTS}\nfrom transformer_lesson.model.attention import {OURS}\n")
    notebook.keep("cross_attention", solved("cross_attention"))
    assert of(5) == {}
    scores = "(lambda Q, K: Q @ K.mT / Q.size(-1) ** 0.5)"
    Notebook().keep(SDPA, ATTENTION.replace("attention_scores", scores))
    assert of(3)["scores"] == (SDPA, 2, f"scores = {scores}(Q, K)")
    assert set(of(4)) == {"scores", "weights", "sum"} and of(2) == of(6) == of(7) == {}


def test_einsum_other_names_and_a_helper(folder):
    notebook = Notebook()
    notebook.keep("attention_scores", EINSUM)
    notebook.keep("scaled_dot_product_attention", HELPER)
    code = 'return torch.einsum("...qd, ...kd -> ...qk", asks, offers) / asks.shape[-1] ** 0.5'
    for stop in (3, 4, 5):
        shown = of(stop)
        assert shown["scores"] == ("attention_scores", 3, code)
        assert shown["weights"][:2] == ("_share_out", 7)
        assert shown["sum"][0] == "scaled_dot_product_attention"


def test_a_loop_over_heads_and_a_call_of_several_lines(folder):
    Notebook().keep("multi_head_attention", LOOP)
    for stop in (3, 4):
        shown = of(stop)
        assert shown["scores"] == ("multi_head_attention", 6, "s = q @ k.mT / d**0.5")
        assert (
            shown["weights"][0] == "multi_head_attention"
            and "softmax(s, dim=-1)" in shown["weights"][2]
        )
        assert shown["sum"] == ("multi_head_attention", 16, "heads.append(w @ v)")
    assert of(5) == {}


def test_a_table_filled_by_slices_and_masks(folder):
    notebook = Notebook()
    notebook.keep("sinusoidal_encoding", SLICES)
    notebook.keep("causal_mask", MASK)
    assert of(2)["place"] == ("sinusoidal_encoding", 5, "table[:, 1::2] = torch.cos(angle)")
    assert of(4)["mask"][:2] == ("causal_mask", 2)


@pytest.mark.slow
def test_who_wrote_everything_has_a_line_for_everything(folder):
    notebook = Notebook()
    for name in PARTS:
        notebook.keep(name, solved(name))
    model, tokenizer = translator()
    shown = mine.lines()
    assert [tuple(one[:2]) for one in shown] == list(shown_values(model, *as_ids(tokenizer)))
    for _, _, function, line, code in shown:
        text = "\n".join(path.read_text() for path in folder.glob("lesson_*.py"))
        start = text[: text.index(f"def {function}(")].count("\n")
        assert text.splitlines()[start + line - 1].strip() == code
    assert line_at(str(folder / "gone.py"), 3) is None
    assert line_at(str(folder / "lesson_03.py"), 10**6) is None
