"""JupyterLab and Chromium, driven as a learner would: for the browser tests and the soak."""

import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tools.browser import PATIENCE, new_context
from tools.lesson_files import GLOSSARY, NOTEBOOKS, lesson_files, place_of

REPOSITORY = Path(__file__).parents[2]
KERNEL_IS_IDLE = """() => window.jupyterapp?.shell.currentWidget?.sessionContext
    ?.session?.kernel?.status === 'idle'"""

UNFOLD = """() => document.querySelectorAll("details").forEach(it => { it.open = true; })"""
"""Opens what a page of the web site folds."""


def behind_lessons_before_a_release(names: list[str], apart: Sequence[str] = ()) -> list:
    """Return one parameter a notebook: those behind lessons, `apart` from a few, in that tier."""
    later = [name for name in names if name.startswith("deeper") and name not in apart]
    return [
        pytest.param(name, marks=pytest.mark.release if name in later else ()) for name in names
    ]


@contextmanager
def serving(root: Path) -> Iterator[str]:
    """Yield the address of a JupyterLab that serves a copy of the lessons, made in `root`."""
    (root / "notebooks").mkdir()
    for path in (*lesson_files(), NOTEBOOKS / GLOSSARY):
        copy = root / "notebooks" / place_of(path)
        copy.parent.mkdir(exist_ok=True)
        shutil.copyfile(path, copy)
    settings = root / "settings/@jupyterlab/notebook-extension/tracker.jupyterlab-settings"
    settings.parent.mkdir(parents=True)
    # every cell is in the page, also those out of sight
    settings.write_text(json.dumps({"windowingMode": "none"}))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "ServerApp.root_dir": root,
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "",
        "LabApp.open_browser": False,
        "LabApp.expose_app_in_browser": True,
        "LabApp.user_settings_dir": root / "settings",
        "LabApp.workspaces_dir": root / "workspaces",
    }
    command = [sys.executable, "-m", "jupyterlab", *(f"--{k}={v}" for k, v in options.items())]
    with (root / "log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            _wait_for(f"http://127.0.0.1:{port}/api", server, root / "log")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:  # where a kernel has only just been shut down, JupyterLab may wait for it for ever
                server.wait(30)
            except subprocess.TimeoutExpired:
                server.kill()


def _wait_for(address: str, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address):
                return
        except urllib.error.URLError:
            time.sleep(0.3)
    raise RuntimeError(f"JupyterLab did not answer:\n{log.read_text()}")


@contextmanager
def offline_page(browser) -> Iterator:
    """Yield a page that notes its errors, and cuts off and notes requests to other machines."""
    context = new_context(browser, viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.outside, page.problems, page.errors = [], [], []

    def only_this_machine(route):
        if urllib.parse.urlsplit(route.request.url).hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            page.outside.append(route.request.url)
            route.abort()

    context.route("**/*", only_this_machine)
    page.on("dialog", lambda dialog: (page.problems.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    page.on("console", lambda m: page.errors.append(m.text) if m.type == "error" else None)
    yield page
    context.close()


def run_lesson(page, address: str, lesson: str) -> None:
    """Open a notebook and run all its cells."""
    page.goto(f"{address}/lab/tree/notebooks/{lesson}?reset", wait_until="domcontentloaded")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_function(KERNEL_IS_IDLE)
    page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")


def open_answers(page) -> None:
    """Show what waits for somebody to commit to a prediction."""
    shown = ".jp-Cell-outputWrapper { display: flex !important; }"
    page.opened = page.add_style_tag(content=shown)


def shut_answers(page) -> None:
    """Hide again what `open_answers` has shown, as a learner meets it."""
    page.opened.evaluate("style => style.remove()")


def shut_down_kernel(page) -> None:
    """End the kernel of the notebook that is open."""
    page.evaluate("() => window.jupyterapp.commands.execute('kernelmenu:shutdown')")


REPLACE_AND_RUN = """async ([marker, source]) => {
    const {content} = window.jupyterapp.shell.currentWidget;
    const i = [...content.model.cells].findIndex(
        cell => cell.sharedModel.source.startsWith(marker));
    content.model.cells.get(i).sharedModel.setSource(source);
    content.activeCellIndex = i;
    await window.jupyterapp.commands.execute('notebook:run-cell-and-select-next');
    await window.jupyterapp.commands.execute('notebook:run-cell');
}"""


ERRORS = """() => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells];
    const code = cells.filter(cell => cell.type === 'code');
    return code.flatMap((cell, i) => cell.executionCount
        ? cell.sharedModel.outputs.filter(output => output.output_type === 'error')
            .map(output => `code cell ${i}: ${output.ename}: ${output.evalue}`)
        : [`code cell ${i} did not run`]);
}"""
