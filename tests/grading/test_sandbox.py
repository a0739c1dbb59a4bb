"""The sandbox ends what a student's process has started, and nobody else's; why it is open."""

import os
import re
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from transformer_lesson.grading import sandbox

pytestmark = pytest.mark.slow
ORPHANS = """
import os, sys, time
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        os.execvp("sleep", ["sleep", sys.argv[2]])
print("started", flush=True)
time.sleep(int(sys.argv[1]))
"""


def command_lines() -> list[bytes]:
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(process.read_bytes())
        except OSError:  # it has ended
            continue
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="a reaper needs Linux")
@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize("seconds", ["0", "1000"])
def test_only_what_a_student_started_is_ended(monkeypatch, closed, seconds):
    """Beside a thread that starts processes all the time, also such as end after ours."""
    if closed and not sandbox.is_closed():
        pytest.skip("bubblewrap is missing or forbidden")
    mark = f"86400.{os.getpid()}"
    command = sandbox._command("-c", ORPHANS, seconds, mark, closed=closed)
    monkeypatch.setattr(sandbox, "is_closed", lambda: closed)
    monkeypatch.setattr(sandbox, "_command", lambda *words: command)
    bystanders, codes, done = [], [], threading.Event()

    def start_others() -> None:
        while not done.is_set():
            bystanders.append(subprocess.Popen(["sh", "-c", "sleep 0.2; exit 7"]))
            pid = os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", "exit 9")
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))

    other = threading.Thread(target=start_others)
    other.start()
    for _ in range(3):
        with closing(sandbox.answers({})) as lines:
            assert next(lines) == b"started\n"
            if seconds == "0":
                with pytest.raises(sandbox.Stopped, match="exit code 0"):
                    next(lines)
    done.set()
    other.join()
    assert {one.wait() for one in bystanders} == {7} and set(codes) == {9}
    assert not any(mark.encode() in line for line in command_lines())


@pytest.mark.parametrize(
    ("which", "ended", "said"),
    [
        (None, None, "Nothing here can lock notebooks in, so .*: install bubblewrap"),
        ("bwrap", "bwrap: setting up uid map: Permission", "is installed, .* start .*uid map"),
        ("bwrap", "Traceback\nModuleNotFoundError: x", "Python does not start in it .ModuleNotF"),
        ("bwrap", "", "start in it .exit code 1"),
    ],
)
def test_why_nothing_is_locked_in_is_said_as_it_is(monkeypatch, which, ended, said):
    failed = subprocess.CompletedProcess([], 1, "", ended)
    monkeypatch.setattr(sandbox.shutil, "which", lambda name: which)
    monkeypatch.setattr(sandbox.subprocess, "run", lambda *words, **options: failed)
    sentence = sandbox.why_open.__wrapped__()
    assert re.search(said, sentence) and "\n" not in sentence, sentence
