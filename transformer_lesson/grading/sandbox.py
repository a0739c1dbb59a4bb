"""The isolation of a student's process, as far as one machine allows.

With bubblewrap (Linux) it sees Python and this package, read-only, and an empty in-memory folder;
no network, no other process, no file of the user; and when it ends, all that it started ends.
Without bubblewrap there are limits and a scratch folder, and on Linux a `reaper`, which ends the
processes it started. Memory, files and processes are limited if the system has `setrlimit`; time
and output always.
"""

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

from transformer_lesson.files import printable
from transformer_lesson.grading import reaper

PACKAGE = Path(__file__).resolve().parents[1]
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu")
STARTING, SECONDS = 120.0, 20.0  # time limits of PyTorch's import and of one exercise
LARGEST = 2**23  # bytes of a line that a student's process writes
MEMORY = 2 * 2**30  # bytes beyond PyTorch's own
FILE_SIZE, SCRATCH = 2**24, 2**27  # bytes: of one file; of all files, if kept in memory
INSIDE = "/scratch"

SO = "so a malicious notebook could read or delete your files"
INSTALL = "install bubblewrap (Linux: `sudo apt install bubblewrap`)"
REPAIR = "install the course again, with a Python that every user can read"
ALLOW = (
    "allow what it needs, user namespaces (Ubuntu, until the next start: `sudo sysctl "
    "kernel.apparmor_restrict_unprivileged_userns=0`; a container must be started with that right)"
)


class Stopped(Exception):
    """A student's process gives no further answer: "timed out" or "crashed", and a sentence."""


def answers(request: dict) -> Iterator[bytes]:
    """Start a student's process, send it a request, and yield the lines it writes.

    Closing the generator ends the process and everything it has started.

    Raises:
        Stopped: there is no further line.
    """
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        scratch, sent, written = (Path(folder, name) for name in ("scratch", "asked", "written"))
        scratch.mkdir()
        sent.write_text(json.dumps(request))
        with sent.open("rb") as source, written.open("ab") as sink, written.open("rb") as file:
            process = subprocess.Popen(
                _command("-m", "transformer_lesson.grading.run_student"),
                **{"stdin": source, "stdout": sink, "stderr": subprocess.DEVNULL},
                **{"cwd": scratch, "env": _environment(scratch), "start_new_session": True},
            )
            try:
                yield from _lines(process, file)
            finally:
                _end(process)


def can_start() -> bool:
    """Return whether a student's process can start here at all, without any student's code."""
    with closing(answers({"names": []})) as lines, suppress(Stopped):
        return next(lines) == b"started\n"
    return False


def _lines(process: subprocess.Popen, file: BufferedIOBase) -> Iterator[bytes]:
    line, deadline = b"", time.monotonic() + STARTING
    while True:
        ended = process.poll() is not None  # before reading, so that nothing is missed
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
    """Return the command that starts Python, inside bubblewrap where that works."""
    python = [sys.executable, "-I", *arguments]  # -I: nothing from the user's own folders
    if not (is_closed() if closed is None else closed):
        reaping = [*python[:2], "-m", reaper.__name__] if sys.platform == "linux" else []
        return [*reaping, *python]
    readable = [*SYSTEM, sys.base_prefix, sys.prefix, str(PACKAGE)]
    return [
        *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *(word for path in readable for word in ("--ro-bind-try", path, path)),
        *("--size", str(SCRATCH), "--tmpfs", INSIDE, "--chdir", INSIDE, "--"),
        *python,
    ]


def _environment(scratch: Path) -> dict[str, str]:
    home = INSIDE if is_closed() else str(scratch)
    variables = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    folders = dict.fromkeys(("HOME", "USERPROFILE", "TMPDIR", "TEMP"), home)
    return {**variables, **folders, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}


def is_closed() -> bool:
    """Return whether bubblewrap is there and starts our Python; some systems forbid it."""
    return why_open() is None


@cache
def why_open() -> str | None:
    """Return why there is no sandbox and what to do about it; `None` if bubblewrap works."""
    if not shutil.which("bwrap"):
        return f"Nothing here can lock notebooks in, {SO}: {INSTALL}"
    trial = _command("-c", "import transformer_lesson.grading", closed=True)
    tried = subprocess.run(trial, capture_output=True, text=True, errors="replace")
    if tried.returncode == 0:
        return None
    reason = printable((tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1])
    if reason.startswith("bwrap: execvp") or not reason.startswith("bwrap:"):
        return f"bubblewrap starts, but Python does not start in it ({reason}), {SO}: {REPAIR}"
    return (
        f"bubblewrap is installed, but the system does not let it start ({reason}), {SO}: {ALLOW}"
    )


def limit_this_process() -> None:
    """Limit the memory, files and processes of this process and its descendants."""
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


def _end(process: subprocess.Popen) -> None:
    """End a student's process and, where the system allows, only what it has started."""
    if sys.platform == "win32":
        process.kill()
    elif sys.platform == "linux" and not is_closed():
        process.terminate()  # the reaper ends the others, and then itself
        with suppress(subprocess.TimeoutExpired):
            process.wait(2 * reaper.SECONDS)
    if sys.platform == "darwin" or (sys.platform == "linux" and process.poll() is None):
        with suppress(ProcessLookupError, PermissionError):  # if all of them have ended
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
