"""What a student's process is kept from, as far as one machine allows.

With bubblewrap (Linux) it sees Python and this package, read-only, and an empty folder of its own
in memory; no network, no other process, no file of the user; and when it ends, all that it
started ends. Without it, limits and a scratch folder remain. Memory, files and processes are
limited where the system knows `setrlimit`; time and what it answers, everywhere.
"""

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import cache
from io import BufferedIOBase
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu")
STARTING, SECONDS = 120.0, 20.0  # how long PyTorch's import and one exercise may take
LARGEST = 2**23  # bytes of a line that a student's process writes
MEMORY = 2 * 2**30  # bytes beyond those of PyTorch itself
FILE_SIZE, SCRATCH = 2**24, 2**27  # bytes: of one file; of all files, where they lie in memory
INSIDE = "/scratch"


class Stopped(Exception):
    """A student's process gives no further answer: "timed out" or "crashed", and a sentence."""


def answers(request: dict) -> Iterator[bytes]:
    """Start a student's process, hand it a request, and yield the lines that it writes.

    When the generator is closed, the process and all that it has started are ended.

    Raises:
        Stopped: there is no further line.
    """
    before = children()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch, asked, written = (Path(folder, name) for name in ("scratch", "asked", "written"))
        scratch.mkdir()
        asked.write_text(json.dumps(request))
        with asked.open("rb") as source, written.open("ab") as sink, written.open("rb") as file:
            process = subprocess.Popen(
                _command("-m", "transformer_lesson.grading.run_student"),
                **{"stdin": source, "stdout": sink, "stderr": subprocess.DEVNULL},
                **{"cwd": scratch, "env": _environment(scratch), "start_new_session": True},
            )
            try:
                yield from _lines(process, file)
            finally:
                _end(process, before)


def can_start() -> bool:
    """Return whether a student's process starts here at all, without anything of a student's."""
    with closing(answers({"names": []})) as lines, suppress(Stopped):
        return next(lines) == b"started\n"
    return False


def _lines(process: subprocess.Popen, file: BufferedIOBase) -> Iterator[bytes]:
    line, deadline = b"", time.monotonic() + STARTING
    while True:
        ended = process.poll() is not None  # asked before reading, so that nothing is missed
        line += file.readline(LARGEST)
        if len(line) >= LARGEST:
            raise Stopped("crashed", f"Its process sent more than {LARGEST:,} bytes.")
        if line.endswith(b"\n"):
            yield line
            line, deadline = b"", time.monotonic() + SECONDS
        elif ended:
            code = process.returncode
            raise Stopped("crashed", f"Its process ended by itself, with exit code {code}.")
        elif time.monotonic() > deadline:
            raise Stopped("timed out", f"Stopped after {SECONDS:.0f} seconds.")
        else:
            time.sleep(0.01)


def _command(*arguments: str, closed: bool | None = None) -> list[str]:
    """Return the command that starts Python, closed off by bubblewrap where that works."""
    python = [sys.executable, "-I", *arguments]  # -I: nothing from the user's own folders
    if not (is_closed() if closed is None else closed):
        return python
    seen = [*SYSTEM, sys.base_prefix, sys.prefix, str(PACKAGE)]
    return [
        *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *(word for path in seen for word in ("--ro-bind-try", path, path)),
        *("--size", str(SCRATCH), "--tmpfs", INSIDE, "--chdir", INSIDE, "--"),
        *python,
    ]


def _environment(scratch: Path) -> dict[str, str]:
    home = INSIDE if is_closed() else str(scratch)
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    folders = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP"), home)
    return {**kept, **folders, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}


@cache
def is_closed() -> bool:
    """Return whether bubblewrap is there and starts our Python; some systems forbid it."""
    trial = _command("-c", "import transformer_lesson.grading", closed=True)
    return (
        bool(shutil.which("bwrap")) and subprocess.run(trial, capture_output=True).returncode == 0
    )


def limit_this_process() -> None:
    """Limit memory, files and processes of this process and of all that it starts."""
    if sys.platform == "win32":  # no such limits there
        return
    import resource

    limits = {
        resource.RLIMIT_FSIZE: FILE_SIZE,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_CPU: 600,  # seconds
    }
    if sys.platform == "linux":
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        running = len(list(Path("/proc").glob("[0-9]*/task/*")))  # the limit counts threads
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + MEMORY
        limits[resource.RLIMIT_NPROC] = running + 64
    for kind, wanted in limits.items():
        allowed = resource.getrlimit(kind)[1]
        value = wanted if allowed == resource.RLIM_INFINITY else min(wanted, allowed)
        resource.setrlimit(kind, (value, value))


def adopt_orphans() -> None:
    """Make what a student's process leaves behind a child of this one (Linux)."""
    if sys.platform == "linux":
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def children() -> set[int]:
    """Return the processes that this one has started or adopted (Linux; elsewhere none)."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text().split()}


def _end(process: subprocess.Popen, before: set[int]) -> None:
    """End a student's process and, where the system shows them, all that it has started."""
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):  # where all of them have ended
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + 10  # against processes that go on starting others
    while (left := children() - before) and time.monotonic() < deadline:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
