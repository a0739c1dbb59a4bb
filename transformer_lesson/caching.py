"""What is made once and handed out often, as a copy: nobody can change what another gets.

Short, because it is one decorator. What cannot be changed needs only `functools.cache`.
"""

import functools
import pickle
from collections.abc import Callable


def copied(make: Callable) -> Callable:
    """Return a function that calls `make` once for each set of arguments, and copies its result.

    It is kept as bytes, from which a copy is made five to ten times as fast as by `deepcopy`.
    """
    kept = functools.cache(lambda *arguments, **named: pickle.dumps(make(*arguments, **named)))

    @functools.wraps(make)
    def fresh(*arguments, **named):
        return pickle.loads(kept(*arguments, **named))

    fresh.cache_clear = kept.cache_clear
    return fresh
