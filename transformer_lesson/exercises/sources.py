"""A function's source as a learner would write it.

Short, and a file of its own, because solutions and explanations both show it.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable


def bare_source(function: Callable) -> str:
    """Return a function's source with its comments, without docstring and annotations."""
    source = textwrap.dedent(inspect.getsource(function))
    node = ast.parse(source).body[0]
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    start = node.body[0].lineno - 1
    if ast.get_docstring(node) is not None:
        start = node.body[0].end_lineno
    body = source.splitlines()[start:]
    return "\n".join([f"def {node.name}({ast.unparse(node.args)}):", *body])
