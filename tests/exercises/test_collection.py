"""What passes its check is kept in the learner's own words, and runs without the notebook."""

import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.exercises.notebook import ATTENTION, MASK, MERGE, SCORES, Notebook, solved
from transformer_lesson.exercises.engine.catalog import EXERCISES, LESSON_OF
from transformer_lesson.exercises.engine.collection import (
    FOLDER,
    collect,
    collected,
    load_collected,
)
from transformer_lesson.exercises.engine.progress import PLACE, read_progress

HEADS = """def multi_head_attention(x, W_Q, W_K, W_V, W_O, n_heads, mask=None):
    Q, K, V = [split_heads(x @ W, n_heads) for W in (W_Q, W_K, W_V)]
    return merge_heads(scaled_dot_product_attention(Q, K, V, mask)[0]) @ W_O
"""
SPLIT = """def cut(x, n_heads):
    return x.view(*x.shape[:2], n_heads, -1).transpose(1, 2)
"""
ROOT = "Q.size(-1) ** 0.5"
SCORED = f"Q @ K.mT / {ROOT}"
CLOSURE = """def make(root):
    def attention_scores(Q, K):
        return Q @ K.mT / root(Q.size(-1))
    return attention_scores
attention_scores = make(math.sqrt)
"""
FRESH = """import torch
from my_transformer.lesson_04 import multi_head_attention
one = torch.ones(1, 1, 1)
W = torch.ones(1, 1)
print(multi_head_attention(one, W, W, W, W, 1).item())"""


@pytest.mark.slow
def test_a_whole_attention_is_kept_and_runs_without_notebook_and_without_ours(folder):
    notebook = Notebook()
    kept = "Your version is kept in `my_transformer/lesson_0{}.py`."
    assert notebook.check("attention_scores", SCORES) == kept.format(3)
    assert notebook.check("scaled_dot_product_attention", ATTENTION) == kept.format(3)
    assert notebook.check("split_heads", SPLIT, as_="cut") == kept.format(4)
    notebook.run("split_heads = cut")
    assert notebook.check("multi_head_attention", HEADS) == kept.format(4)
    assert "transformer_lesson" in (folder / "lesson_04.py").read_text()  # our merge_heads, so far
    assert notebook.check("merge_heads", MERGE) == kept.format(4)
    run = subprocess.run([sys.executable, "-c", FRESH], cwd=folder.parent, capture_output=True)
    assert (run.stdout, run.stderr) == (b"1.0\n", b"")
    text = (folder / "lesson_03.py").read_text()
    assert SCORES in text and ATTENTION in text and "import torch.nn.functional" not in text
    assert list(collected(folder).values()) == ["03", "03", "04", "04", "04"]
    functions, broken = load_collected(folder)
    assert functions["attention_scores"].__doc__ == "As in equation 1." and broken == {}
    (folder / "lesson_04.py").write_text(f"{MERGE}\n# %% merge_heads\nraise OSError('no')\n")
    functions, broken = load_collected(folder)
    assert list(functions) == ["attention_scores", "scaled_dot_product_attention"]
    assert broken == {"merge_heads": "OSError: no"}


def test_a_failed_version_replaces_nothing_and_a_passed_one_its_predecessor_or_the_helper(folder):
    notebook, path = Notebook(), folder / "lesson_03.py"
    notebook.run(SCORES)  # right, but not checked yet
    notebook.check("scaled_dot_product_attention", ATTENTION)
    before = path.read_text()
    assert notebook.check("attention_scores", SCORES.replace("math.sqrt", "")) == "failed"
    assert path.read_text() == before and before.count("def attention_scores") == 1
    for new in (SCORES.replace("As in", "By"), SCORES.replace("math.sqrt(Q.size(-1))", ROOT)):
        notebook.check("attention_scores", new)
        after = path.read_text()
        assert after.count("def attention_scores") == 1 and new in after


@pytest.mark.parametrize(
    "source, reason",
    {
        "attention_scores = lambda Q, K: Q @ K.mT / math.sqrt(Q.size(-1))": "with `def`",
        CLOSURE: "inside another function",
        f"one = torch.ones(1)\n{SCORES.replace('Q @', 'one * Q @')}": "`one`, a Tensor from",
        f"exec({SCORES!r})": "cannot be read",
        "from transformer_lesson.model.attention import attention_scores": "is the package's own",
    }.items(),
    ids=["lambda", "closure", "tensor", "no source", "ours"],
)
def test_what_cannot_be_written_down_passes_all_the_same_and_says_why(folder, source, reason):
    line = Notebook().check("attention_scores", source)
    assert line.startswith("It passed but was not collected in `my_transformer`: ")
    assert reason in line and collected(folder) == {}
    progress = read_progress(folder.with_name("my_progress.json"))
    assert progress["passed"] == {"attention_scores": True}


