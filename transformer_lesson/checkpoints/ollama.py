"""The models that somebody runs with Ollama: what lies on this machine, and in which file.

Ollama keeps a model in pieces, in a folder like this one:

    manifests/registry.ollama.ai/library/gemma3/270m    "gemma3:270m": a list of digests, as JSON
    blobs/sha256-735af2139dc6...                        the weights, a GGUF file without a suffix

Nothing is fetched here, and no program is run: files are read, and nothing in them is trusted.

Source: Ollama's types/model/name.go (names) and server/manifest.go (manifests).
"""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from transformer_lesson.checkpoints.gguf import GGUF, Head, is_gguf, read_head
from transformer_lesson.checkpoints.gguf_tokenizer import require_known
from transformer_lesson.checkpoints.transformers_io import check_gguf
from transformer_lesson.checkpoints.untrusted import MALFORMED, read_json
from transformer_lesson.files import printable

PLACE = "OLLAMA_MODELS"
HOSTS = ("registry.ollama.ai", "ollama.com")
"""Hosts that a name leaves out, as it leaves out the namespace `library` and the tag `latest`."""
MANIFESTS = ("manifests", "manifests-v2")
WEIGHTS = "application/vnd.ollama.image.model"
DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
LARGEST_MANIFEST = 1_000_000  # bytes; one has about a thousand


class Model(NamedTuple):
    """A model on this machine, as its own file describes it.

    Args:
        name: as `ollama list` shows it.
        n_bytes: of the file with its weights; 0 if there is none.
        family: llama.cpp's name of its architecture, "" if it cannot be read.
        format: of most of its numbers.
        n_numbers: how many numbers it has; in float32 each takes 4 bytes.
        why_not: why this course cannot open it; "" if it can.
    """

    name: str
    n_bytes: int = 0
    family: str = ""
    format: str = ""
    n_numbers: int = 0
    why_not: str = ""


class Models(list[Model]):
    """A list of models that prints as a table; `places` are the folders that were looked at."""

    def __init__(self, models: list[Model], places: list[Path]):
        super().__init__(models)
        self.places = places

    def __repr__(self) -> str:
        if not self:
            looked = " or ".join(_short(place) for place in self.places)
            return f"Ollama has no models here: there are none in {looked}."
        head = [("name", "on disk", "in float32", "family", "format", "opens here")]
        rows = head + [_row(model) for model in self]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        reasons = [f"{model.name}: {model.why_not}" for model in self if model.why_not]
        return "\n".join([*lines, *(fill(why, 100, subsequent_indent="  ") for why in reasons)])


def _short(place: Path) -> str:
    """Return a folder as people write it: below their own it begins with ~."""
    home = Path.home()
    return printable(f"~/{place.relative_to(home)}" if place.is_relative_to(home) else str(place))


def _row(model: Model) -> tuple[str, ...]:
    opens = "no, see below" if model.why_not else "yes"
    numbers = _size(4 * model.n_numbers) if model.n_numbers else "-"
    return (model.name, _size(model.n_bytes), numbers, model.family, model.format, opens)


def _size(n_bytes: int) -> str:
    if n_bytes < 1e6:
        return f"{n_bytes / 1e3:.0f} kB"
    return f"{n_bytes / 1e9:.1f} GB" if n_bytes >= 1e9 else f"{n_bytes / 1e6:.0f} MB"


def models_here(folder: str | Path | None = None) -> Models:
    """Return the models that Ollama has on this machine, each with what its own file says.

    Args:
        folder: with Ollama's `manifests` and `blobs`; by default the folders where Ollama keeps
            models: OLLAMA_MODELS in the environment, or that of this user and that of the service.
    """
    stores = _stores(folder)
    manifests = {}
    for store in stores:
        for name, manifest in _manifests(store):
            manifests.setdefault(name, (store, manifest))
    models = [_described(name, *manifests[name]) for name in sorted(manifests)]
    return Models(models, stores or _places(folder))


def gguf_of(name: str, folder: str | Path | None = None) -> Path:
    """Return the GGUF file with a model's weights.

    Args:
        name: as `ollama list` shows it, such as "gemma3:270m"; without a tag it is "latest".
        folder: see `models_here`.

    Raises:
        ValueError: no such model here (the message lists those that are), or one whose weights
            are missing, lie elsewhere or are no GGUF file.
    """
    wanted, names = _full(str(name)).casefold(), []
    for store in _stores(folder):
        for known, manifest in _manifests(store):
            if _full(known).casefold() == wanted:
                try:
                    return _weights(store, manifest)
                except ValueError as error:
                    raise ValueError(f"{known} of Ollama's: {error}") from error
            names.append(known)
    here = ", ".join(sorted(names)) or "no models"
    raise ValueError(
        f"Ollama has no model {printable(repr(name), 100)} here, but {printable(here, 500)}: name "
        "one of these, or get it with `ollama pull`."
    )


def _places(folder: str | Path | None) -> list[Path]:
    if folder is not None:
        return [Path(folder)]
    if place := os.environ.get(PLACE):
        return [Path(place)]
    return [Path.home() / ".ollama" / "models", Path("/usr/share/ollama/.ollama/models")]


