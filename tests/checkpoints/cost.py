"""What reading a file may cost, and what it must not do."""

import os
import resource
from contextlib import contextmanager


@contextmanager
def little_memory(kibibytes: int = 50_000):
    """Inside, the process must not come to need more memory than this above its peak before."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < kibibytes


class Bomb:
    """Ends the test run if it is unpickled."""

    def __reduce__(self):
        return os._exit, (7,)
