"""What tests of explorables get, for those that one lesson shows."""

from tests.explorables.conftest import chromium, pytest_itemcollected, show, tab

__all__ = ["chromium", "pytest_itemcollected", "show", "tab"]
