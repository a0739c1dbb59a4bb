"""A type error of a probe fails its test: it may not hide as "skipped"."""

import pytest

from transformer_lesson.doctor import examination


@pytest.fixture(autouse=True)
def no_type_error_is_skipped(monkeypatch):
    report = examination.Report

    def checked(findings, skipped, *more):
        assert not [why for why in skipped.values() if "TypeCheckError" in why]
        return report(findings, skipped, *more)

    monkeypatch.setattr(examination, "Report", checked)
