"""What a completion closes that the text after the cursor closes, too.

Editors write `)` and `"` behind the cursor as soon as their partners are typed, and models write them again. Such a
closer takes the place of the one that stands there: the text after the gap is read on behind it. Any other closer of a
bracket or string that the rest of the file closes means that the completion is over: its text ends before.

Knows syntax states and a right context. Must not know tokens.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from grammars.python_right import RightContext
from grammars.python_states import State
from grammars.python_strings import Literal, Opening, OpenString, level_of

CLOSING = re.compile(rb"[)\]}'\"]")
_BLANKS = b" \t"
_CLOSERS = (b")", b"]", b"}")


class Over:
    """The completion ended before the text that was read."""


OVER = Over()


@dataclass(frozen=True, slots=True)
class Closing:
    """How a completion, so far, stands to the text after the cursor.

    Attributes:
        right: that text, less what was written over.
        low: the fewest brackets that were open since the cursor; -1 where nothing stands after it to close any.
        covers: whether closers are still written over those after the cursor: all were so far.
        string: the string of the cursor, where that is still open and the text after the cursor closes it; else None.
        skip: bytes that are read again: they stand before the cursor.
        in_field: the cursor is in a replacement field of an f-string: nothing is written over there.
    """

    right: RightContext
    low: int
    covers: bool = True
    string: OpenString | None = None
    in_field: bool = False
    skip: int = 0

    @classmethod
    def at(cls, right: RightContext, skip: int = 0) -> Closing:
        """Nothing was read yet; so many bytes before the cursor will be read again first."""
        cursor = right.cursor
        string = OpenString.of(cursor.mode)
        in_field = string is None and level_of(cursor.mode)[0] > 0
        begun = in_field and isinstance(cursor.mode, Literal)  # the next byte may double the brace
        owed = string is not None and bool(right.suffix) and right.fits(cursor)
        low = cursor.machine.depth + begun if right.suffix.strip() else -1
        return cls(right, low, string=string if owed else None, in_field=in_field, skip=skip)

    @property
    def may_cover(self) -> bool:
        """Whether the text after the cursor begins with a closer that may be written over."""
        return self.covers and self.right.suffix.lstrip(_BLANKS).startswith(_CLOSERS)

    def after(self, state: State, text: bytes, read: State) -> Closing | Over | None:
        """The closing after `text`, which leads from `state` to `read`; None where it closes what it must not."""
        if self.skip:
            begun, rest = text[: self.skip], text[self.skip :]
            ready = replace(self, skip=self.skip - len(begun))
            cursor = state.run(begun) if rest else None
            return ready.after(cursor, rest, read) if cursor is not None else ready
        if (self.string is None and read.frame is state.frame) or not CLOSING.search(text):
            return self
        closing: Closing | Over | None = self
        for byte in text:
            following = state.step(byte)
            if not isinstance(closing, Closing) or following is None:
                return closing
            closing = closing._step(state, byte, following)
            state = following
        return closing

    def may_change(self, state: State, closers: int) -> bool:
        """Whether reading a text with so many closing brackets after `state` may close what was open before."""
        return self.skip > 0 or self.string is not None or state.frame.depth - closers < self.low

    def _step(self, state: State, byte: int, following: State) -> Closing | Over | None:
        closing: Closing | Over | None = self
        if self.string is not None and self.string.is_left(following.mode):
            # The second quote of an empty string is known to close it one byte later.
            opening = state.mode if isinstance(state.mode, Opening) else None
            closing = self._close_string(opening.style.quote if opening else byte, state if opening else following)
        if isinstance(closing, Closing) and following.machine.depth < closing.low:
            return closing._close_bracket(state, byte, following)
        return closing

    def _close_string(self, quote: int, following: State) -> Closing | Over:
        if self.covers and self.right.suffix[:1] == bytes((quote,)):
            return replace(self, right=self.right.behind(1, following), string=None)
        return OVER

    def _close_bracket(self, state: State, byte: int, following: State) -> Closing | Over | None:
        depth, suffix = following.machine.depth, self.right.suffix
        blanks = len(suffix) - len(suffix.lstrip(_BLANKS))
        if self.covers and not self.in_field and suffix[blanks : blanks + 1] == bytes((byte,)):
            return replace(self, right=self.right.behind(blanks + 1, following), low=depth)
        if self.in_field and suffix.strip() and self.right.fits(state):
            return OVER
        if depth >= self.right.best.depth:
            return replace(self, low=depth, covers=False)
        return OVER if self.right.may_end(state) else None
