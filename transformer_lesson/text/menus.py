"""JupyterLab's menus and messages in English and German, translated by people.

They come with the package `jupyterlab-language-pack-de-DE`, as catalogs for `gettext`. What its
17 catalogs hold, and what `pairs` does with it:

- 1,219 messages; the text before a "\\x04" only tells translators where a message appears.
- White space is collapsed, and a source that differs from another one only in case or in its
  last punctuation ("Go to Line", "Go to line…") is left out. Otherwise a validation set would
  hold sentences that training has seen.
- Of several translations the first stays. Of "%1 cell" and "%1 cells" gettext keeps the English
  singular only, and its translation comes first.
- Placeholders (%1) and names that stay the same in German (R, JupyterHub) are kept: copying them
  is part of translating. 1,067 pairs remain, of 1 to 54 English words.
"""

import gettext
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from transformer_lesson.text.pairs import Pair

PACKAGE = "jupyterlab_language_pack_de_DE"

EXAMPLES = (
    Pair("Close All Tabs", "Alle Tabs schließen"),
    Pair("No errors found", "Keine Fehler gefunden"),
    Pair("Open from Path…", "Von Pfad öffnen …"),
    Pair("Close without saving", "Schließen ohne zu speichern"),
    Pair("Filter files by name", "Dateien nach Namen filtern"),
    Pair("Save all open documents", "Alle geöffneten Dokumente speichern"),
    Pair("You have unsaved changes.", "Du hast nicht gespeicherte Änderungen."),
    Pair("Create a new text file", "Eine neue Textdatei erstellen"),
    Pair("Do not check for updates", "Nicht auf Aktualisierungen prüfen"),
    Pair("Paste cells from the clipboard", "Zellen aus der Zwischenablage einfügen"),
    Pair("Always start the preferred kernel", "Immer den bevorzugten Kernel starten"),
    Pair(
        "Restart Kernel and Run All Cells…",
        "Kernel neu starten und alle Zellen ausführen…",
    ),
)


def _catalogs() -> list[Path]:
    package = find_spec(PACKAGE)
    folders = package.submodule_search_locations if package else []
    catalogs = sorted(path for folder in folders for path in Path(folder).rglob("*.mo"))
    if not catalogs:
        raise ModuleNotFoundError(
            "The German texts are missing: install them with "
            "`pip install jupyterlab-language-pack-de-DE` and restart the kernel."
        )
    return catalogs


def _messages(catalog: Path) -> list[Pair]:
    """A catalog's messages without their context and superfluous spaces."""
    with catalog.open("rb") as file:
        translations = gettext.GNUTranslations(file)
    messages = []
    for key, translation in translations._catalog.items():  # gettext has no public way to list
        message = key[0] if isinstance(key, tuple) else key  # (singular, number of the form)
        source = " ".join(message.split("\x04")[-1].split())
        target = " ".join(translation.split())
        if source and target:
            messages.append(Pair(source, target))
    return messages


@cache
def _pairs() -> tuple[Pair, ...]:
    unique = {}
    for pair in (pair for path in _catalogs() for pair in _messages(path)):
        unique.setdefault(pair.source.casefold().rstrip(" .:…"), pair)
    return tuple(sorted(unique.values()))


def pairs() -> list[Pair]:
    """All pairs, English to German, each source once, sorted by source.

    Raises:
        ModuleNotFoundError: the language pack is not installed; the message says how to install it.
    """
    return list(_pairs())
