"""What is on the screen, as far as a server can know, and what became of it.

Knows generations and counts; the protocol tells neither that a suggestion was dismissed nor that a part of it was
taken, so both are inferred from the edits that follow.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from decoding.trimming import Trimmed
from lsp_server.counts import Counts
from lsp_server.documents import View
from lsp_server.generation import Generation

_REMEMBERED = 200
_PLACE = 200
"""Bytes before the cursor that make a place."""


@dataclass(slots=True)
class _Visible:
    generation: Generation
    view: View
    suggestion: Trimmed
    length: int
    """Of the document when it was last looked at."""

    def accepted(self, data: bytes) -> bool:
        """Whether the document is what accepting all of it makes."""
        suggestion = self.suggestion
        return data == self.view.what_if(suggestion.start, suggestion.end, suggestion.text).data


class Shown:
    """The suggestion that each document shows, and those that were turned down."""

    def __init__(self, counts: Counts) -> None:
        self._counts = counts
        self._visible: dict[str, _Visible] = {}
        self._dismissed: OrderedDict[int, None] = OrderedDict()

    def show(self, generation: Generation, view: View, suggestion: Trimmed) -> None:
        """A suggestion is being answered."""
        if not generation.seen:
            generation.seen = True
            self._counts.tokens_shown += generation.tokens
        self._visible[view.uri] = _Visible(generation, view, suggestion, len(view.data))

    def generation(self, uri: str) -> Generation | None:
        """Whose text the document shows."""
        visible = self._visible.get(uri)
        return visible.generation if visible is not None else None

    def edited(self, uri: str, data: bytes) -> None:
        """The document changed: what it showed was taken, in whole or in part, typed, or turned down."""
        visible = self._visible.get(uri)
        if visible is None:
            return
        grown, visible.length = len(data) - visible.length, len(data)
        if visible.accepted(data):
            del self._visible[uri]
        elif not visible.generation.agrees(data):
            self._counts.dismissed += 1
            self._remember(_place(visible.view, visible.suggestion.text))
            del self._visible[uri]
        elif grown > 1:
            self._counts.partly_accepted += 1

    def closed(self, uri: str) -> None:
        """The document is gone."""
        self._visible.pop(uri, None)

    def unwanted(self, view: View, suggestion: Trimmed) -> bool:
        """Whether this very text was turned down at this very place."""
        return _place(view, suggestion.text) in self._dismissed

    def forgive(self, view: View, suggestion: Trimmed) -> None:
        """The user asked for it after all."""
        self._dismissed.pop(_place(view, suggestion.text), None)

    def _remember(self, place: int) -> None:
        self._dismissed[place] = None
        if len(self._dismissed) > _REMEMBERED:
            self._dismissed.popitem(last=False)


def _place(view: View, text: str) -> int:
    return hash((view.uri, view.data[max(0, view.offset - _PLACE) : view.offset], text))
