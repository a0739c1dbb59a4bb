"""Checkpoints by name from the Hugging Face Hub, for `from_pretrained("a/name")` only."""

import os
import re
import socket
from pathlib import Path
from urllib.parse import urlsplit

from transformer_lesson.checkpoints.untrusted import CONFIG, INDEX, WEIGHTS, parts_of

NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
TOKENIZER = ("tokenizer.json", "vocab.json", "vocab.txt")
PROXIES = ("http_proxy", "https_proxy", "all_proxy")


def is_hub_name(source: str) -> bool:
    """Whether a text looks like a name on the Hub: `gpt2` or `owner/name`."""
    return NAME.fullmatch(source) is not None


def fetch(name: str) -> Path:
    """Return the directory with a checkpoint's files; download them, with a bar, if missing.

    Raises:
        ModuleNotFoundError: the package `huggingface_hub` is not installed.
        ConnectionError: no network.
        ValueError: the Hub has no such public model, or one without weights in a known format.
    """
    return _cached(name) or _download(name)


def _cached(name: str) -> Path | None:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ModuleNotFoundError:
        return None
    config = try_to_load_from_cache(name, CONFIG)
    if not isinstance(config, str):
        return None
    directory = Path(config).parent
    return directory if any(_is_whole(directory, file) for file in WEIGHTS) else None


def _is_whole(directory: Path, file: str) -> bool:
    index = directory / f"{file}{INDEX}"
    if not index.is_file():
        return (directory / file).is_file()
    return all((directory / part).is_file() for part in parts_of(index))


def _download(name: str) -> Path:
    try:
        from huggingface_hub import errors, hf_hub_download
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "The package that reads the Hub is missing: install it with `pip install "
            "huggingface_hub` and restart the kernel."
        ) from error
    offline = (
        f"{name!r} is not on this machine, and the Hub did not answer: check the network, or give "
        "the directory of a checkpoint."
    )
    if not _reachable():
        raise ConnectionError(offline)
    missing = (errors.RemoteEntryNotFoundError,)
    try:
        directory = Path(hf_hub_download(name, CONFIG)).parent
        fetched = any(_get_weights(name, file, hf_hub_download, missing) for file in WEIGHTS)
        for file in TOKENIZER:  # to see whether it matches
            _get(name, file, hf_hub_download, missing)
    except errors.RepositoryNotFoundError as error:
        raise ValueError(
            f"The Hub has no public model {name!r}, and there is no such directory: check the "
            "name, as it is written at huggingface.co."
        ) from error
    except missing as error:
        raise ValueError(f"{name!r} on the Hub has no {CONFIG}, so it is not a model.") from error
    except OSError as error:  # such as LocalEntryNotFoundError, when there is no answer
        raise ConnectionError(offline) from error
    if not fetched:
        raise ValueError(f"{name!r} on the Hub has none of {', '.join(WEIGHTS)}.")
    return directory


def _get(name: str, file: str, download, missing: tuple) -> Path | None:
    """Download one file, if the Hub has it."""
    try:
        return Path(download(name, file))
    except missing:
        return None


def _get_weights(name: str, file: str, download, missing: tuple) -> bool:
    """Download one file of weights, or all of its parts."""
    if _get(name, file, download, missing):
        return True
    index = _get(name, f"{file}{INDEX}", download, missing)
    for part in parts_of(index) if index else ():
        download(name, part)
    return index is not None


def _reachable() -> bool:
    """Whether the Hub's address can be looked up; the library itself would try for 23 seconds."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return False
    if any(os.environ.get(name) or os.environ.get(name.upper()) for name in PROXIES):
        return True  # the proxy looks it up
    try:
        socket.getaddrinfo(urlsplit(constants.ENDPOINT).hostname, 443)
    except OSError:
        return False
    return True
