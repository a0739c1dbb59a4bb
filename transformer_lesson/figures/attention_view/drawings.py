"""The data of attention views, for pages without a kernel.

As an IPython extension this module adds the data to what a kernel shows. `make notebooks` loads it
and stores the result in `docs/stills`; the web site puts it into its pages.
"""

from transformer_lesson.figures.attention_view.view import AttentionView

MIME = "application/vnd.transformer-lesson.still+json"


def load_ipython_extension(shell) -> None:
    """Add a view's data to the kernel's output."""

    def with_drawing(view: AttentionView):
        bundle, metadata = view._repr_mimebundle_()
        return bundle | {MIME: view.drawing}, metadata

    shell.display_formatter.mimebundle_formatter.for_type(AttentionView, with_drawing)
