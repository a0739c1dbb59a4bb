"""A student's process as the judge sees it: questions, answers, and no more time than agreed."""

import queue
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from transformer_lesson.grading import sandbox
from transformer_lesson.grading.wire import Broken, receive, send

STARTING = 120.0  # seconds, for PyTorch's import


class TimedOut(Exception):
    """A student's process did not answer in time."""


class Process:
    """A student's process, and the conversation with it.

    Args:
        cells: the sources of the notebook's code cells.
        seconds: how long one exercise may take.
    """

    def __init__(self, cells: list[str], seconds: float):
        self.cells, self.seconds, self.fault = cells, seconds, None
        self.scratch = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.before = sandbox.children()
        self.process = sandbox.start(Path(self.scratch.name))
        self.deadline, self.opened = time.monotonic() + STARTING, False

    def open(self, cells: list[str]) -> None:
        """Hand the cells of a notebook over."""
        self.ask({"do": "open", "cells": cells})
        self.opened = True

    def load(self, name: str) -> dict:
        """Make an exercise's function ready; its time begins."""
        if not self.opened:
            self.open(self.cells)
        self.deadline = time.monotonic() + self.seconds
        return self.ask({"do": "load", "name": name})[0]

    def ask(self, message: dict, tensors: dict | None = None) -> tuple[dict, dict]:
        """Return the answer to a message.

        Raises:
            TimedOut: the exercise's time is up.
            Broken: the process has ended, or what it sent is no message. After either of the
                two, every further question raises the same.
        """
        if self.fault is None:
            answers = queue.SimpleQueue()
            threading.Thread(
                target=self._exchange, args=(message, tensors, answers), daemon=True
            ).start()
            try:
                answer = answers.get(timeout=max(0.0, self.deadline - time.monotonic()))
            except queue.Empty:
                answer = TimedOut(f"Stopped after {self.seconds:.0f} seconds.")
            if not isinstance(answer, Exception):
                return answer
            self.fault = answer
        raise self.fault

    def _exchange(self, message: dict, tensors: dict | None, answers: queue.SimpleQueue) -> None:
        try:
            send(self.process.stdin, message, tensors)
            answers.put(receive(self.process.stdout))
        except (OSError, ValueError, Broken) as error:  # a ValueError: the pipe was closed
            answers.put(Broken(str(error)))

    def close(self) -> None:
        """End the process and all that it has started."""
        sandbox.end(self.process, self.before)
        self.scratch.cleanup()

    def how_it_ended(self) -> str:
        """Return, in a sentence, how the process came to its end."""
        try:
            code = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return f"Its process sent what is no answer: {self.fault}."
        return f"Its process ended by itself, with exit code {code}."
