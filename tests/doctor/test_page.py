"""The doctor's page: its script gets the report that stands there, and its table is complete."""

import re
from pathlib import Path

from transformer_lesson.doctor.findings import table
from transformer_lesson.doctor.scripts import examine_script

PAGE = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text("utf-8")


def test_the_table_is_that_of_the_findings():
    """After a change of findings.toml: paste what `table()` returns."""
    assert f"\n\n{table()}\n\n" in PAGE


def test_the_script_of_the_page_has_ten_lines_and_gets_the_report_of_the_page(
    tmp_path, monkeypatch
):
    (script,) = re.findall(r"```python\n([\s\S]+?)```", PAGE)
    assert len([line for line in script.splitlines() if line.strip()]) <= 10
    path = tmp_path / "script.py"
    path.write_text(script, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    report = str(examine_script(path))
    (shown,) = re.findall(r"```text\n([\s\S]+?)```", PAGE)
    assert report.startswith(shown.rstrip())