def _stores(folder: str | Path | None) -> list[Path]:
    """Return the folders that have manifests."""
    places = _places(folder)
    return [place for place in places if any(os.path.isdir(place / name) for name in MANIFESTS)]


def _manifests(store: Path) -> Iterator[tuple[str, Path]]:
    """Return each model's name and manifest: `manifests/host/namespace/model/tag`."""
    for top in MANIFESTS:
        for path in _files(store / top, depth=4):
            *_, host, space, model, tag = path.parts
            before = [] if host in HOSTS else [host]
            before += [] if host in HOSTS and space == "library" else [space]
            yield printable("/".join([*before, model]) + f":{tag}", 200), path


def _files(folder: Path, depth: int) -> Iterator[Path]:
    """Return what lies this many folders deep, in the order of names; hidden files are not."""
    try:
        names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError:  # not a folder, or one that this user may not read
        return
    for name in names:
        yield from _files(folder / name, depth - 1) if depth > 1 else [folder / name]


def _full(name: str) -> str:
    """Return host/namespace/model:tag of a name that leaves some of them out."""
    before, _, model = name.rpartition("/")
    words = before.split("/") if before else []
    words = ["library", *words] if not words else words
    words = [HOSTS[0], *words] if len(words) == 1 else words
    words[0] = HOSTS[0] if words[0] in HOSTS else words[0]
    return "/".join([*words, model if ":" in model else f"{model}:latest"])


def _weights(store: Path, manifest: Path) -> Path:
    """Return the file with the weights that a manifest names.

    Raises:
        ValueError: no list of one file, or a file that is missing or outside the store.
    """
    layers = _layers(store, manifest)
    digests = [str(layer.get("digest")) for layer in layers if layer.get("mediaType") == WEIGHTS]
    if len(digests) != 1:
        raise ValueError(f"it names {len(digests)} files of weights, but one GGUF file is read.")
    if not (digest := DIGEST.fullmatch(digests[0])):
        raise ValueError(
            f"it names the weights {printable(digests[0], 60)!r}, but that must be sha256: and 64 "
            "digits: get the model again."
        )
    blobs = store / "blobs"
    blob = next(
        (path for mark in "-:" if os.path.lexists(path := blobs / f"sha256{mark}{digest[1]}")), None
    )
    if blob is None:
        raise ValueError(f"its weights, sha256-{digest[1][:12]}..., are missing: get it again.")
    _require_inside(store, blob)
    if not is_gguf(blob):
        raise ValueError("its weights are no GGUF file that this user may read.")
    return blob


def _layers(store: Path, manifest: Path) -> list[dict[str, Any]]:
    _require_inside(store, manifest)
    if os.path.isfile(manifest) and manifest.stat().st_size > LARGEST_MANIFEST:
        raise ValueError(f"its manifest has more than {LARGEST_MANIFEST:,} bytes.")
    try:
        layers = read_json(manifest).get("layers")
    except ValueError as error:
        raise ValueError(f"its manifest cannot be read: {printable(str(error), 300)}") from error
    if not isinstance(layers, list) or not all(isinstance(layer, dict) for layer in layers):
        raise ValueError("its manifest has no list of layers: get the model again.")
    return layers


def _require_inside(store: Path, path: Path) -> None:
    """Refuse a link that leads out of the store, where a manifest could name any file."""
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(store)):
        raise ValueError(
            f"{printable(str(path))} is a link that leads out of Ollama's folder: open the file "
            "that it leads to by its own path, if you trust it."
        )


def _described(name: str, store: Path, manifest: Path) -> Model:
    n_bytes, path = 0, manifest
    try:
        path = _weights(store, manifest)
        n_bytes = path.stat().st_size
        return _by_head(name, path, read_head(path), n_bytes)
    except (ValueError, OSError, *MALFORMED) as error:
        return Model(name, n_bytes, why_not=_shortened(error, path))


def _by_head(name: str, path: Path, head: Head, n_bytes: int) -> Model:
    family = printable(str(head.metadata.get("general.architecture", "")), 40)
    held = Counter()
    for entry in head.table.values():
        held[entry.format.name] += entry.n_bytes
    numbers = sum(e.n_bytes // e.format.n_bytes * e.format.numbers for e in head.table.values())
    most = held.most_common(1)[0][0] if held else ""
    return Model(name, n_bytes, family, most, numbers, _why_not(path, head))


def _why_not(path: Path, head: Head) -> str:
    """Return why the course cannot open a file, judged by its header; "" if it can."""
    if head.refused:
        return printable(head.refused, 300)
    try:
        check_gguf(GGUF(path, head.metadata, head.table))
        require_known(head.metadata)
    except ValueError as error:
        return _shortened(error, path)
    return ""


def _shortened(error: Exception, path: Path) -> str:
    """Return what an error says, without the long name of the file."""
    reason = str(error).removeprefix(f"{path}: ").replace(str(path), "the file")
    return printable(reason, 300)
