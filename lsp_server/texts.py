"""The newest text of each document, and which of them are being written.

Knows views, bytes and revisions; nothing of what is suggested for them.
"""

from __future__ import annotations

from lsp_server.documents import View


class Texts:
    """What the session was told of the documents."""

    def __init__(self) -> None:
        self._newest: dict[str, tuple[int, bytes]] = {}
        self._written: set[str] = set()

    def note(self, uri: str, data: bytes, revision: int) -> None:
        """A document was opened or edited."""
        if uri in self._newest:
            self._written.add(uri)
        self._newest[uri] = revision, data

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._newest.pop(uri, None)
        self._written.discard(uri)

    def overtaken(self, view: View) -> bool:
        """Whether the view's document has changed since."""
        revision, _ = self._newest.get(view.uri, (view.revision, b""))
        return revision > view.revision

    def newest(self, view: View) -> bytes:
        """The text of the view's document now."""
        return self._newest.get(view.uri, (view.revision, view.data))[1]

    def is_written(self, uri: str) -> bool:
        """Whether it was edited since it was opened."""
        return uri in self._written