def test_a_helper_of_another_meaning_under_the_same_name_is_refused(folder):
    notebook = Notebook()
    notebook.run("def scale(n):\n    return math.sqrt(n)\n")
    notebook.check("attention_scores", SCORES.replace("math.sqrt", "scale"))
    before = (folder / "lesson_03.py").read_text()
    notebook.run("def scale(n):\n    return n\n")
    attention = ATTENTION.replace("attention_scores(Q, K)", f"{SCORED} * scale(1)")
    line = notebook.check("scaled_dot_product_attention", attention)
    assert "with it, `attention_scores` in the same file no longer passes" in line
    assert (folder / "lesson_03.py").read_text() == before


def test_a_function_that_needs_the_notebook_is_refused(folder):
    notebook = Notebook()
    notebook.run("calls = []\ndef first():\n    calls.append(1)\n    return len(calls)\n")
    notebook.keep("causal_mask", MASK.replace("== 1", "> first() * 0"))  # [] is plain
    notebook.run(MASK.replace("causal_mask", "causal_mask_of"))
    notebook.run("def get_ipython():\n    return 1\nget_ipython.__module__ = 'builtins'\n")
    count = "def count_mask(n):\n    return get_ipython() and causal_mask_of(n)\n"
    line = notebook.check("causal_mask", count, as_="count_mask")
    assert "`get_ipython`, a function from another cell" in line


def test_a_damaged_module_is_set_aside(folder):
    notebook = Notebook()
    notebook.check("attention_scores", SCORES)
    path = folder / "lesson_03.py"
    path.write_text(path.read_text() + "\ndef broken(:\n")
    damaged = path.read_text()
    with pytest.warns(UserWarning, match="is kept as lesson_03.damaged-1.py"):
        notebook.check("scaled_dot_product_attention", ATTENTION)
    assert (folder / "lesson_03.damaged-1.py").read_text() == damaged
    assert "scaled_dot_product_attention" in collected(folder)


def test_notebooks_that_are_open_at_once_lose_nothing(folder):
    names, keep = [name for name, lesson in LESSON_OF.items() if lesson == "03"], []
    for name in names:
        notebook = Notebook()
        notebook.run(solved(name))
        keep.append((name, notebook.names[name], lambda name, answer: None))
    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(lambda one: collect(*one), keep))
    assert said == ["Your version is kept in `my_transformer/lesson_03.py`."] * len(names)
    assert set(collected(folder)) == set(names)


@pytest.mark.slow
def test_all_solutions_can_be_collected(folder):
    for name in EXERCISES:
        Notebook().check(name, solved(name))
    assert set(collected(folder)) == set(EXERCISES)


def test_nothing_is_kept_where_no_notebooks_are_and_a_locked_folder_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv(PLACE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert "kept" not in Notebook().check("attention_scores", SCORES)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / FOLDER).write_text("a file of this name")
    monkeypatch.setenv(PLACE, str(tmp_path / "my_progress.json"))
    line = Notebook().check("attention_scores", SCORES)
    assert line.startswith("It passed but was not collected in ") and "lesson_03.py" in line


def test_what_a_learner_adds_to_a_file_stays(folder):
    notebook, path = Notebook(), folder / "lesson_03.py"
    notebook.check("attention_scores", SCORES)
    text = path.read_text()
    head, mark, rest = text.partition("# %% attention_scores")
    notes = "\n\n# %% notes\ndef twice(x):\n    return 2 * x\n"
    path.write_text(f"{head}LIMIT = 7  # mine\n\n\n{mark}{rest}{notes}")
    for name, source in {
        "scaled_dot_product_attention": ATTENTION,
        "attention_scores": SCORES.replace("equation 1", "equation one"),
    }.items():
        notebook.keep(name, source)
    text = path.read_text()
    assert text.count("LIMIT = 7  # mine") == text.count("def twice(x):") == 1
    assert "equation one" in text and "equation 1" not in text and text.startswith('"""Lesson 03')
    assert list(collected(folder)) == ["attention_scores", "scaled_dot_product_attention"]
    # a mark within a function is a comment
    notebook.keep("attention_scores", SCORES.replace("    return", "# %% inner\n    return"))
    notebook.keep("scaled_dot_product_attention", ATTENTION)
    assert "# %% inner\n    return" in path.read_text()


def test_a_neighbor_that_was_spoiled_by_hand_holds_nothing_up(folder):
    notebook, path = Notebook(), folder / "lesson_03.py"
    notebook.check("attention_scores", SCORES)
    path.write_text(path.read_text().replace("math.sqrt(Q.size(-1))", "Q.size(-1)"))
    attention = ATTENTION.replace("attention_scores(Q, K)", SCORED)
    notebook.keep("scaled_dot_product_attention", attention)
    path.write_text(path.read_text() + "\n\n# %% notes\nlen(3)\n")
    said = notebook.check("attention_scores", SCORES)
    assert re.search(r"not run \(TypeError: .*, line \d+ of my_transformer/lesson_03.py\)", said)


