"""Install one of the lists into .venv: `python -m tools.setup requirements-lab.txt`.

The Makefile calls this when a list is new. It does what Make cannot: use uv if there is one and pip
otherwise, continue after an interrupt or a full disk, wait for another set-up of this folder.
Standard library only, because it runs before anything is installed.
"""

import ast
import fcntl
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LISTS = ("requirements-lab.txt", "requirements.txt")  # the second holds each line of the first
HOME = VENV / "made-in"  # the folder in which .venv was finished
UNFINISHED = VENV / "install-unfinished"  # there while files are being copied into .venv
ENVIRONMENT = {
    **os.environ,
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PIP_USER": "0",  # a user's own setting of it fails in a .venv
    "PYTHONWARNINGS": "ignore",  # some pips warn about every editable install
    # left to the first import, unless Python may not write bytecode
    "UV_COMPILE_BYTECODE": "1" if os.environ.get("PYTHONDONTWRITEBYTECODE") else "0",
    "UV_COMPILE_BYTECODE_TIMEOUT": "3600",  # seconds a file; a busy machine may need some
}


def refusal(system: str, machine: str, macos: str, glibc: str) -> str:
    """What to do on a system for which PyTorch has no packages; empty if it has some.

    Args:
        system, machine: as `platform` names them.
        macos, glibc: their versions, or empty.
    """
    old = tuple(map(int, (macos or "99").split(".")[:1])) < (14,)
    libc = tuple(map(int, (glibc or "0").split(".")[:2])) >= (2, 28)
    elsewhere = "use Linux, in a codespace for example"
    wrong = {
        "Darwin": (
            f"Intel Macs: on Apple silicon install a Python from python.org; else {elsewhere}"
            if machine != "arm64"
            else f"macOS {macos}: update to macOS 14 or newer, or {elsewhere}" * old
        ),
        "Linux": (
            f"Linux on {machine}: take a 64-bit machine, x86 or ARM"
            if machine not in ("x86_64", "aarch64")
            else "a Linux without glibc 2.28: take a newer Debian, Ubuntu or Fedora" * (not libc)
        ),
    }.get(system, "")
    return wrong and f"PyTorch has no package for {wrong}."


def works(*command: str | Path, **environment: str) -> bool:
    """Whether a command succeeds; its output is not shown."""
    try:
        run = subprocess.run(
            command, cwd=ROOT, env={**ENVIRONMENT, **environment}, capture_output=True
        )
    except OSError:
        return False
    return run.returncode == 0


def make_venv() -> None:
    if subprocess.run([sys.executable, "-m", "venv", "--clear", VENV]).returncode != 0:
        version = "{}.{}".format(*sys.version_info)
        sys.exit(
            f"Python {version} could not make .venv: on Debian or Ubuntu run "
            f"`sudo apt install python{version}-venv` and try again; elsewhere look at the error "
            "above, or name another Python, as in: make lab PYTHON=python3.12"
        )


def find_uv() -> list[str | Path]:
    """The command for uv, the user's own or one put into .venv; empty if there is none."""
    if works("uv", "--version"):
        return ["uv"]
    into_venv = [PYTHON, "-m", "pip", "install", "--constraint", LISTS[-1], "uv"]
    return [PYTHON, "-m", "uv"] if works(*into_venv) else []


def pip_settings() -> dict[str, str]:
    """Where pip's own files and PIP_ variables say to look for packages, as uv's variables.

    Variables, because an index's address may hold a password, and command lines are public.
    """
    listed = subprocess.run(
        [PYTHON, "-m", "pip", "config", "list"], env=ENVIRONMENT, capture_output=True, text=True
    )
    lines = [line.partition("=") for line in listed.stdout.splitlines()]
    settings = {}
    for section in ("global.", "install.", ":env:."):  # a later one overrides an earlier one
        for name, _, value in lines:
            if name.startswith(section):
                settings[name.removeprefix(section)] = ast.literal_eval(value).split()
    variables = {}
    for name, variable in (
        ("index-url", "UV_DEFAULT_INDEX"),
        ("extra-index-url", "UV_INDEX"),
        ("find-links", "UV_FIND_LINKS"),
    ):
        if name in settings:
            variables[variable] = " ".join(settings[name])
    if settings.get("no-index", ["0"])[0].lower() in ("1", "true", "yes", "on"):
        variables["UV_NO_INDEX"] = "1"
    if "extra-index-url" in settings:
        variables["UV_INDEX_STRATEGY"] = "unsafe-best-match"  # to pip all indexes are equal
    return variables


