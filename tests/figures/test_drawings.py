"""A kernel that executes lessons keeps what attention views are drawn from."""

import torch
from IPython.core.interactiveshell import InteractiveShell

from transformer_lesson.figures.attention_view.drawings import MIME, load_ipython_extension
from transformer_lesson.figures.attention_view.view import head_view


def test_a_kernel_with_the_extension_shows_what_a_page_needs():
    shell = InteractiveShell()
    load_ipython_extension(shell)
    view = head_view([torch.full((1, 1, 2, 2), 0.5)], ["a", "b"])
    data, _ = shell.display_formatter.format(view)
    assert data[MIME] == view.drawing
    assert data["text/plain"] == repr(view) and "image/png" in data
