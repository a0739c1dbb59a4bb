"""A real Chromium for the browser tests; without one they skip, except where CI must have it."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from tools.setup import LAB_SETTINGS

REPOSITORY = Path(__file__).parents[2]
KERNEL_IS_IDLE = """() => window.jupyterapp?.shell.currentWidget?.sessionContext
    ?.session?.kernel?.status === 'idle'"""
NAMES = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")  # its event loop must not outlive the file: nbval has its own
def chromium():
    """Yield the system's Chromium, headless, as playwright's browser."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        message = f"no browser found under the names {', '.join(NAMES)}: install chromium."
        (pytest.fail if os.environ.get("CI") else pytest.skip)(message)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """Yield the address of a JupyterLab that serves a copy of the lessons."""
    root = tmp_path_factory.mktemp("course")
    shutil.copytree(REPOSITORY / "notebooks", root / "notebooks")
    # every cell is in the page, also those out of sight
    for_tests = {"@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"}}
    for plugin, values in (LAB_SETTINGS | for_tests).items():
        file = root / "settings" / f"{plugin.replace(':', '/')}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
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
            server.wait(30)


def _wait_for(address, server, log, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(address):
                return
        except urllib.error.URLError:
            time.sleep(0.3)
    pytest.fail(f"JupyterLab did not answer within {seconds} s:\n{log.read_text()}")


@pytest.fixture
def page(chromium):
    """Yield a page whose every request to another machine is cut off and noted."""
    context = chromium.new_context(viewport={"width": 1400, "height": 1000})
    page = context.new_page()
    page.outside = []
    page.problems = []

    def only_this_machine(route):
        if urllib.parse.urlsplit(route.request.url).hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            page.outside.append(route.request.url)
            route.abort()

    context.route("**/*", only_this_machine)
    page.on("dialog", lambda dialog: (page.problems.append(dialog.message), dialog.dismiss()))
    page.on("pageerror", lambda error: page.problems.append(str(error)))
    yield page
    context.close()


@pytest.fixture
def open_lesson(lab, page):
    """Yield a function that opens a lesson, runs all its cells and returns the page."""

    def open_and_run(lesson: str):
        page.goto(f"{lab}/lab/tree/notebooks/{lesson}?reset", wait_until="domcontentloaded")
        page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
        page.wait_for_function(KERNEL_IS_IDLE, timeout=60_000)
        page.evaluate("() => window.jupyterapp.commands.execute('notebook:run-all-cells')")
        return page

    yield open_and_run
    page.evaluate("() => window.jupyterapp.commands.execute('kernelmenu:shutdown')")
