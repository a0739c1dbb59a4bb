"""The table for Canvas or Moodle: each student's own points, and nothing else changed."""

import csv
import io
from pathlib import Path

import pytest

from tests.grading.handed_in import notebook
from transformer_lesson.exercises import Report
from transformer_lesson.grading import __main__ as command
from transformer_lesson.grading import gradebook
from transformer_lesson.grading.folder import Row, Submission, find_submissions
from transformer_lesson.grading.gradebook import Unusable, read_roster, write_gradebook

NAMES = gradebook.LESSONS["05"][1:]
CANVAS = """Student,ID,SIS User ID,SIS Login ID,Section,Lesson 05 (991),Quiz (992),Current Score
,,,,,Manual Posting,,
    Points Possible,,,,,30,5,(read only)
"Berg, Anna",101,s1,anna@uni.example,A,7,3,50
"Müller, Ben",102,s2,bmueller@uni.example,A,8,,
"Lee, Kim",103,s3,kim@uni.example,A,,,
"Lee, Kim",104,s4,kim2@uni.example,B,,,
"=1+1, Eve",105,s5,eve@uni.example,B,,,
"""
MOODLE = """First name,Last name,ID number,Email address,Assignment: Lesson 05 (Real),Other (Real)
Anna,Berg,1,anna@uni.example,-,9
Ben,Müller,2,ben@uni.example,1,8
Kim,Lee,3,kim@uni.example,-,7
Kim,Lee,4,lee@uni.example,-,6
"""


def handed_in(student: str, *statuses: str, lesson: str = "05", file: str = "a.ipynb") -> list[Row]:
    submission = Submission(student, Path(student, file), bytes)
    return [
        Row(submission, lesson, Report(name, status))
        for name, status in zip(NAMES, statuses, strict=False)
    ]


def written(tmp_path, roster: str, *graded: list[Row]) -> tuple[list[dict], list[str]]:
    (tmp_path / "roster.csv").write_text(roster, "utf-8")
    read = read_roster(tmp_path / "roster.csv")
    said = [*write_gradebook([row for rows in graded for row in rows], read, tmp_path)]
    text = (tmp_path / ("canvas.csv" if read.canvas else "moodle.csv")).read_text("utf-8")
    return [*csv.DictReader(io.StringIO(text), delimiter=read.separator)], said[1:]


def test_canvas_gets_its_own_columns_back_with_points_in_its_own_units(tmp_path):
    assert len(NAMES) == 3
    rows, said = written(
        tmp_path,
        CANVAS,
        handed_in("berganna_101", "passed", "failed", "passed"),
        handed_in("bmueller", "passed", "passed", "timed out"),
        handed_in("eve", "passed", "passed", "passed"),
        handed_in("eve", "passed", lesson="07", file="b.ipynb"),
    )
    known, new = "Lesson 05 (991)", "Lesson 07 " + gradebook.LESSONS["07"][0]
    assert [*rows[0]] == [*"Student,ID,SIS User ID,SIS Login ID,Section".split(","), known, new]
    assert [row[known] for row in rows] == ["Manual Posting", "30", "20", "20", "", "", "30"]
    assert [row[new] for row in rows] == ["", "3", "", "", "", "", "1"]
    exported = [*csv.DictReader(io.StringIO(CANVAS))]
    for name in rows[0].keys() - {known, new}:  # formulas and all: Canvas looks for just these
        assert [row[name] for row in rows] == [row[name] for row in exported]
    assert said == []


def test_moodle_gets_both_columns_for_those_who_have_points(tmp_path):
    rows, said = written(
        tmp_path,
        MOODLE.replace(",", ";"),
        handed_in("Ben Müller_345678", "passed", "failed", "failed"),
        handed_in("anna", "passed", "passed", "passed"),
    )
    anna, ben = rows
    kept = ["First name", "Last name", "ID number", "Email address"]
    pair = ["Assignment: Lesson 05 (Real)", "Assignment: Lesson 05 (Feedback)"]
    assert [*anna] == [*kept, *pair]
    assert (anna["ID number"], anna[pair[0]]) == ("1", "3")
    assert (ben["ID number"], ben[pair[0]]) == ("2", "1")
    assert ben[pair[1]].startswith(f"1 of 3. {NAMES[0]}: passed; {NAMES[1]}: failed")
    assert said == []


@pytest.mark.parametrize("roster", [CANVAS, MOODLE])
def test_nobody_gets_the_grade_of_another(tmp_path, roster):
    strangers = ("Anna", "Anna Bergmann", "berganna_999", "x_101", "101_x", "Points Possible", "-")
    graded = [handed_in(name, "passed") for name in (*strangers, "Kim Lee", "Kim Lee_7")]
    graded += [handed_in("Berg Anna", "passed"), handed_in("anna@uni.example", "passed")]
    rows, said = written(tmp_path, roster, *graded)
    left_out = [line.partition(" is left out")[0] for line in said]
    assert {*left_out} == {gradebook.plain(rows[0].submission.student) for rows in graded}
    exported = [*csv.DictReader(io.StringIO(roster))]
    column = "Lesson 05 (991)"  # Moodle's table has nobody
    assert [row[column] for row in rows] == (
        [] if roster == MOODLE else [r[column] for r in exported]
    )


