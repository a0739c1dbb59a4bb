"""Ctrl-C waits until the step is whole."""

import signal
import threading
from types import FrameType


class DeferredInterrupt:
    """While the `with` block is open, the first Ctrl-C only sets `requested`.

    The loop looks at it between two steps, so that no update is ever left half done. A second
    Ctrl-C raises KeyboardInterrupt at once. Jupyter's "interrupt kernel" is the same signal.

    Only the main thread gets signals: elsewhere this does nothing. Neither does it where Ctrl-C
    is switched off (`nohup`).
    """

    def __init__(self):
        self.requested = False
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
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
