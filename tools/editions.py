"""One lesson, two editions and a learner: carry what the learner did into the newer edition.

Cells are known by their ids, which every edition keeps. What only one side changed is taken from
that side; what both changed stands there twice, the learner's version last, so that it counts.
"""

from collections.abc import Iterator
from copy import deepcopy

from nbformat import NotebookNode
from nbformat.corpus.words import generate_corpus_id
from nbformat.v4 import new_markdown_cell

BOTH_CHANGED = "*The cell above is new in this edition of the course. Yours, as you left it:*"
GONE = "*The course has dropped this cell. You had changed it, so it stays:*"


def carried_over(old: NotebookNode, mine: NotebookNode, new: NotebookNode) -> NotebookNode:
    """Return the new edition with everything in it that the learner wrote, ran or added.

    Args:
        old: the edition from which the learner's copy was made.
        mine: the learner's copy.
        new: the edition that is there now.
    """
    before, now = _by_id(old), _by_id(new)
    own = _with_ids(mine.cells, old)
    written = {cell.id: cell for cell in own}
    made = deepcopy(new)
    made.metadata = deepcopy(mine.metadata)
    named = any("id" in cell for cell in mine.cells)  # or nobody knows what was deleted
    deleted = before.keys() - written.keys() if named else set()
    groups = {
        cell.id: [] if cell.id in deleted else list(_merged(cell, before, written))
        for cell in new.cells
    }
    first, after = [], "\0"  # what the learner added stands behind the cell it stood behind
    for cell in own:
        if cell.id in groups:
            after = cell.id
        elif kept := list(_kept(cell, before)):
            (groups[after] if after in groups else first).extend(kept)
    made.cells = _with_ids([*first, *(cell for new in now for cell in groups[new])], old)
    return made


def _by_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    return {cell.id: cell for cell in notebook.cells}


def _with_ids(cells: list[NotebookNode], edition: NotebookNode) -> list[NotebookNode]:
    """Return cells, each with an id of its own; where a program dropped the ids, the edition's."""
    by_source = {cell.source: cell.id for cell in reversed(edition.cells)}
    seen, named = set(), []
    for cell in map(deepcopy, cells):
        name = cell.get("id") or by_source.get(cell.source) or generate_corpus_id()
        while name in seen:
            name = generate_corpus_id()
        cell["id"] = name
        seen.add(name)
        named.append(cell)
    return named


def _merged(cell: NotebookNode, before: dict, written: dict) -> Iterator[NotebookNode]:
    """Yield what stands where the new edition has a cell."""
    own, old = written.get(cell.id), before.get(cell.id)
    if own is None or own.cell_type != cell.cell_type:
        yield deepcopy(cell)
    elif own.source == cell.source:
        yield _changed(own, metadata=deepcopy(cell.metadata))  # with the outputs of the learner's
    elif old is not None and own.source == old.source:
        yield deepcopy(cell)
    elif old is not None and cell.source == old.source:
        yield own
    else:
        yield deepcopy(cell)
        yield new_markdown_cell(BOTH_CHANGED)
        yield _changed(own, id=generate_corpus_id())


def _changed(cell: NotebookNode, **fields) -> NotebookNode:
    copy = deepcopy(cell)
    copy.update(fields)
    return copy


def _kept(cell: NotebookNode, before: dict) -> Iterator[NotebookNode]:
    """Yield a cell of the learner's that the new edition does not have."""
    old = before.get(cell.id)
    if old is None:
        yield cell
    elif old.source != cell.source:
        yield new_markdown_cell(GONE)
        yield cell
