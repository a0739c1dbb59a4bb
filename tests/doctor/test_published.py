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
    monkeypatch.syspath_prepend(str(tmp_path))

    def examine(host, change=None):
        path = tmp_path / f"{host}.py"
        path.write_text(script(host, change), encoding="utf-8")
        return examine_script(path)

    return examine


def test_there_are_enough_and_each_says_where_it_was_published():
    assert len(HOSTS) == 14 and len(FAULTS) == 156 and len(DESIGNS) == 94
    every = [changes(host)[name] for host, name in FAULTS]
    assert all(fault["source"] and fault["what"] for fault in every)
    assert all(set(fault["called"]) <= set(CATALOG) for fault in every)
    assert all(fault["called"] or fault.get("missed") for fault in every)
    assert {path.stem.removesuffix("_sound") for path in FOLDER.iterdir()} == set(HOSTS)


def test_what_is_to_be_changed_must_occur_once():
    with pytest.raises(ValueError, match="t5_style: this occurs 0 times: 'nowhere'"):
        script("t5_style", {"old": "nowhere", "new": ""})


@pytest.mark.release
@pytest.mark.parametrize(("host", "name"), FAULTS)
def test_a_published_fault_is_named_first_or_second(host, name, examined):
    usual = examined(host).codes
    fault = changes(host)[name]
    said = [code for code in examined(host, fault).codes if code not in usual]
    is_named = bool(set(said[:2]) & set(fault["called"]))
    assert is_named != fault.get("missed", False), f"it says {said}"


@pytest.mark.release
@pytest.mark.parametrize(("host", "name"), DESIGNS)
def test_of_a_sound_script_no_fault_is_said(host, name, examined):
    report = examined(host, changes(host, sound=True)[name] if name else None)
    every = (*report.causes, *report.others)
    assert [one.code for one in every if one.level == "fault"] == [], str(report)
