"""Writing files whole or not at all, and making text from anywhere safe to show."""

import errno
import glob
import os
import stat
import threading
import time
from pathlib import Path

JOINERS = "\u200c\u200d"  # they hold emoji and Persian words together


def printable(text: str, longest: int | None = None, keep: str = "") -> str:
    r"""Escape what cannot be seen: a null byte as `\x00`, half a surrogate pair as `\ud83d`.

    The result reverses no line, moves no cursor and can be sent as UTF-8.

    Args:
        text: anything.
        longest: characters that the result may have; more are cut off with "…".
        keep: characters that stay as they are, such as a line break.
    """
    unescaped = JOINERS + keep
    shown = "".join(
        c if c.isprintable() or c in unescaped else c.encode("unicode_escape").decode()
        for c in (text if longest is None else text[: longest + 1])
    )
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1] + "…"


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
ABANDONED = 600  # seconds without a byte after which nobody is writing a file any more


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file whole or not at all, even if the power fails.

    On return the disk has the file under its name. (Windows cannot sync the name: after a power
    cut an older file may be back.) A process that is killed meanwhile leaves
    `.<name>.<numbers>.tmp` behind, which a later write of the same file removes. An existing file
    keeps its permissions; if the name is a link, its target is written.

    Raises:
        OSError: the file cannot be written; an older file of this name stays as it was.
    """
    path = Path(os.path.realpath(path))
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{threading.get_ident()}.tmp")
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        with open(temporary, "wb", opener=None if mode is None else _private) as file:
            if mode is not None and os.name == "posix":
                os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the name points to it
        os.replace(temporary, path)
    except OSError as error:
        full = "make room on the disk or " if error.errno in FULL else ""
        raise OSError(
            error.errno,
            f"{path} was not written, and what was there before is unchanged: {full}name another "
            f"folder ({error.strerror})",
        ) from error
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)
    _remove_leftovers(path)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def rename_aside(path: Path, why: str) -> Path:
    """Rename a file to an unused `<stem>.<why>-<number>`; return the new path."""
    number = 1
    while (new := path.with_name(f"{path.stem}.{why}-{number}{path.suffix}")).exists():
        number += 1
    return path.rename(new)


def _sync_folder(folder: Path) -> None:
    """Sync the folder's list of names to the disk, if the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # from file systems that cannot sync a folder
            raise
    finally:
        os.close(descriptor)


def _remove_leftovers(path: Path) -> None:
    """Remove what processes left behind that were killed while writing this file."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        try:
            if time.time() - leftover.stat().st_mtime > ABANDONED:
                leftover.unlink()
        except FileNotFoundError:
            continue  # another process removed it first
