"""Ends all processes that a program has started, if there is no bubblewrap to do so (Linux).

`python -m transformer_lesson.grading.reaper PROGRAM ...` runs a program and returns its exit code.
Every process the program leaves behind, in any session, becomes a child of this one, which ends it
when the program ends, at SIGTERM, or when this process's parent is gone. It has no other children,
so it never ends a process that is not the program's.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

DEATH_SIGNAL, CHILD_SUBREAPER = 1, 36  # prctl's numbers
SECONDS = 10.0  # time limit, as children may keep starting others


def main(command: list[str]) -> int:
    """Run a program, then end the processes it has left behind."""
    prctl = ctypes.CDLL(None).prctl
    prctl(CHILD_SUBREAPER, 1, 0, 0, 0)
    prctl(DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        code = subprocess.Popen(command, start_new_session=True).wait()
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_children()
    return code if code >= 0 else 128 - code


def end_children() -> None:
    """End every child, and those orphaned by that, until there is none."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children")
    deadline = time.monotonic() + SECONDS
    with suppress(ChildProcessError):  # none is left
        while time.monotonic() < deadline:
            for pid in map(int, listed.read_text().split()):
                os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
