"""Make .venv ready (no argument), or open the course from it (`lab` and flags for JupyterLab).

The Makefile calls both. Standard library only: the first runs before anything is installed.
"""

import fcntl
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed-for"  # what the finished install was made from
UNFINISHED = VENV / "install-unfinished"  # there while files are being copied into .venv
MADE_FROM = (  # the last are JupyterLab's settings for the course; pyproject.toml installs them
    "requirements.txt",
    "pyproject.toml",
    "tools/setup.py",
    "tools/jupyterlab/transformer_lesson.json5",
)
OLDEST_PIP = (21, 3)  # the first that installs a pyproject.toml package as editable


def fingerprint() -> str:
    """A new value when a file of the set-up changes, or the folder was moved or renamed."""
    parts = [*((ROOT / file).read_bytes() for file in MADE_FROM), os.fsencode(ROOT)]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


def answer(*command: str) -> str | None:
    """What .venv's Python prints, or None where it is missing or fails."""
    try:
        run = subprocess.run([VENV_PYTHON, *command], capture_output=True, text=True)
    except OSError:
        return None
    return run.stdout.strip() if run.returncode == 0 else None


def make_venv() -> None:
    made = subprocess.run([sys.executable, "-m", "venv", "--clear", VENV])
    if made.returncode != 0:
        version = "{}.{}".format(*sys.version_info)
        sys.exit(
            f"Python {version} could not make .venv: on Debian or Ubuntu run "
            f"`sudo apt install python{version}-venv` and try again; elsewhere look at the error "
            "above, or name another Python, as in: make lab PYTHON=python3.12"
        )


def check_venv() -> None:
    """Stop where .venv works but its Python or its pip is too old."""
    version = answer("-c", "import sys; print('%d.%d' % sys.version_info[:2])")
    if tuple(map(int, version.split("."))) < (3, 11):
        sys.exit(f".venv holds Python {version}, too old: run `make clean`, then this again.")
    pip = answer("-m", "pip", "--version").split()[1]
    if tuple(map(int, pip.split(".")[:2])) < OLDEST_PIP:
        sys.exit(
            f".venv holds pip {pip}, too old to install this course: run "
            "`.venv/bin/python -m pip install --upgrade pip`, then this again."
        )


def install() -> None:
    environment = {
        **os.environ,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_USER": "0",  # a user's own setting of it fails in a .venv
        "PYTHONWARNINGS": "ignore",  # some pips alarm about every editable install
    }
    repeated = ["--quiet"] if STAMP.exists() else []  # no list of 170 packages already there
    requirements = [*repeated, "-r", "requirements.txt"]
    package = ["--quiet", "--no-deps", "--no-build-isolation", "-e", "."]
    UNFINISHED.touch()
    for what in (requirements, package):
        command = [VENV_PYTHON, "-m", "pip", "install", *what]
        status = subprocess.run(command, cwd=ROOT, env=environment).returncode
        if status > 0:
            UNFINISHED.unlink()  # pip stopped in order; a killed one (below 0) leaves half a file
        if status != 0:
            sys.exit(
                "The packages could not be installed: look at the last lines above (no network and "
                "a full disk are the usual reasons), then run this again; it goes on from there."
            )
    # matplotlib lists the fonts once per user; done here, no lesson shows a warning about it
    subprocess.run([VENV_PYTHON, "-c", "import matplotlib.font_manager"], check=True)
    UNFINISHED.unlink()


def is_finished() -> bool:
    """Whether .venv was made, to the end, from the lists that are here now."""
    stamped = STAMP.exists() and STAMP.read_text() == fingerprint()
    return stamped and not UNFINISHED.exists() and VENV_PYTHON.exists()


def set_up() -> None:
    if is_finished():
        return
    wanted = fingerprint()
    if UNFINISHED.exists() or answer("-m", "pip", "--version") is None:
        if VENV.exists():
            print("The .venv found here is not whole (an interrupted set-up?): making it anew.")
        make_venv()
    check_venv()
    print("Installing the course into .venv: minutes and about 2 GB the first time.", flush=True)
    install()
    STAMP.write_text(wanted)


def open_lab(flags: list[str]) -> int:
    command = [VENV_PYTHON, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}"]
    command.append("--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb")
    if os.geteuid() == 0:  # a container: JupyterLab refuses root unless told
        command.append("--allow-root")
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is JupyterLab's: it asks and then stops
    status = subprocess.run([*command, *flags], cwd=ROOT).returncode
    if status != 0:
        print(
            "JupyterLab stopped with an error: look at its last lines above; if its port is taken, "
            "choose another, as in: make lab LAB_FLAGS=--port=9000",
            file=sys.stderr,
        )
    return status


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["lab"]:
        return open_lab(arguments[1:])
    if not os.access(ROOT, os.W_OK):
        if is_finished():
            return 0
        sys.exit(
            f"{ROOT} cannot be written to, and the set-up makes .venv there: copy the course to a "
            "folder that is yours and run this there."
        )
    with open(ROOT / ".setup.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Another set-up is running in this folder: waiting for it.", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        set_up()
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
