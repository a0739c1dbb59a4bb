"""What a student's process is kept from, as far as one machine allows.

With bubblewrap (Linux) it sees Python and this package, read-only, and an empty folder of its own
in memory; no network, no other process, no file of the user; and when it ends, all that it
started ends. Without it, limits and a scratch folder remain. Memory, files and processes are
limited where the system knows `setrlimit`; time, by the judge, everywhere.
"""

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
SYSTEM = ("/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/sys/devices/system/cpu")
MEMORY = 2 * 2**30  # bytes beyond those of PyTorch itself
FILE_SIZE, SCRATCH = 2**24, 2**27  # bytes: of one file; of all files, where they lie in memory
PROCESSES, OPEN_FILES, CPU_SECONDS = 64, 256, 600
INSIDE = "/scratch"


def start(scratch: Path) -> subprocess.Popen:
    """Start a student's process in a scratch folder, with pipes to and from it."""
    closed = is_closed()
    home = INSIDE if closed else str(scratch)
    return subprocess.Popen(
        [*(_bubblewrap() if closed else ()), *_python("-m", "transformer_lesson.grading.student")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        cwd=scratch,
        env=_environment(home),
        start_new_session=True,
    )


def _python(*arguments: str) -> list[str]:
    return [sys.executable, "-I", *arguments]  # -I: nothing from the user's own folders


def _environment(home: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    folders = {name: home for name in ("HOME", "USERPROFILE", "TMPDIR", "TEMP", "MPLCONFIGDIR")}
    progress = os.path.join(home, "my_progress.json")
    return {
        **kept,
        **folders,
        "TRANSFORMER_LESSON_PROGRESS": progress,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "MPLBACKEND": "agg",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _bubblewrap() -> list[str]:
    """Return the command that closes off what comes after it."""
    seen = [*SYSTEM, sys.base_prefix, sys.prefix, str(PACKAGE)]
    return [
        *("bwrap", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL"),
        *("--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"),
        *(word for path in seen for word in ("--ro-bind-try", path, path)),
        *("--size", str(SCRATCH), "--tmpfs", INSIDE, "--chdir", INSIDE, "--"),
    ]


@cache
def is_closed() -> bool:
    """Return whether bubblewrap is there and starts our Python; some systems forbid it."""
    if shutil.which("bwrap") is None:
        return False
    trial = [*_bubblewrap(), *_python("-c", "import transformer_lesson.grading")]
    return subprocess.run(trial, capture_output=True, env=_environment(INSIDE)).returncode == 0


def limit_this_process() -> None:
    """Limit memory, files and processes of this process and of all that it starts."""
    if sys.platform == "win32":  # no such limits there
        return
    import resource

    limits = {
        resource.RLIMIT_FSIZE: FILE_SIZE,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_CPU: CPU_SECONDS,
    }
    if Path("/proc/self/statm").exists():
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limits[resource.RLIMIT_AS] = pages * resource.getpagesize() + MEMORY
        limits[resource.RLIMIT_NPROC] = _my_threads() + PROCESSES
    for kind, wanted in limits.items():
        allowed = resource.getrlimit(kind)[1]
        value = wanted if allowed == resource.RLIM_INFINITY else min(wanted, allowed)
        resource.setrlimit(kind, (value, value))


def _my_threads() -> int:
    """Return how many threads this user runs: the limit of processes counts them all."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == os.getuid():
                count += sum(1 for _ in (process / "task").iterdir())
        except OSError:  # it has ended
            continue
    return count


def adopt_orphans() -> None:
    """Make what a student's process leaves behind a child of this one (Linux)."""
    if sys.platform == "linux":
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def children() -> set[int]:
    """Return the processes that this one has started or adopted (Linux; elsewhere none)."""
    lists = Path("/proc/self/task").glob("*/children")
    return {int(pid) for one in lists for pid in one.read_text().split()}


def end(process: subprocess.Popen, before: set[int], seconds: float = 10.0) -> None:
    """End a student's process and, where the system shows them, all that it has started.

    Args:
        process: from `start`.
        before: `children()` before the start; these stay.
        seconds: how long to go on against processes that start others.
    """
    if sys.platform == "win32":
        process.kill()
    else:
        with suppress(ProcessLookupError):  # where all of them have ended
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    deadline = time.monotonic() + seconds
    while (left := children() - before) and time.monotonic() < deadline:
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        for pid in left:
            os.waitpid(pid, 0)
