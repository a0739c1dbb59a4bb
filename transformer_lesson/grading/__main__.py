"""Grade a folder: `transformer-lesson grade folder`; with 03 behind it, only one lesson.

If students also hand in their progress files, a second table shows the class's gain. With a roster,
the gradebook that Canvas or Moodle exports, a table that it imports is written, too.

Notebooks that cannot be sandboxed run only with `--unconfined`.
"""

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from transformer_lesson.exercises.engine.catalog import LESSONS
from transformer_lesson.exercises.engine.checks import one_thread
from transformer_lesson.exercises.engine.reports import Report
from transformer_lesson.grading import folder as handed_in
from transformer_lesson.grading import sandbox
from transformer_lesson.grading.archives import Unreadable
from transformer_lesson.grading.class_gain import write_gains
from transformer_lesson.grading.feedback import write_feedback
from transformer_lesson.grading.gradebook import Unusable, read_roster, write_gradebook
from transformer_lesson.grading.judge import grade, grade_hunt

UNCONFINED = (
    "or run them unconfined, best as a separate user or in a container, with "
    "`transformer-lesson grade --unconfined` (`make grade GRADE_FLAGS=--unconfined`)."
)


class OneSentence(argparse.ArgumentParser):
    """A parser whose errors are one sentence."""

    def error(self, message: str) -> None:
        """Exit with a sentence."""
        self.exit(1, f"{message.capitalize()}: give a folder and, if you like, one lesson.\n")


def rows(submissions: list[handed_in.Submission], lesson: str) -> Iterator[handed_in.Row]:
    """Yield one row per exercise of each notebook of a lesson, or of all lessons if it is ""."""
    for submission in tqdm(submissions, unit="notebook", ascii=True):
        try:
            of_lesson, cells, prose = handed_in.read(submission, lesson)
        except Unreadable as error:
            yield handed_in.Row(submission, "", Report("", "unreadable", str(error)))
            continue
        if of_lesson.startswith(lesson):
            hunt = handed_in.HUNT.fullmatch(of_lesson)
            reports = grade_hunt(cells, int(hunt[1])) if hunt else grade(cells, of_lesson)
            for report in reports:
                yield handed_in.Row(submission, of_lesson, handed_in.with_prose(report, prose))


def refusal(folder: str, lesson: str, unconfined: bool) -> str | None:
    """Return why nothing can be graded, in a sentence, or `None`."""
    if not folder or not Path(folder).is_dir():
        return f"{folder!r} is not a folder: give the one with the notebooks."
    if lesson and lesson not in LESSONS and not handed_in.HUNT.fullmatch(lesson):
        return f"There is no lesson {lesson!r}: give two digits, 00 to 17."
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return f"{folder} cannot be read and written: copy the notebooks to a folder of your own."
    if not unconfined and (reason := sandbox.why_open()):
        return f"{reason}, {UNCONFINED}"
    if not sandbox.can_start():
        return (
            "A notebook's process cannot start: install the course again, and free 2 GB of memory."
        )
    return None


def main(arguments: list[str]) -> int:
    """Grade a folder, write its tables and the feedback there, and print a summary."""
    parser = OneSentence(prog="transformer-lesson grade", description=__doc__)
    parser.add_argument("folder", help="with the students' notebooks")
    parser.add_argument("lesson", nargs="?", default="", help="two digits; all lessons without it")
    parser.add_argument("--roster", type=Path, help="the gradebook of Canvas or Moodle")
    parser.add_argument("--unconfined", action="store_true", help="run what can't be locked in")
    chosen = parser.parse_args(arguments)
    refused = refusal(chosen.folder, chosen.lesson, chosen.unconfined)
    if refused:
        print(refused)
        return 1
    try:
        roster = chosen.roster and read_roster(chosen.roster)
    except Unusable as error:
        print(error)
        return 1
    folder = Path(chosen.folder).resolve()
    submissions = handed_in.find_submissions(folder)
    with one_thread():  # as in the students' processes, for equal rounding
        graded = list(rows(submissions, chosen.lesson))
    if chosen.lesson:
        graded += handed_in.missing(graded, submissions, chosen.lesson)
    counts = Counter(row.report.status for row in graded)
    sentence = ", ".join(f"{count} {status}" for status, count in counts.most_common())
    try:
        place = handed_in.write_grades(graded, folder)
        print(f"{place}: {sentence or 'nothing was handed in'}.")
        print(f"{write_feedback(graded, folder)}: a file for each student.")
        if roster:
            print(*write_gradebook(graded, roster, folder), sep="\n")
        if gained := write_gains(folder):
            print(gained)
    except Unusable as error:
        print(error)
        return 1
    except OSError as error:  # the table is open in a spreadsheet, or the disk is full
        print(f"{error.strerror}, or close the table where it is open, and grade again.")
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
