"""The command `transformer-lesson`, which is also `python -m transformer_lesson.command`.

Nothing is imported before its command is asked for, so `--help` needs neither PyTorch nor
JupyterLab.
"""

import difflib
import sys
from importlib import import_module, metadata

COMMANDS = {  # name: module, its function that takes the arguments, what help says
    "lab": ("command.lab", "main", "open the lessons in JupyterLab; takes flags of `jupyter lab`"),
    "update": ("command.my_lessons", "main", "only make the copies, or bring them up to date"),
    "check": ("command.check", "main", "check the exercises in a file, without a notebook"),
    "progress": ("command.progress", "main", "write one page of all that you have built"),
    "weights": ("checkpoints.weights", "run", "fetch the weights of real models (179 MB)"),
    "grade": ("grading.__main__", "main", "grade a folder of students' notebooks"),
    "assistant": ("command.assistant", "main", "serve what an assistant may say to a learner"),
    "doctor": ("doctor.__main__", "main", "examine a Transformer of your own"),
}
ABOUT = """usage: transformer-lesson [COMMAND] [ARGUMENTS]

Without a command it copies the lessons to my_lessons/ in this folder, or brings the copies there up
to date around your work, and opens them in JupyterLab; it passes flags on, as in
transformer-lesson --no-browser --port=9000

{commands}

transformer-lesson COMMAND --help says more; --version says which course this is."""


def main(arguments: list[str] | None = None) -> int | str | None:
    """Run a command; return its exit status, or a sentence that says what is wrong."""
    name, *rest = (sys.argv[1:] if arguments is None else arguments) or [""]
    if name in ("-h", "--help"):
        lines = (f"  {command:9} {about}" for command, (*_, about) in COMMANDS.items())
        print(ABOUT.format(commands="\n".join(lines)))
        return 0
    if name == "--version":
        print(f"transformer_lesson {metadata.version('transformer_lesson')}")
        return 0
    if name.startswith("-") or not name:
        name, rest = "lab", [name, *rest] if name else rest
    if name not in COMMANDS:
        close = difflib.get_close_matches(name, COMMANDS, cutoff=0.5) or COMMANDS
        return f"There is no command {name!r}: did you mean {' or '.join(close)}?"
    module, function, _ = COMMANDS[name]
    try:
        run = getattr(import_module(f"transformer_lesson.{module}"), function)
        return run(rest)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("transformer_lesson"):
            raise
        return (
            f"`transformer-lesson {name}` needs the package {error.name!r}, which is missing here: "
            "install the course with all that it needs, as in "
            f"`{sys.executable} -m pip install 'transformer_lesson[lessons,lab]'`."
        )
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
