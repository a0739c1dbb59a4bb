"""Ctrl-C waits until the step is whole."""

import signal
import threading
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer_lesson.training.saved_run import TrainingRun


class DeferredInterrupt:
    """While the `with` block is open, the first Ctrl-C only sets `requested`.

    The loop looks at it between two steps, so that no update is ever left half done. A second
    Ctrl-C raises KeyboardInterrupt at once. Jupyter's "interrupt kernel" is the same signal.

    Only the main thread gets signals: elsewhere this does nothing. Neither does it where Ctrl-C
    is switched off (`nohup`).

    Args:
        patient: let the second Ctrl-C wait too.
    """

    def __init__(self, patient: bool = False):
        self.requested, self.patient = False, patient
        self._before = None

    def __enter__(self):
        main = threading.current_thread() is threading.main_thread()
        if main and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_error) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, _signal: int, _frame: FrameType | None) -> None:
        if self.requested and not self.patient:
            raise KeyboardInterrupt
        self.requested = True


class TrainingInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a training, after a whole step.

    Being a `KeyboardInterrupt` it ends the cell, or the program. `history` and `model` are as of
    that step.
    """

    def __init__(self, run: "TrainingRun"):
        self.history, self.model = run.history, run.model
        at = f"Interrupted after step {run.history.steps} of {run.config.steps}"
        what = "the model and its history (model.history) are"
        how = "Call train again to go on with these weights; its schedule begins anew"
        if run.checkpoint:
            how = f"resume({str(run.checkpoint)!r}, batches) goes on from there"
        rest = f"as they were after that step. {how}" if run.history.interrupted else "complete"
        super().__init__(f"{at}: {what} {rest}.")

    def _render_traceback_(self) -> list[str]:
        """What Jupyter shows: nothing is wrong, so the sentence is enough."""
        return [str(self)]


def load_whole(module: str) -> None:
    """Import a module without letting Ctrl-C cut it in two.

    Python cannot import a package again of which it has imported a half: until the kernel is
    restarted, every later use of it fails.

    Raises:
        KeyboardInterrupt: Ctrl-C came meanwhile; the module is there.
    """
    with DeferredInterrupt(patient=True) as ctrl_c:
        import_module(module)
    if ctrl_c.requested:
        raise KeyboardInterrupt
