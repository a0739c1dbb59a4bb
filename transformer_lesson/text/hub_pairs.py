"""Translations from the Hugging Face Hub, through the optional package `datasets`."""

from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import islice

from tqdm.auto import tqdm

from transformer_lesson.text.pairs import Pair, without_blanks


def _rows(name: str, subset: str | None, split: str) -> Iterable[dict]:
    """The data set's rows, read from the network on demand."""
    try:
        from datasets import load_dataset
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "The package that reads data sets from the Hub is missing: install it with "
            "`pip install datasets` and restart the kernel."
        ) from error
    try:
        return load_dataset(name, subset, split=split, streaming=True)
    except ConnectionError as error:
        raise ConnectionError(
            f"The Hub did not answer when asked for {name!r}: check the network, or load a file "
            "of your own with `parallel_text`."
        ) from error
    except FileNotFoundError as error:  # what an unknown name raises
        raise ValueError(
            f"The Hub has no public data set {name!r}: check the name, as it is written at "
            "huggingface.co/datasets."
        ) from error
    except ValueError as error:  # an unknown subset or split
        raise ValueError(f"The data set {name!r} cannot be loaded like this. {error}") from error


def _sides(row: dict, source: str, target: str, name: str) -> tuple[str, str]:
    sides = row.get("translation", row)  # {"translation": {"en": ...}} or {"en": ...}
    if not isinstance(sides, dict) or not {source, target} <= set(sides):
        columns = ", ".join(sides if isinstance(sides, dict) else row)
        raise ValueError(
            f"The data set {name!r} has no columns {source!r} and {target!r}, it has {columns}: "
            "say which two to use with source=... and target=...."
        )
    for column in (source, target):
        if not isinstance(sides[column], str | None):
            raise ValueError(
                f"The column {column!r} of {name!r} holds {sides[column]!r}, which is not text: "
                "choose another one."
            )
    return sides[source] or "", sides[target] or ""


def _stream(rows: Iterable[dict], source: str, target: str, name: str) -> Iterator[Pair]:
    sides = (_sides(row, source, target, name) for row in rows)
    with tqdm(sides, desc=name, unit=" rows", delay=1, leave=False) as bar:
        yield from without_blanks(iter(bar), name)


def hub_dataset(
    name: str,
    subset: str | None = None,
    source: str = "en",
    target: str = "de",
    split: str = "train",
    limit: int | None = None,
) -> list[Pair]:
    """Sentences and their translations from a data set on the Hugging Face Hub.

    `hub_dataset("bentrevett/multi30k")` has the rows `{"en": ..., "de": ...}`, and
    `hub_dataset("wmt/wmt14", "de-en", limit=100_000)` the rows `{"translation": {"en": ...}}`.
    Rows come over the network one after another, so a limit stops early; nothing is kept on disk.
    Rows that are empty on one side or both are left out and counted, as by `parallel_text`.

    Args:
        name: as at huggingface.co/datasets.
        subset: which of its parts, if it has several.
        source: the column of the sentences.
        target: the column of the translations.
        split: "train", "validation" or "test", as the data set calls them.
        limit: stop after this many pairs.

    Raises:
        ModuleNotFoundError: the package `datasets` is not installed.
        ConnectionError: no network.
        ValueError: an unknown name, subset, split or column, a column without text, no pairs, or
            `limit` under 1.
    """
    if limit is not None and limit < 1:
        raise ValueError(f"limit must be 1 or more pairs, or None for all, got {limit}.")
    with closing(_stream(_rows(name, subset, split), source, target, name)) as stream:
        pairs = list(islice(stream, limit))
    if not pairs:
        raise ValueError(f"The data set {name!r} holds no pairs in {split!r}: try another split.")
    return pairs
