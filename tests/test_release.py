"""One version and one date, wherever a release is named."""

import re
import tomllib
from datetime import date
from importlib.metadata import distributions
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
NOTES = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASE = re.compile(r"^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def test_the_latest_release_is_the_version_everywhere():
    latest, day = RELEASE.findall(NOTES)[0]
    assert (latest, day) == (PROJECT["version"], CITATION["date-released"])
    *_, installed = distributions(name="transformer_lesson")  # before it may lie an older build's
    assert CITATION["version"] == PROJECT["version"] == installed.version
    assert date.fromisoformat(day) >= date(2026, 11, 21)


def test_the_release_notes_keep_their_form():
    headings = re.findall(r"^## .*$", NOTES, re.MULTILINE)
    assert headings[0] == "## [Unreleased]" and len(headings) == 1 + len(RELEASE.findall(NOTES))
    numbers = [tuple(map(int, number.split("."))) for number, _ in RELEASE.findall(NOTES)]
    assert numbers == sorted(numbers, reverse=True)
    kinds = set(re.findall(r"^### (.*)$", NOTES, re.MULTILINE))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_says_what_the_package_says():
    assert CITATION["cff-version"] == "1.2.0" and CITATION["type"] == "software"
    assert CITATION["message"] and CITATION["title"] == "Transformer Lesson"
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION.get("repository-code") == PROJECT.get("urls", {}).get("Repository")
    assert CITATION["authors"] == PROJECT["authors"]
