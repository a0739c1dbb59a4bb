"""What is made once and handed out often, as a copy: nobody can change what another gets.

Short, because it is one decorator. What cannot be changed needs only `functools.cache`.
"""

import copy
import functools
from collections.abc import Callable


def copied(make: Callable) -> Callable:
    """Return a function that calls `make` once for each set of arguments, and copies its result."""
    original = functools.cache(make)

    @functools.wraps(make)
    def fresh(*arguments, **named):
        return copy.deepcopy(original(*arguments, **named))

    fresh.cache_clear = original.cache_clear
    return fresh
