"""Stopping functions that run too long, on every system."""

import contextvars
import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

ANSWER_SECONDS = 10.0  # seconds of the processor that a learner's function may take
PATIENCE = 4  # times as many by the clock: other programs may be running, or it may sleep
STACK = 2**26  # bytes; some systems' default is too small for deep recursion


class TookTooLong(Exception):
    """The time is up. `__cause__` says where the function was, if it could be stopped."""


def run_for_at_most(seconds: float, function: Callable[[], Any]) -> Any:
    """Return function(), or stop it when the time is up.

    The seconds are the processor's for this process, so a busy machine shortens nothing; by the
    clock it may take `PATIENCE` times as many.

    It runs in its own thread, in which `KeyboardInterrupt` is raised when the time is up or the
    learner interrupts the kernel. A call of compiled code cannot be interrupted and ends first.

    Raises:
        TookTooLong: the time is up.
    """
    done, ended = [], threading.Event()

    def work() -> None:
        """Store the function's result or exception; signal the end."""
        try:
            done.append((context.run(function), None))
        except BaseException as error:  # handed on to the caller's thread
            done.append((None, error))
        finally:
            ended.set()

    context = contextvars.copy_context()
    thread = _started(work)
    try:
        in_time = _ends(ended, seconds)
    except KeyboardInterrupt:
        _interrupt(thread, ended)
        raise
    if not in_time:
        _interrupt(thread, ended)
        raise TookTooLong from (done[0][1] if done else None)
    result, error = done[0]
    if error is not None:
        raise error
    return result


def _ends(ended: threading.Event, seconds: float) -> bool:
    """Wait for the event; return whether it came in time."""
    computed, by_the_clock = time.process_time() + seconds, time.monotonic() + PATIENCE * seconds
    while time.process_time() < computed and time.monotonic() < by_the_clock:
        if ended.wait(0.05):  # an interrupted join may report a running thread as ended
            return True
    return ended.is_set()


def _started(work: Callable[[], None]) -> threading.Thread:
    before = threading.stack_size(STACK)
    try:
        thread = threading.Thread(target=work, name="check", daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    return thread


def _interrupt(thread: threading.Thread, ended: threading.Event) -> None:
    """Raise `KeyboardInterrupt` in a thread until its work ends; give up after a second."""
    identity = ctypes.c_ulong(thread.ident)
    for _ in range(10):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(identity, ctypes.py_object(KeyboardInterrupt))
        if ended.wait(0.1):
            return thread.join()
