"""What an assistant may say to a learner, as tools of the Model Context Protocol.

An editor starts `transformer-lesson assistant` and talks to it on standard input and output. The
tools give what `transformer-lesson check` gives, and no line of a solution. What an assistant adds
is its own.
"""

import argparse
from pathlib import Path
from typing import Any

from transformer_lesson.command.my_lessons import FOR_ASSISTANTS

PARSER = argparse.ArgumentParser("transformer-lesson assistant", description=__doc__)
MISSING = "The tools need the package mcp: pip install mcp, or uvx --with mcp in place of uvx."

# PyTorch is imported by the first call: an editor does not wait long for a server.


def check(file: str, exercise: str) -> dict[str, Any]:
    """Check a learner's function in a .py or .ipynb file.

    It gives the status, the named cause, why it is wrong, the smallest failing example, the first
    hint and the heading to read again.
    """
    from transformer_lesson.command.check import Unusable, reports_on
    from transformer_lesson.exercises.engine.help import help_with

    try:
        (report,) = reports_on(Path(file), exercise)
    except (Unusable, ValueError, OSError) as error:  # no such file, exercise or function
        return {"exercise": exercise, "status": "not checked", "why": str(error)}
    return help_with(report)._asdict()


def hint(exercise: str, number: int = 1) -> str:
    """Give one hint for an exercise; 1 is the first, and each tells more than the one before."""
    from transformer_lesson.exercises.engine.help import hint_of

    try:
        return hint_of(exercise, number)
    except ValueError as error:  # no such exercise or hint
        return str(error)


def heading(exercise: str) -> str:
    """Name the heading under which a lesson explains what an exercise needs."""
    from transformer_lesson.exercises.engine.help import heading_of

    try:
        title, notebook = heading_of(exercise)
    except ValueError as error:
        return str(error)
    return f"“{title}” in {notebook}"


def make_server() -> Any:
    """Return the server, an `MCPServer`."""
    from mcp.server import MCPServer

    server = MCPServer("transformer-lesson", instructions=FOR_ASSISTANTS.read_text("utf-8"))
    for tool in (check, hint, heading):
        server.tool()(tool)
    return server


def main(arguments: list[str]) -> str | None:
    """Serve until the editor closes; return what is missing, if anything is."""
    PARSER.parse_args(arguments)
    try:
        server = make_server()
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        return MISSING
    server.run()
    return None
