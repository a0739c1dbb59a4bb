"""A mistyped call: a notebook shows one sentence for it and no traceback."""


class Misuse(ValueError):
    """An invalid call; the text says what was passed and what is allowed."""

    def _render_traceback_(self) -> list[str]:
        """Return what IPython shows instead of a traceback."""
        return [str(self)]
