"""The table of probes and patients: a number where a patient differs, and each probe's limit."""

from transformer_lesson.lessons.lesson_14 import figures
from transformer_lesson.lessons.lesson_14.probes import MEASURES
from transformer_lesson.lessons.lesson_14.sick_runs import FAULTS, HEALTHY, PATIENTS
from transformer_lesson.lessons.lesson_14.symptoms import IN_TABLE, LIKE, said, stored


def test_patients_of_a_kind_stand_together_and_each_is_there():
    rows = figures.by_kind()
    assert sorted(rows) == sorted(PATIENTS)
    kinds = [FAULTS[one].kind for one in rows]
    assert kinds == sorted(kinds, key=figures.KINDS.index)


def test_each_number_that_differs_is_written_and_no_other():
    (axes,) = figures.blind_spots("what they see").axes
    rows, columns = [HEALTHY, *figures.by_kind()], list(figures.seen())
    assert sorted(columns) == sorted(MEASURES)
    written = {text.get_position(): text.get_text() for text in axes.texts}
    for row, name in enumerate(rows):
        for column, probe in enumerate(columns):
            seeds = IN_TABLE if name != HEALTHY else ()
            differ = sum(said(probe, name, seed) != LIKE for seed in seeds)
            assert ((column, row) in written) == (name == HEALTHY or differ > 0)
            if 0 < differ < 3:
                assert written[column, row] == f"{differ} of 3"
            elif differ or name == HEALTHY:
                value = stored()[name]["probes"][probe]
                number = f"{value:.{MEASURES[probe].digits}f}"
                if name == HEALTHY:
                    number += f"\n±{MEASURES[probe].near:g}"
                    number = "0.55 to\n0.81" if probe == "another seed" else number
                assert written[column, row] == number
