"""Whether a text fits into its gap: the document around it must read on as well as it can.

Knows documents as bytes and syntax states. Must not know tokens or who wrote the text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from grammars.python_cursor import LineCache, open_at_cursor
from grammars.python_right import RightContext
from grammars.python_states import State


@dataclass(slots=True)
class Gap:
    """The place of bytes [start, end) of a document; what stands there is to be replaced.

    Attributes:
        before: the syntax before the gap, None where the document is broken there: then everything fits.
        after: the bytes from `start` on.
        begun: what stands before the gap on its line.
    """

    before: State | None
    after: bytes
    begun: bytes = b""
    _rights: dict[int, RightContext] = field(default_factory=dict)

    @classmethod
    def at(cls, document: bytes, offset: int, lines: LineCache | None = None) -> Gap:
        """The gap that begins at byte `offset`. `lines` saves reading what a former call has read."""
        line = document[document.rfind(b"\n", 0, offset) + 1 : offset]
        return cls(open_at_cursor(document[:offset], lines).state, document[offset:], begun=line)

    def fits(self, text: bytes, replaced: int = 0) -> bool:
        """Whether `text` can be read where the gap is, and the document behind the next `replaced` bytes after it
        without a mistake that the best filling would not leave.

        A header or decorator that was begun before the gap may be finished, though what belongs to it is not there yet.
        """
        if self.before is None:
            return True
        state = self.before.run(text)
        if state is None:
            return False
        right = self._rights.get(replaced)
        if right is None:
            right = self._rights[replaced] = RightContext(self.after[replaced:], self.before)
        if right.may_end(state):
            return True
        rest = self._missing(text)
        whole = state.run(rest) if rest else None
        return whole is not None and right.may_end(whole)

    def _missing(self, text: bytes) -> bytes:
        """What a header or decorator lacks that was begun before the gap and is finished in it."""
        if self.begun.strip() and text.rstrip().endswith(b":"):
            return b" pass"
        if self.begun.lstrip().startswith(b"@"):
            return b"\n" + self.begun[: -len(self.begun.lstrip())] + b"def x(): pass"
        return b""
