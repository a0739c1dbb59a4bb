"""A file is written whole or not at all, beside others who write, and keeps what it was."""

import errno
import os
import subprocess
import sys
import threading

import pytest

from transformer_lesson.files import rename_aside, write_atomically

POSIX = pytest.mark.skipif(os.name != "posix", reason="Windows has neither modes nor such links")


@POSIX
def test_a_file_keeps_its_permissions_and_a_link_leads_where_it_led(tmp_path):
    file, link = tmp_path / "grades.csv", tmp_path / "link.csv"
    file.write_bytes(b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640
    (tmp_path / "nowhere").symlink_to(tmp_path / "new.csv")
    write_atomically(tmp_path / "nowhere", b"first")
    assert (tmp_path / "new.csv").read_bytes() == b"first"


def test_threads_that_write_one_file_do_not_meet(tmp_path):
    path, texts, errors = tmp_path / "file", [bytes([65 + i]) * 5000 for i in range(4)], []

    def write(text):
        try:
            for _ in range(25):
                write_atomically(path, text)
        except OSError as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(text,)) for text in texts]
    [thread.start() for thread in threads]
    while any(thread.is_alive() for thread in threads):
        assert not path.exists() or path.read_bytes() in texts
    assert not errors and path.read_bytes() in texts and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.ENOSPC, "make room on the disk or name another folder"), (errno.EACCES, ": name an")],
)
def test_advice_fits_the_error(tmp_path, monkeypatch, code, advice):
    def fails(*_):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "replace", fails)
    with pytest.raises(OSError, match=advice):
        write_atomically(tmp_path / "file", b"new")


def test_what_is_set_aside_overwrites_nothing(tmp_path):
    for number in (1, 2):
        (tmp_path / "a.json").write_text(str(number))
        assert rename_aside(tmp_path / "a.json", "damaged").name == f"a.damaged-{number}.json"
    assert (tmp_path / "a.damaged-1.json").read_text() == "1"


@pytest.mark.slow
def test_processes_that_write_one_table_lose_no_line(tmp_path):
    code = """if True:
        import sys; from pathlib import Path; from transformer_lesson.capstone.own import add_line
        for i in range(20): add_line(Path(sys.argv[1]), [f"{sys.argv[2]}-{i}", "1"])"""
    table = tmp_path / "class.csv"
    runs = [subprocess.Popen([sys.executable, "-c", code, table, name]) for name in "ab"]
    assert [run.wait() for run in runs] == [0, 0]
    assert len(table.read_text().splitlines()) == 1 + 40
