"""Attention views for pages without a kernel: what each is drawn from.

As an IPython extension it adds this to what a kernel shows. `make notebooks` loads it and keeps
the result beside the lessons, in `docs/stills`; the web site puts it into its pages.
"""

from transformer_lesson.figures.attention_view.view import AttentionView

MIME = "application/vnd.transformer-lesson.still+json"


def load_ipython_extension(shell) -> None:
    """Add what a page needs to whatever the kernel shows of an attention view."""

    def with_drawing(view: AttentionView):
        bundle, metadata = view._repr_mimebundle_()
        return bundle | {MIME: view.drawing}, metadata

    shell.display_formatter.mimebundle_formatter.for_type(AttentionView, with_drawing)
