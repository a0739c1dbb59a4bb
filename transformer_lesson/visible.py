"""Text that anybody typed or pasted, as text that can be shown and sent anywhere."""

JOINERS = "\u200c\u200d"  # they hold emoji and Persian words together


def visible(text: str, longest: int | None = None, keep: str = "") -> str:
    r"""Write what cannot be seen as an escape: a null byte as `\x00`, half a pair as `\ud83d`.

    What is left turns no line around, moves no cursor and can be sent as UTF-8.

    Args:
        text: anything.
        longest: characters that the result may have; more are cut off with "…".
        keep: characters that stay as they are, such as a line break.
    """
    seen = JOINERS + keep
    shown = "".join(
        c if c.isprintable() or c in seen else c.encode("unicode_escape").decode()
        for c in (text if longest is None else text[: longest + 1])
    )
    return shown if longest is None or len(shown) <= longest else shown[: longest - 1] + "…"
