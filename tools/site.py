"""Build the web site into `site/`: `make site`. It opens from the disk, without a network.

`make site ZIP=1` packs it into `site.zip`, too, for a stick or a room without a network: unpack it
and open `index.html`.

The pages are copied to `build/site-source` in the repository's layout, so that links between them
work; Sphinx reads them there (see docs/site/conf.py). Any warning is an error.
"""

import shutil
import sys
from pathlib import Path

from sphinx.cmd.build import build_main

from tools.lesson_files import GLOSSARY, ROOT, lesson_files

SITE = ROOT / "site"
WORK = ROOT / "build"
PAGES = (
    "CHANGELOG.md",
    "benchmarks/RESULTS.md",
    "docs/*.md",
    f"notebooks/{GLOSSARY}",
)


def stage(source: Path, globs: tuple[str, ...] = PAGES, own: str = "docs/site") -> None:
    """Copy the pages that changed, and remove those that are gone.

    Args:
        source: the folder to which they are copied.
        globs: of the repository's pages, besides lessons.
        own: the folder with further pages, which is left out of their paths.
    """
    paths = [*lesson_files(ROOT), *(path for glob in globs for path in ROOT.glob(glob))]
    pages = {path.relative_to(ROOT): path for path in paths}
    own_paths = [*ROOT.glob(f"{own}/**/*.md"), *ROOT.glob(f"{own}/**/*.rst")]
    pages |= {path.relative_to(ROOT / own): path for path in own_paths}
    for name, path in pages.items():
        staged = source / name
        staged.parent.mkdir(parents=True, exist_ok=True)
        if not staged.exists() or staged.read_bytes() != path.read_bytes():
            shutil.copyfile(path, staged)
    for staged in [path for path in source.rglob("*") if path.is_file()]:
        if staged.relative_to(source) not in pages:
            staged.unlink()


def build(site: Path, work: Path) -> int:
    """Build what changed since the last time, and return Sphinx's exit status."""
    source = work / "site-source"
    stage(source)
    options = ["--quiet", "--fail-on-warning", "-d", work / "site-doctrees"]
    return build_main(list(map(str, [*options, "-c", ROOT / "docs/site", source, site])))


def pack(site: Path) -> Path:
    """Pack the site into one file beside it, and return its path."""
    return Path(shutil.make_archive(str(site), "zip", site.parent, site.name))


def main(site: str = str(SITE), work: str = str(WORK), zipped: bool = False) -> int:
    """Build, and say where the site is."""
    status = build(Path(site), Path(work))
    if status == 0:
        print(f"The site is ready: open {Path(site) / 'index.html'}")
        if zipped:
            packed = pack(Path(site))
            print(f"Packed: {packed} ({packed.stat().st_size / 1e6:.0f} MB)")
    return status


if __name__ == "__main__":
    folders = [argument for argument in sys.argv[1:] if argument != "--zip"]
    sys.exit(main(*folders, zipped="--zip" in sys.argv))
