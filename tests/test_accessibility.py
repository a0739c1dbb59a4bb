"""The table of WCAG 2.2: every criterion of levels A and AA, and the tests that it names."""

import ast
import re

from tests.stored_lessons import ROOT, read

LEVEL_A = """1.1.1 1.2.1 1.2.2 1.2.3 1.3.1 1.3.2 1.3.3 1.4.1 1.4.2 2.1.1 2.1.2 2.1.4 2.2.1 2.2.2
    2.3.1 2.4.1 2.4.2 2.4.3 2.4.4 2.5.1 2.5.2 2.5.3 2.5.4 3.1.1 3.2.1 3.2.2 3.2.6 3.3.1 3.3.2 3.3.7
    4.1.2"""
LEVEL_AA = """1.2.4 1.2.5 1.3.4 1.3.5 1.4.3 1.4.4 1.4.5 1.4.10 1.4.11 1.4.12 1.4.13 2.4.5 2.4.6
    2.4.7 2.4.11 2.5.7 2.5.8 3.1.2 3.2.3 3.2.4 3.3.3 3.3.4 3.3.8 4.1.3"""
ROW = re.compile(r"^\| (\d\.\d\.\d+) [^|]+ \| (A{1,2}) \| ([^|]+) \| ([^|]*)\|$", re.MULTILINE)
STATE = re.compile(r"met\b|in part: |not met: |not applicable\b")
TEST = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")


def rows() -> list[tuple[str, ...]]:
    return ROW.findall(read("docs/accessibility.md"))


def test_each_criterion_has_a_row_with_its_level_and_its_state():
    wanted = {one: "A" for one in LEVEL_A.split()} | {one: "AA" for one in LEVEL_AA.split()}
    assert len(rows()) == 55 and {number: level for number, level, *_ in rows()} == wanted
    assert [number for number, _, state, _ in rows() if not STATE.match(state)] == []


def test_each_named_test_is_there():
    named = {pair for *_, tests in rows() for pair in TEST.findall(tests)}
    assert len(named) > 10
    for path, name in named:
        names = {
            node.name
            for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body
            if isinstance(node, ast.FunctionDef)
        }
        assert name in names, f"{path} has no {name}"
    assert "".join(TEST.sub("", tests).strip(", ") for *_, tests in rows()) == ""
