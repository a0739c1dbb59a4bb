"""Build the lessons into one e-book, `dist/transformer-lesson.epub`: `make epub`.

The pages are copied to `build/book-source`, as `tools.site` copies the web site's; Sphinx reads
them there (see docs/book/conf.py and `tools.book_pages`). Any warning is an error.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from tools.lesson_files import GLOSSARY, ROOT
from tools.site import WORK, stage

BOOK = ROOT / "dist" / "transformer-lesson.epub"
PAGES = (f"notebooks/{GLOSSARY}", "docs/images/*.png")


def build(book: Path, work: Path) -> int:
    """Build the book, and return Sphinx's exit status."""
    source, unpacked = work / "book-source", work / "book"
    stage(source, PAGES, own="docs/book")
    shutil.rmtree(unpacked, ignore_errors=True)  # a file that is gone would stay in the book
    folders = ["-c", ROOT / "docs/book", "-d", work / "book-doctrees", source, unpacked]
    options = ["--quiet", "--fail-on-warning", "--fresh-env", "-b", "epub"]
    status = build_main(list(map(str, [*options, *folders])))
    if status == 0:
        book.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(unpacked / BOOK.name, book)
    return status


def main(book: str = str(BOOK), work: str = str(WORK)) -> int:
    """Build, and say where the book is."""
    status = build(Path(book), Path(work))
    if status == 0:
        print(f"The book is ready: {book} ({Path(book).stat().st_size / 1e6:.0f} MB)")
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
