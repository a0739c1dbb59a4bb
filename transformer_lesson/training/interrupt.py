"""Ctrl-C waits for the end of the step."""

import signal
import threading
from importlib import import_module
from types import FrameType


class DeferredInterrupt:
    """While the `with` block is open, the first Ctrl-C only sets `requested`.

    The loop checks it between steps, so that no update is ever left half done. A second Ctrl-C
    raises KeyboardInterrupt at once. Jupyter's "interrupt kernel" is the same signal.

    Only the main thread gets signals: in others this does nothing, nor where Ctrl-C is switched
    off (`nohup`).

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


def load_whole(module: str) -> None:
    """Import a module without letting Ctrl-C cut the import short.

    Python cannot import a package again once it has imported half of it: until the kernel is
    restarted, every later use of it fails.

    Raises:
        KeyboardInterrupt: Ctrl-C came meanwhile; the module is imported.
    """
    with DeferredInterrupt(patient=True) as ctrl_c:
        import_module(module)
    if ctrl_c.requested:
        raise KeyboardInterrupt
