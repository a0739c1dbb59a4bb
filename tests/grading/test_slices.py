"""What a function needs of its notebook."""

import ast

import pytest

from transformer_lesson.grading.slices import slice_for


def taken(name: str, *cells: str) -> list[str]:
    return [ast.unparse(node) for node in slice_for(name, list(cells))]


def test_only_what_a_function_needs_is_taken():
    cells = (
        "import math\nfrom torch import nn, ones\nmodel = train()",
        "scale = 2.0\ntable = {}\ntable['a'] = scale\nother = ones(3)",
        "def helper(x):\n    return table['a'] * x",
        "x = train()\nfor i in range(3):\n    x.step()",
        "def f(x):\n    return helper(x) + math.pi + sum(i for i in x)",
        "f(3)",
    )
    before = ["import math", "scale = 2.0", "table = {}", "table['a'] = scale", cells[2]]
    own = "def f(x):\n    return helper(x) + math.pi + sum((i for i in x))"
    assert taken("f", *cells) == [*before, own]


@pytest.mark.parametrize(
    "filling",
    [
        "bits.append(1)",
        "for i in range(3):\n    bits.extend([i])",
        "del bits[0]",
        "bits.zero_()",
        "def fill():\n    global bits\n    bits = [1]\nfill()",
        "def fill(i):\n    bits.append(i)\ndef fill_all():\n    fill(1)\nfill_all()",
    ],
)
def test_what_fills_a_list_is_taken_wherever_it_stands(filling):
    cells = ["bits = [0]", "def f():\n    return bits", filling]
    assert "\n".join(taken("f", *cells, 'check("f", f)', "bits = 3")) == "\n".join(cells)
    assert "\n".join(taken("f", *cells)) == "\n".join(cells)


def test_what_comes_after_the_check_has_not_happened_yet_and_all_kinds_of_definitions_are_found():
    cells = ["size = 1", "def f():\n    return size", 'check("f", f)', "size = 2", "f()"]
    assert taken("f", *cells) == ["size = 1", "def f():\n    return size"]
    assert taken("f", *cells, 'check("f", f)')[1:] == ["def f():\n    return size", "size = 2"]
    cells = ["class A:\n    b = c", "c: int = 1", "if c:\n    from math import pi", "d = e = pi"]
    assert len(slice_for("f", [*cells, "def f(x=d):\n    return A, e"])) == 5
    assert taken("f", "from math import *", "def f():\n    return pi")[0] == "from math import *"


def test_the_last_definition_counts_and_a_broken_one_is_no_other():
    assert taken("f", "def f():\n    return 1", "def f():\n    return 2")[-1].endswith("return 2")
    assert taken("f", "def f(): return 1", "for for") == ["def f():\n    return 1"]
    assert taken("g", "def f(): return 1") == []
    with pytest.raises(SyntaxError):
        slice_for("f", ["def f(): return 1", "def f(:\n    return 2"])
