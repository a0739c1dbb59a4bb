"""What was measured is read, or a sentence names the script that measures it again."""

import re

import pytest

from tests.stored_lessons import ROOT
from transformer_lesson.stored import read_stored

READS = re.compile(r"read_stored\([^)]*\{__package__\}\.(\w+)")


def test_a_damaged_file_is_named_with_the_script_that_makes_it_again(tmp_path):
    (tmp_path / "damaged.json").write_text("[[8, 9")
    said = r"damaged.json cannot be read \(JSONDecodeError\): `python -m a.b` makes it again"
    with pytest.raises(ValueError, match=said):
        read_stored(tmp_path / "damaged.json", "a.b")


def test_every_script_that_is_named_is_there():
    modules = ROOT.glob("transformer_lesson/**/*.py")
    named = [(path, name) for path in modules for name in READS.findall(path.read_text("utf-8"))]
    assert len(named) >= 10
    assert [one for one in named if not one[0].with_name(f"{one[1]}.py").exists()] == []
