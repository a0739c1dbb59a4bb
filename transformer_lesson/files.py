"""Files that are written whole or not at all, and text from anywhere that is safe to show."""

import errno
import glob
import os
import stat
import threading
import time
from pathlib import Path

JOINERS = "\u200c\u200d"  # they hold emoji and Persian words together


def printable(text: str, longest: int | None = None, keep: str = "") -> str:
    r"""Write what cannot be seen as an escape: a null byte as `\x00`, half a pair as `\ud83d`.

    What is left turns no line around, moves no cursor and can be sent as UTF-8.

    Args:
        text: anything.
        longest: characters that the result may have; more are cut off with "…".
        keep: characters that stay as they are, such as a line break.
    """
    seen = JOINERS + keep
    shown = "".join(
        c if c.isprintable() or c in seen else c.encode("unicode_escape").decode()
        for c in (text if longest is None else text[: longest + 1])
    )
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1] + "…"


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
ABANDONED = 600  # seconds without a byte after which nobody is writing a file any more


def write_atomically(path: str | Path, data: bytes) -> None:
    """Write a file so that it is there in whole or not at all, even if the power fails.

    On return the disk has the file under its name. (Windows cannot be asked for the name: after
    a power cut an older file may be back.) A process that is killed meanwhile leaves
    `.<name>.<numbers>.tmp` behind, which a later writing of the same file removes.
    A file that was there keeps its permissions; where the name is a link, the file that it leads
    to is written.

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
            os.fsync(file.fileno())  # on the disk, before the name points to it
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
    """Rename a file to `<stem>.<why>-<number>`, which no other file has; return the new path."""
    number = 1
    while (kept := path.with_name(f"{path.stem}.{why}-{number}{path.suffix}")).exists():
        number += 1
    return path.rename(kept)


def _sync_folder(folder: Path) -> None:
    """Bring the folder's list of names to the disk, where that can be asked for."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # what file systems say that have no such list
            raise
    finally:
        os.close(descriptor)


def _remove_leftovers(path: Path) -> None:
    """Remove what processes that were killed while they wrote this file left behind."""
    for leftover in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        try:
            if time.time() - leftover.stat().st_mtime > ABANDONED:
                leftover.unlink()
        except FileNotFoundError:
            continue  # another process was faster
