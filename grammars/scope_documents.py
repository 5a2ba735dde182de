"""The scope indexes of the documents that were asked for lately: a keystroke refreshes, it does not rebuild.

Knows document names and text. Must not know who edits.
"""

from __future__ import annotations

from collections import OrderedDict

from grammars.python_lines import has_long_line
from grammars.scope_index import ScopeIndex
from grammars.text_diff import changed_range

_MOST_BYTES = 1_000_000
"""Longer documents have no scope: their first index would take seconds, and what is in them is mostly data."""


class ScopeDocuments:
    """One index per document, the least recently used leaves."""

    def __init__(self, most: int = 8) -> None:
        """`most` documents are kept; an index of a 3,000-line file takes a few megabytes."""
        self._most = most
        self._kept: OrderedDict[str, ScopeIndex] = OrderedDict()

    def index(self, uri: str, text: bytes) -> ScopeIndex | None:
        """The index of `text`, made from the document's last one; None where it, or one of its lines, is too long."""
        if len(text) > _MOST_BYTES or has_long_line(text):
            self.forget(uri)
            return None
        old = self._kept.pop(uri, None)
        new = (
            ScopeIndex.of(text)
            if old is None
            else old
            if old.text == text
            else old.edited(*changed_range(old.text, text))
        )
        self._kept[uri] = new
        while len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return new

    def latest(self, uri: str) -> ScopeIndex | None:
        """The index that was made last for a document, None where there is none."""
        return self._kept.get(uri)

    def forget(self, uri: str) -> None:
        """Drop a document."""
        self._kept.pop(uri, None)