def test_what_canvas_delivered_needs_both_its_name_and_its_number(tmp_path):
    others = ("berganna_999", "berganna_102", "mllerben_104", "x_105")
    both = ("leekim_104", "mllerben_102")  # one of two people of that name; Canvas drops the umlaut
    rows, said = written(tmp_path, CANVAS, *(handed_in(one, "passed") for one in others + both))
    assert [row["Lesson 05 (991)"] for row in rows][2:] == ["7", "10", "", "10", ""]
    assert [line.partition(" is left out")[0] for line in said] == sorted(others)


def test_what_the_teacher_decides_stays_as_it_was_exported(tmp_path):
    rows, said = written(
        tmp_path,
        CANVAS,
        handed_in("bmueller", "passed", "imported", "passed"),
        handed_in("anna", "passed"),
        handed_in("anna", "failed", file="b.ipynb"),
        [Row(Submission("eve", Path("eve.pdf"), bytes), "", Report("", "unreadable", "A pdf."))],
    )
    column = [row["Lesson 05 (991)"] for row in rows]
    assert column == ["Manual Posting", "30", "7", "8", "", "", ""]
    assert f"an imported {NAMES[1]}" in said[0] and "several notebooks" in said[1]
    assert "eve, a file: no points" in said[2] and len(said) == 3


def test_a_hunt_counts_the_bugs_that_were_planted(tmp_path):
    planted = [name for name, _ in gradebook.planted_bugs(7)]
    submission = Submission("anna", Path("hunt.ipynb"), bytes)
    states = [*zip(planted, ("passed", "failed", "passed"), strict=True), ("another", "failed")]
    graded = [Row(submission, "hunt 7", Report(name, status)) for name, status in states]
    rows, _ = written(tmp_path, CANVAS, graded)
    assert [row["Bug hunt"] for row in rows] == ["", "3", "2", "", "", "", ""]


def test_what_is_no_gradebook_gets_one_sentence(tmp_path):
    for text, said in {
        "": "no gradebook",
        "name,points\nanna,3\n": "no gradebook",
        "Student,ID,Section,Quiz,Quiz\n": "two columns 'Quiz'",
    }.items():
        (tmp_path / "roster.csv").write_text(text)
        with pytest.raises(Unusable, match=said):
            read_roster(tmp_path / "roster.csv")
    with pytest.raises(Unusable, match="cannot be read"):
        read_roster(tmp_path)
    twice = CANVAS.replace("Quiz (992)", "Lesson 05 again (993)")
    with pytest.raises(Unusable, match=r"Is Lesson 05 'Lesson 05 \(991\)' or 'Lesson 05 a"):
        written(tmp_path, twice, handed_in("anna", "passed"))


def test_the_folder_of_feedback_is_nobodys(tmp_path):
    (tmp_path / "feedback").mkdir()
    (tmp_path / "feedback/anna.md").write_text("")
    assert find_submissions(tmp_path) == []
    (tmp_path / "feedback/a.ipynb").write_text("")  # a student of that name
    assert [one.student for one in find_submissions(tmp_path)] == ["feedback"]


@pytest.mark.slow
def test_the_command_writes_table_and_feedback(tmp_path, monkeypatch, closed_sandbox, capsys):
    failed = Report(NAMES[0], "failed", "Its row 0.123 is 1234.", "a mistake")
    monkeypatch.setattr(command, "grade", lambda cells, lesson: [failed])
    folder, roster = tmp_path / "in", tmp_path / "roster.csv"
    for name in ("anna", "ANNA", "a:b", "a?b", "x" * 200):
        (folder / name).mkdir(parents=True)
        (folder / name / "a.ipynb").write_text(notebook("1", title="# 05 · Add & norm"))
    roster.write_text("name\n")
    assert command.main([str(folder), "--roster", str(roster)]) == 1
    assert not (folder / "grades.csv").exists(), "first of all it is looked at"
    roster.write_text(CANVAS)
    for _ in range(2):  # the second time there is feedback in the folder
        assert command.main([str(folder), "--roster", str(roster)]) == 0
        assert "0 of 5 students are in the gradebook" in capsys.readouterr().out
    files = {one.name: one.read_text("utf-8") for one in (folder / "feedback").iterdir()}
    expected = {"ANNA.md", "anna (2).md", "a_b.md", "a_b (2).md", f"{'x' * 60}.md"}
    assert {*files} == expected
    for text in files.values():
        assert f"`{NAMES[0]}`: failed: a mistake" in text and "    Its row … is …." in text
