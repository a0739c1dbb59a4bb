"""What the doctor says of strangers' scripts: their faults by name, and no fault of a sound one."""

import pytest

from tests.doctor.published import FOLDER, HOSTS, changes, script
from transformer_lesson.doctor.findings import CATALOG
from transformer_lesson.doctor.scripts import examine_script

FAULTS = [(host, name) for host in HOSTS for name in changes(host)]
DESIGNS = [(host, name) for host in HOSTS for name in (None, *changes(host, sound=True))]


@pytest.fixture
def examined(tmp_path, monkeypatch):
    """A function that examines a host's changed text, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def examine(host, change=None):
        path = tmp_path / f"{host}.py"
        path.write_text(script(host, change), encoding="utf-8")
        monkeypatch.syspath_prepend(str(tmp_path))
        return examine_script(path)

    return examine


def test_there_are_enough_and_each_says_where_it_was_published():
    assert len(HOSTS) >= 6 and len(FAULTS) >= 40 and len(DESIGNS) >= 30
    every = [changes(host)[name] for host, name in FAULTS]
    assert all(fault["source"] and fault["what"] for fault in every)
    assert all(set(fault["called"]) <= set(CATALOG) for fault in every)
    assert all(path.stem.removesuffix("_sound") in HOSTS for path in FOLDER.iterdir())


def test_of_all_faults_as_many_are_detected_and_named_as_the_page_says(): ...
