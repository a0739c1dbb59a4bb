"""A call that a learner mistyped: a notebook shows one sentence for it, and no traceback."""


class Misuse(ValueError):
    """A call that nothing can answer; the text says what was given, and what may be."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows in place of a traceback."""
        return [str(self)]