def uv_install(requirements: str) -> list[str | Path]:
    """The command with which uv installs; empty if there is no uv."""
    uv = find_uv()
    if not uv:
        return []
    ENVIRONMENT.update(pip_settings())
    command = [*uv, "pip", "install", "--python", PYTHON]
    # The build of PyTorch for the card that is there, or for none, if its index can be reached.
    auto = ["--torch-backend", "auto"]
    (torch,) = re.findall(r"^torch==\S+", (ROOT / requirements).read_text(), re.MULTILINE)
    reached = works(*command, *auto, "--dry-run", "--reinstall", torch, UV_HTTP_RETRIES="0")
    return command + auto if reached else command


def packages_changed_at() -> int:
    """A number that changes whenever a package is added to .venv or removed."""
    (packages,) = VENV.glob("lib/python*/site-packages")
    return packages.stat().st_mtime_ns


def install(requirements: str) -> None:
    UNFINISHED.touch()
    quiet = ["--quiet"] if HOME.exists() else []  # no list of 150 packages already there
    steps = (
        [*quiet, "-r", requirements],
        ["--quiet", "--no-deps", "--no-build-isolation", "-e", "."],
    )
    ways = [uv_install(requirements), [PYTHON, "-m", "pip", "install"]]
    before = packages_changed_at()
    for command in filter(None, ways):
        runs = (subprocess.run([*command, *step], cwd=ROOT, env=ENVIRONMENT) for step in steps)
        if all(run.returncode == 0 for run in runs):
            break
        if packages_changed_at() != before:
            sys.exit(FAILED)  # .venv may hold half a package: the next set-up recreates it
    else:
        UNFINISHED.unlink()
        sys.exit(FAILED)
    # matplotlib lists the fonts once per user; done here, no lesson shows a warning about it
    subprocess.run([PYTHON, "-c", "import matplotlib.font_manager"], check=True)


FAILED = (
    "The packages could not be installed: look at the last lines above (no network and a full disk "
    "are the usual reasons), then run this again."
)


def set_up(requirements: str) -> None:
    libc, version = platform.libc_ver()
    glibc = version if libc == "glibc" else ""
    if reason := refusal(platform.system(), platform.machine(), platform.mac_ver()[0], glibc):
        sys.exit(reason)
    if UNFINISHED.exists() or not works(PYTHON, "-m", "pip", "--version"):
        if VENV.exists():
            print("The .venv here is incomplete (an interrupted set-up?): making a new one.")
        make_venv()
    supported = "import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))"
    if not works(PYTHON, "-c", supported):
        sys.exit(
            ".venv holds a Python that is too old or too new: run `make clean`, then this again."
        )
    print("Installing the course into .venv: may take minutes and 2 GB at first.", flush=True)
    install(requirements)
    for name in LISTS[: LISTS.index(requirements) + 1]:
        (VENV / name).touch()  # Make compares its time with that of the list
    HOME.write_text(f"{ROOT}\n")
    UNFINISHED.unlink()


def main(requirements: str) -> None:
    try:
        lock = open(ROOT / ".setup.lock", "w")
    except OSError as error:
        sys.exit(
            f"The set-up makes .venv in {ROOT} and cannot write there ({error.strerror}): copy the "
            "course to a folder of your own and run this there."
        )
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is running in this folder: waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        set_up(requirements)


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except KeyboardInterrupt:
        sys.exit(130)
