"""What the doctor says of strangers' scripts: their faults by name, and no fault of a sound one."""

import pytest

from tests.doctor.published import FOLDER, HOSTS, changes, pairs, script, together
from transformer_lesson.doctor.findings import AT_MOST, CATALOG
from transformer_lesson.doctor.scripts import examine_script

FAULTS = [(host, name) for host in HOSTS for name in changes(host)]
DESIGNS = [(host, name) for host in HOSTS for name in (None, *changes(host, sound=True))]

FLOORS = {"repaired_on": 50, "held_out": 50, "first_seen": 66}  # pairs of which both are named


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
    assert len(HOSTS) == 29 and len(FAULTS) == 381 and len(DESIGNS) == 223
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("unitspeech", None),
        ("unitspeech", "labels_are_the_inputs"),
        ("maskedlm", None),
        ("hfloop", "attention_dropout_off_forever"),
        ("einsum_nmt", "cross_attention_sees_padding"),
        ("einsum_nmt", "dropout_before_softmax"),
        ("byte_lm", "rope_halves_against_pairs"),
        ("byte_lm", "scale_by_model_width"),
        ("byte_lm", "clip_after_step"),
        ("byte_lm", "one_draw_for_all_inputs"),
        ("words_to_digits", "positions_divided"),
        ("meridian_lm", "query_scaled_twice"),
        ("recensement", "hasard_recouvert"),
        ("recensement", "signes_speciaux_a_deviner"),
        ("ta_piglatin", "one_rate_for_all_places"),
    ],
)
def test_what_a_blind_set_taught_is_kept(host, name, examined):
    """Logits by token and text, branches left out, scores dropped, words hidden unevenly, ..."""
    said = examined(host, name and changes(host)[name]).codes
    assert said[:1] == changes(host)[name]["called"][:1] if name else said == []


def test_pairs_are_of_two_causes_and_fit_into_one_script():
    every = [pair for which in FLOORS for pair in pairs(which)]
    assert len(every) == len(set(map(tuple, every))) == 202
    for host, *names in every:
        first, second = (set(changes(host)[name]["called"]) for name in names)
        assert first and second and not first & second
        compile(script(host, together(host, *names)), host, "exec")


@pytest.mark.release
@pytest.mark.parametrize(("which", "both"), FLOORS.items())
def test_of_two_faults_at_once_both_are_named_among_three_causes(which, both, examined):
    """The floors are a little below what was measured; of no pair is neither named."""
    usual = {host: examined(host).codes for host in HOSTS}
    named = []
    for host, *names in pairs(which):
        codes = examined(host, together(host, *names)).codes
        said = set([code for code in codes if code not in usual[host]][:AT_MOST])
        named.append(sum(bool(said & set(changes(host)[name]["called"])) for name in names))
    assert named.count(2) >= both and not named.count(0), named


@pytest.mark.release
@pytest.mark.parametrize(("host", "name"), DESIGNS)
def test_of_a_sound_script_no_fault_is_said(host, name, examined):
    report = examined(host, changes(host, sound=True)[name] if name else None)
    every = (*report.causes, *report.others)
    assert [one.code for one in every if one.level == "fault"] == [], str(report)
