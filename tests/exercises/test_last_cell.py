"""A cell that failed leaves an earlier function behind: the report says which one it is about."""

from contextlib import nullcontext
from types import SimpleNamespace

import nbformat
import pytest
from nbclient import NotebookClient

from tests.exercises.notebook import MASK, SCORES, Notebook
from transformer_lesson.exercises import check
from transformer_lesson.exercises.engine import last_cell

STUB = "def causal_mask(n):\n    raise NotImplementedError"
UNREADABLE = "def causal_mask(n):\n    return torch.ones((1, 1, n, n)"
RAISES = "torch.triangle\n\n" + MASK.strip()
EARLIER = "This is about an earlier version of `causal_mask`: the last cell with it "
SYNTAX = "could not be read (SyntaxError in line 2: '(' was never closed)."
ABOVE = "ended in an error before it reached its `def`."


@pytest.fixture
def cells(monkeypatch):
    """A notebook whose kernel keeps what it is given, before it runs it."""
    cells, notebook = [""], Notebook()
    shell = SimpleNamespace(history_manager=SimpleNamespace(input_hist_parsed=cells))
    monkeypatch.setattr(last_cell, "get_ipython", lambda: shell)

    def run(source: str, fails: type[Exception] | None = None) -> str:
        """Run a cell, which fails so or not, then the check of what stands under the name."""
        cells.append(source.rstrip("\n"))
        with pytest.raises(fails) if fails else nullcontext():
            notebook.run(source)
        cells.append('check("causal_mask", causal_mask)')
        return check("causal_mask", notebook.names["causal_mask"]).message

    return run


@pytest.mark.parametrize(
    ("failed", "error", "why"), [(UNREADABLE, SyntaxError, SYNTAX), (RAISES, AttributeError, ABOVE)]
)
def test_a_verdict_on_an_earlier_function_says_so(cells, failed, error, why):
    assert cells(STUB) == ""
    assert cells(failed, error) == EARLIER + why  # the stub is still there: not attempted
    wrong = cells(MASK.replace("tril", "triu"))
    assert wrong.startswith("This comes from the upper triangle.")
    assert cells(failed, error) == f"{EARLIER}{why}\n{wrong}"
    assert cells(MASK).startswith("Equal to the package's own")
    assert cells(failed, error).startswith(f"{EARLIER}{why}\nEqual to the package's own")


def test_nothing_is_said_of_the_latest_function_nor_of_one_from_elsewhere(cells):
    inside = "def make():\n    " + MASK.replace("\n", "\n    ") + "\n    return causal_mask\n\n\n"
    other = UNREADABLE.replace("causal", "padding") + "\n\n"
    sources = [
        STUB,
        f"{SCORES}\n{MASK}",
        other,
        f"{inside}causal_mask = make()",
        "from transformer_lesson.model.masks import causal_mask",
        f"{MASK}\n\n\n",
        "causal_mask = lambda n: None",
    ]
    for source in sources:
        assert "earlier" not in cells(source, SyntaxError if source is other else None)


@pytest.mark.slow
def test_a_kernel_keeps_the_text_of_a_cell_that_it_could_not_read(folder):
    sources = [
        "import torch\nfrom transformer_lesson.exercises import check",
        f"{STUB}\n\n",
        f"{UNREADABLE}\n",
        'check("causal_mask", causal_mask)',
    ]
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, sources)])
    NotebookClient(notebook, kernel_name="python3", allow_errors=True).execute()
    (shown,) = notebook.cells[-1].outputs
    assert shown["data"]["text/plain"] == f"causal_mask: not attempted yet\n{EARLIER}{SYNTAX}"
