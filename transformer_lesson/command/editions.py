"""Merge a learner's copy of a lesson with a newer edition of it.

Cells are identified by their ids, which every edition keeps. What only one side changed is taken
from that side; what both changed appears twice, the learner's version last, so that it counts.
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
        old: the edition that the learner's copy was made from.
        mine: the learner's copy.
        new: the current edition.
    """
    before, now = _by_id(old), _by_id(new)
    learners_cells = _with_ids(mine.cells, old)
    written = {cell.id: cell for cell in learners_cells}
    merged = deepcopy(new)
    merged.metadata = deepcopy(mine.metadata)
    has_ids = any("id" in cell for cell in mine.cells)  # if not, deletions cannot be recognized
    deleted = before.keys() - written.keys() if has_ids else set()
    groups = {
        cell.id: [] if cell.id in deleted else list(_merged(cell, before, written))
        for cell in new.cells
    }
    order = ["", *now]  # what the learner added follows the cell that it followed
    groups[""], place = [], 0
    for cell in learners_cells:
        if cell.id in now:
            place = order.index(cell.id)
            continue
        while not has_ids and place + 1 < len(order) and order[place + 1] not in written:
            place += 1  # this may be the course's version of it: the learner's counts
        groups[order[place]].extend(_kept(cell, before))
    merged.cells = _with_ids([cell for name in order for cell in groups[name]], old)
    return merged


def _by_id(notebook: NotebookNode) -> dict[str, NotebookNode]:
    return {cell.id: cell for cell in notebook.cells}


def _with_ids(cells: list[NotebookNode], edition: NotebookNode) -> list[NotebookNode]:
    """Return cells with unique ids, restored from the edition if a program dropped them.

    A cell is then recognized by its text or, if that is new, by its first line: an answer to an
    exercise by its `def`.
    """
    by_source = {cell.source: cell.id for cell in reversed(edition.cells)}
    texts = {cell.source for cell in cells}
    changed = [cell for cell in reversed(edition.cells) if cell.source not in texts]
    by_line = {_first_line(cell): cell.id for cell in changed}
    seen, result = set(), []
    for cell in map(deepcopy, cells):
        known = by_source.get(cell.source) or by_line.get(_first_line(cell))
        name = cell.get("id") or known or generate_corpus_id()
        while name in seen:
            name = generate_corpus_id()
        cell["id"] = name
        seen.add(name)
        result.append(cell)
    return result


def _first_line(cell: NotebookNode) -> tuple[str, str]:
    return cell.cell_type, cell.source.partition("\n")[0]


def _alike(one: NotebookNode, other: NotebookNode | None) -> bool:
    """Return whether two cells hold the same text as the same kind of cell."""
    return other is not None and (one.cell_type, one.source) == (other.cell_type, other.source)


def _merged(cell: NotebookNode, before: dict, written: dict) -> Iterator[NotebookNode]:
    """Yield the merged cells in place of a cell of the new edition."""
    learners_cell, old = written.get(cell.id), before.get(cell.id)
    if learners_cell is None:
        yield deepcopy(cell)
    elif _alike(learners_cell, cell):
        yield _changed(
            learners_cell, metadata=deepcopy(cell.metadata)
        )  # with the learner's outputs
    elif _alike(learners_cell, old):
        yield deepcopy(cell)
    elif _alike(cell, old):
        yield learners_cell
    else:
        yield deepcopy(cell)
        yield new_markdown_cell(BOTH_CHANGED)
        yield _changed(learners_cell, id=generate_corpus_id())


def _changed(cell: NotebookNode, **fields) -> NotebookNode:
    copy = deepcopy(cell)
    copy.update(fields)
    return copy


def _kept(cell: NotebookNode, before: dict) -> Iterator[NotebookNode]:
    """Yield a cell of the learner's that the new edition does not have."""
    old = before.get(cell.id)
    if old is None:
        yield cell
    elif not _alike(cell, old):
        yield new_markdown_cell(GONE)
        yield cell
