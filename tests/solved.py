"""The last test of a lesson: solved, in the kernel in which it has just run blank."""

import re

import pytest
from jupyter_client.asynchronous import AsyncKernelClient
from nbclient import NotebookClient

from tests.cells import names_in, without_slow_cells
from tools.execute_notebooks import CELL_TIMEOUT
from tools.handout import CHECK, is_stub, solved_copy, unpassed


class SolvedLesson(pytest.Item):
    """Every cell runs again, as learners do, with the exercises solved: all checks pass.

    Those that train for many seconds do not, nor those that need them.
    """

    def runtest(self) -> None:
        blank = filter(is_stub, self.parent.nb.cells)
        stubs = [re.match(r"def (\w+)\(", cell.source)[1] for cell in blank]
        notebook = solved_copy(self.parent.nb)
        for cell in without_slow_cells(notebook):
            assert not set(stubs) & names_in(cell.source)[1], f"{cell.id} needs an exercise: run it"
        self._run(notebook)
        checks = [pair for cell in notebook.cells for pair in CHECK.findall(cell.source)]
        assert checks == [(name, name) for name in stubs]
        assert unpassed(notebook) == []

    def _run(self, notebook) -> None:
        manager = self.parent.kernel.km
        manager.client_factory = AsyncKernelClient  # as nbclient expects
        NotebookClient(notebook, km=manager, timeout=CELL_TIMEOUT).execute(cleanup_kc=True)
