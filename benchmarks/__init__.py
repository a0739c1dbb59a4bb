"""What is measured by hand; `python -m benchmarks.NAME --help` says what, and measures nothing.

Short, because each module measures one thing.
"""

import ast
import sys
from pathlib import Path

if sys.argv[0] == "-m" and {"-h", "--help"} & set(sys.argv):  # a module of this package is to run
    _name = sys.orig_argv[sys.orig_argv.index("-m") + 1].removeprefix(f"{__name__}.")
    _source = Path(__file__).with_name(f"{_name}.py")
    if _source.exists() and "argparse" not in (_code := _source.read_text(encoding="utf-8")):
        print(ast.get_docstring(ast.parse(_code)))
        sys.exit()
