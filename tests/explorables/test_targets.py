"""How large what a finger presses is: WCAG 2.2, criterion 2.5.8, target size (minimum).

A target has 24 by 24 pixels, or around its middle the room of that size. A smaller one is allowed
where something else that is large enough sets the same values: `LARGER` says what that is.
"""

from pathlib import Path

import pytest

from tests.explorables.shown import MODEL
from tests.explorables.stills import as_stored, one_of_each_kind, stills

TARGETS = Path(__file__).with_name("targets.js").read_text(encoding="utf-8")
FACTS = f"(() => {{ {TARGETS}\nreturn targetFacts(root, {MODEL}); }})()"
LARGER = {  # by kind: the value that a small target sets, and how the name of the larger one begins
    "AnswerExplorer": {"layer": "Block", "head": "Head", "whole_block": "whole block"},
    "ArchitectureMap": {"part": "Add & norm (norm)"},
    "AttentionFilm": {"number": "Step"},
    "BudgetExplorer": {"spend": "Operations", "size": "Weights"},
    "LeakProbe": {"position": "Replaced token", "model": "A: "},
    "Leash": {"leash": "Leash"},
    "LiveCurves": {"step": "Step"},
    "NounNeighbors": {"noun": "man", "plural": "plurals"},
    "PatchExplorer": {"row": "Row", "column": "Column"},
    "PositionalEncodingExplorer": {"position": "position", "distance": "distance"},
    "TrainingReplay": {"number": "Snapshot"},
}
COUNTED = {"LeakProbe": {"tried"}}  # what the page itself notes


@pytest.mark.parametrize("width", [968, 390])
@pytest.mark.parametrize("name", one_of_each_kind())
def test_a_finger_hits_each_target_or_a_larger_one_that_does_the_same(name, width, show):
    kind = stills()[name]["kind"]
    larger = LARGER.get(kind, {})
    shown = show(as_stored(name), viewport={"width": width, "height": 1700})
    facts = shown.read(FACTS)
    sets = {value for one in facts["tight"] for value in one["sets"]} - COUNTED.get(kind, set())
    assert sets <= larger.keys(), [one for one in facts["tight"] if {*one["sets"]} - {*larger}][:3]
    assert all(one["sets"] or larger for one in facts["tight"]), facts["tight"][:3]
    for value in sets:
        assert any(name.startswith(larger[value]) for name in facts["large"]), value