def test_what_passes_only_with_ours_keeps_ours(folder):
    notebook = Notebook()
    notebook.check("merge_heads", MERGE)
    notebook.run("from transformer_lesson.model.norm import layer_norm")
    norm = """def layer_norm(x, gamma, beta, epsilon):
    mean, variance = x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)
    return (x - mean) / (variance + epsilon).sqrt() * gamma + beta
"""
    Notebook().check("layer_norm", norm)
    network = """from transformer_lesson.model.forward import *
from transformer_lesson.model.forward import layer_norm
def encoder_forward(source_ids, weights):
    x, mask = embed(source_ids, weights.source_table), padding_mask(source_ids, weights.pad_id)
    x = x + sinusoidal_encoding(x.size(1), x.size(2)).to(x)
    for block in weights.encoder:
        heads = multi_head_attention(x, *block.self_attention, weights.n_heads, mask)
        x = layer_norm(x + heads, *block.norms[0])
        x = layer_norm(x + feed_forward(x, *block.feed_forward), *block.norms[1])
    return x
"""
    said = notebook.check("encoder_forward", network)
    assert "It calls our `layer_norm`, as in the notebook; with your own, outside the" in said
    text = (folder / "lesson_06.py").read_text()
    assert "from transformer_lesson.model.norm import layer_norm" in text


def test_what_a_function_uses_comes_with_it(folder):
    notebook = Notebook()
    notebook.run("from collections import namedtuple\nfrom dataclasses import dataclass")
    notebook.run("Pair = namedtuple('Pair', 'one other')\nHALF, NEVER = 0.5, float('-inf')")
    notebook.run("LAST, KIND = slice(-1, None), torch.int64")
    notebook.run("def lowest():\n    return NEVER * HALF\n")
    root = "class Root:\n    of: Pair\n\n    def root(self):\n        return self.of.one**0.5"
    notebook.run(f"@dataclass\n{root}")
    scores = """def attention_scores(Q, K):
    width = torch.tensor(Q.shape, dtype=KIND)[LAST].item()
    return Q @ K.mT / Root(Pair(width, lowest())).root()
"""
    notebook.keep("attention_scores", scores)
    text = (folder / "lesson_03.py").read_text()
    for part in ("@dataclass\nclass Root:", "HALF = 0.5", 'NEVER = float("-inf")', "def lowest"):
        assert part in text


DOUBLE_TABLE = """def sinusoidal_encoding(n_positions, d_model, base=10000.0):
    slower = base ** (torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(n_positions).double()[:, None] / slower
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)
"""
BLOCKS = """def attention_in_blocks(Q, K, V, block_size, causal):
    largest = Q.new_full(Q.shape[:2], -math.inf)
    total, output = Q.new_zeros(Q.shape[:2]), Q.new_zeros(*Q.shape[:2], V.size(-1))
    for start in range(0, K.size(1), block_size):
        keys = torch.arange(start, min(start + block_size, K.size(1)))
        scores = Q @ K[:, keys].mT / math.sqrt(Q.size(-1))
        if causal:
            scores = scores.masked_fill(keys > torch.arange(Q.size(1))[:, None], -math.inf)
        states = zip(largest, total, output, scores, V[:, keys], strict=True)
        states = [online(*one) for one in states]
        largest, total, output = map(torch.stack, zip(*states, strict=True))
    return output / total[..., None]
"""


@pytest.mark.slow
def test_another_dtype_is_cast_where_it_is_kept_so_that_no_later_answer_fails_by_it(folder):
    notebook = Notebook()
    said = notebook.check("sinusoidal_encoding", DOUBLE_TABLE)
    assert said.endswith("There its results, float64, are cast to the inputs' dtype.")
    notebook.run("from transformer_lesson import mine")
    notebook.run('sinusoidal_encoding = mine.function("sinusoidal_encoding")')
    assert notebook.names["sinusoidal_encoding"](3, 4).dtype == torch.float32
    assert notebook.names["sinusoidal_encoding"].__module__.endswith("lesson_02")
    forward = solved("gpt_forward").replace(
        "from transformer_lesson.model.positions import sinusoidal_encoding", ""
    )
    notebook.keep("gpt_forward", forward)
    assert load_collected(folder)[1] == {}


@pytest.mark.slow
def test_a_collected_function_is_known_by_any_name_and_from_a_later_lesson(folder):
    notebook = Notebook()
    notebook.keep("online_softmax", solved("online_softmax"))
    notebook.run("from transformer_lesson import mine")
    notebook.run('online = mine.function("online_softmax")')
    notebook.keep("attention_in_blocks", BLOCKS)
    notebook.keep("apply_rotary", solved("apply_rotary"))
    notebook.run('apply_rotary = mine.function("apply_rotary")')
    ours = "from transformer_lesson.model.positions import apply_rotary\n"
    assert ours in solved("llama_block")
    notebook.keep("llama_block", solved("llama_block").replace(ours, ""))
    functions, broken = load_collected(folder)
    assert broken == {} and {"attention_in_blocks", "llama_block"} <= functions.keys()
    assert "from .lesson_13 import apply_rotary" in (folder / "lesson_12.py").read_text()
