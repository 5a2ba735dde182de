"""Python syntax as a constraint over tokens: one vocabulary, states opened at the cursor of a document.

Knows tokens, documents as bytes, and the syntax. Must not know names and scopes (scopes.py), models or draft trees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Bitmask, bit_is_set, bitmask_of
from grammars.python_closing import OVER, Closing, Over
from grammars.python_cursor import LineCache, open_at_cursor
from grammars.python_filling import Gap
from grammars.python_masks import SyntaxMasks
from grammars.python_right import RightContext
from grammars.python_states import Spot, State, python
from grammars.vocabulary import Vocabulary
from grammars.warm_sample import SAMPLE, typical_sources

_MOST_NEWLINES = 12
_MOST_SPACES = 160
"""So much white space may be written in one go. In the standard library no more than 6 newlines follow each other, and
no more than 72 other blanks; models that loop write either without end."""
_BLANKS = b" \t\n\r\f"
_CLOSERS = (b")", b"]", b"}")
_FENCE = b"`"
_WARM_STEP = 7
_WARM_MASKS = 40
_PIECE = re.compile(rb" ?[A-Za-z_]+|[0-9]| +|\n *|[^\sA-Za-z0-9_]+|[^A-Za-z_]")
"""About what tokens are."""


class BlankRun(NamedTuple):
    """White space written in one go: its newlines, and the blanks after the last of them."""

    newlines: int = 0
    spaces: int = 0


_NO_BLANKS = BlankRun()


class BlankTokens:
    """The tokens of white space only."""

    def __init__(self, vocabulary: Vocabulary, ids: list[int]) -> None:
        texts = [vocabulary.tokens[token] for token in ids]
        self._size = vocabulary.size
        self._ids = np.asarray(ids, dtype=np.int32)
        self._newlines = np.array([text.count(b"\n") for text in texts], dtype=np.int32)
        self._tails = np.array([len(text.rpartition(b"\n")[2]) for text in texts], dtype=np.int32)
        self._runs = {
            token: BlankRun(int(newlines), int(tail))
            for token, newlines, tail in zip(ids, self._newlines, self._tails, strict=True)
        }

    def after(self, run: BlankRun, token: int) -> BlankRun | None:
        """The run after one more token, None where it becomes too long. Anything else than white space ends it."""
        more = self._runs.get(token)
        if more is None:
            return _NO_BLANKS
        spaces = more.spaces if more.newlines else run.spaces + more.spaces
        newlines = run.newlines + more.newlines
        return BlankRun(newlines, spaces) if newlines <= _MOST_NEWLINES and spaces <= _MOST_SPACES else None

    def may_be_too_long(self, run: BlankRun, tokens: Sequence[int]) -> bool:
        """Whether `tokens` may hold so much white space that it is too long after `run`."""
        newlines, spaces = run
        for token in tokens:
            more = self._runs.get(token)
            if more is not None:
                newlines += more.newlines
                spaces += more.spaces
        return newlines > _MOST_NEWLINES or spaces > _MOST_SPACES

    def too_long(self, run: BlankRun) -> Bitmask:
        """Those that would make `run` too long."""
        spaces = np.where(self._newlines > 0, self._tails, self._tails + run.spaces)
        refused = (self._newlines + run.newlines > _MOST_NEWLINES) | (spaces > _MOST_SPACES)
        return bitmask_of(self._ids[refused], self._size)


class PythonConstraint:
    """Python syntax over the tokens of one vocabulary. Make one per tokenizer and share it.

    Args:
        vocabulary: the bytes of every token.

    Attributes:
        closers: the tokens with closing brackets, and how many each has.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.masks = SyntaxMasks(vocabulary)
        self._lines = LineCache()
        self.blanks = BlankTokens(vocabulary, self.masks.sets.where(lambda text: not text.strip(_BLANKS)))
        counts = {token: sum(map(vocabulary.tokens[token].count, _CLOSERS)) for token in self.masks.sets.ordinary}
        self.closers = {token: count for token, count in counts.items() if count}
        self.end_mask = self.masks.sets.mask(vocabulary.end)
        self.fences = self.masks.sets.mask(self.masks.sets.where(lambda text: text.startswith(_FENCE)))

    def warm(self) -> None:
        """Make what most requests need: all of `warming` at once, one to three seconds for 152,000 tokens."""
        for _ in self.warming():
            pass

    def warming(self) -> Iterator[None]:
        """Make what most requests need, a few milliseconds between two steps. Optional: a request that comes before
        it is over makes what it needs itself. For idle times; one constraint is used by one thread."""
        yield from self._read_sample()
        for text in typical_sources():
            yield from self._read_typical(text)

    def _read_sample(self) -> Iterator[None]:
        state: State | None = python().start()
        for number, byte in enumerate(SAMPLE):
            state = state and state.step(byte)
            if state is None:
                return
            self.masks.prepare(state.mode)
            if number % _WARM_STEP == 0:
                self.masks.mask(state)
            yield

    def _read_typical(self, text: bytes) -> Iterator[None]:
        state: State | None = python().start()
        for number, piece in enumerate(_PIECE.finditer(text)):
            state = state and state.read(piece[0])
            if state is None:
                return
            if number % _WARM_MASKS == 0:
                self.masks.mask(state)
                yield

    def study(self, tokens: Sequence[int]) -> None:
        """Read the tokens around a cursor ahead, about 4 µs each the first time: what is drafted there resembles them,
        and a branch of eight tokens is then validated in 16 µs instead of 35. For idle times."""
        texts = self.vocabulary.tokens
        start = state = python().start()
        for token in tokens:
            text = texts[token] if 0 <= token < len(texts) else b""
            # A window begins anywhere and holds marks: behind what cannot be read it goes on afresh.
            state = (state.read(text) if text else None) or start

    def open(self, text: bytes, offset: int, *, suffix: bool = True, again: int = 0) -> PythonState:
        """The state at byte `offset` of a document.

        Args:
            text: the whole document, UTF-8.
            offset: the cursor. What stands after it decides where the completion may end.
            suffix: False where what is generated replaces everything after the cursor.
            again: so many bytes before the cursor will be read again: the state stands before them.

        Never raises and never blocks: where the code at the cursor is broken already, the state allows everything
        and says why in `off_reason`.
        """
        begin = offset - again
        opened = open_at_cursor(text[:begin], self._lines)
        if opened.state is None:
            return PythonState(self, None, None, off_reason=opened.off_reason)
        cursor = opened.state.run(text[begin:offset])
        if cursor is None:
            return PythonState(self, None, None, off_reason="the code at the cursor is broken")
        right = RightContext(text[offset:] if suffix else b"", cursor)
        return PythonState(self, opened.state, Closing.at(right, again))

    def gap(self, text: bytes, offset: int) -> Gap:
        """The gap at byte `offset` of a document, to ask what fits there."""
        return Gap.at(text, offset, self._lines)


class PythonState:
    """One immutable state: see `grammars.constraint.Constraint`.

    Attributes:
        off_reason: why the constraint is off and everything is allowed, or None where it is on.
    """

    __slots__ = ("_blanks", "_closing", "_constraint", "_mask", "_next", "_over", "_syntax", "off_reason")

    def __init__(
        self,
        constraint: PythonConstraint,
        syntax: State | None,
        closing: Closing | None,
        blanks: BlankRun = _NO_BLANKS,
        off_reason: str | None = None,
        over: bool = False,
    ) -> None:
        self._constraint = constraint
        self._syntax = syntax
        self._closing = closing
        self._blanks = blanks
        self._over = over  # the completion ended before the last token: only the end of the text may follow
        self.off_reason = off_reason
        self._next: dict[int, PythonState | None] | None = None
        self._mask: Bitmask | None = None

    @property
    def syntax(self) -> State | None:
        """The syntax state, None where the constraint is off."""
        return self._syntax

    @property
    def over(self) -> bool:
        """Whether the completion ended before the last token: only the end of the text may follow."""
        return self._over

    def advance(self, token: int) -> PythonState | None:
        """The state after `token`, or None where it is forbidden."""
        if self._next is None:
            self._next = {}
        elif token in self._next:
            return self._next[token]
        state = self._next[token] = self._advance(token)
        return state

    def _advance(self, token: int) -> PythonState | None:
        if self._syntax is None or self._closing is None:
            return self
        if self._over:
            return None
        constraint = self._constraint
        read = self._read(self._syntax, self._closing, token)
        blanks = constraint.blanks.after(self._blanks, token)
        if read is None or blanks is None:
            return None
        syntax, closing = read
        if isinstance(closing, Over):
            return PythonState(constraint, self._syntax, self._closing, over=True)
        return PythonState(constraint, syntax, closing, blanks)

    def _read(self, syntax: State, closing: Closing, token: int) -> tuple[State, Closing | Over] | None:
        """The syntax after `token`, and what it closes; None where it is forbidden."""
        texts = self._constraint.vocabulary.tokens
        text = texts[token] if 0 <= token < len(texts) else b""
        read = syntax.read(text) if text else None
        if read is None:
            # Models close the fence of an answer where they have no more to say: in code it can only be that.
            return (syntax, OVER) if text.startswith(_FENCE) and closing.right.may_end(syntax) else None
        if closing.string is None and not closing.skip and read.frame is syntax.frame:
            return read, closing
        after = closing.after(syntax, text, read)
        return None if after is None else (read, after)

    def permits(self, token: int) -> bool:
        """Whether `token` may come next; an end of text where the text after the cursor then still fits."""
        if token in self._constraint.vocabulary.end:
            return self._may_end()
        return self.advance(token) is not None

    def _may_end(self) -> bool:
        return self._over or self._syntax is None or self._closing is None or self._closing.right.may_end(self._syntax)

    def validate(self, tokens: Sequence[int]) -> int:
        """How many of `tokens`, read from here, are allowed. An end of text is the last that can be."""
        constraint, syntax, closing = self._constraint, self._syntax, self._closing
        if syntax is None or closing is None:
            return len(tokens)
        if (
            self._over
            or closing.string is not None
            or closing.skip
            or constraint.blanks.may_be_too_long(self._blanks, tokens)
        ):
            return self._validate_each(tokens)
        texts = constraint.vocabulary.tokens
        spot, frame = syntax
        for count, token in enumerate(tokens):
            text = texts[token] if 0 <= token < len(texts) else b""
            found = spot.after.get(spot.mode.texts.get(text))
            if found.__class__ is Spot:  # remembered, and it opens and closes nothing: most tokens
                spot = found
                continue
            state = State(spot, frame)
            read = state.read(text) if text else None
            if read is None or closing.may_change(state, constraint.closers.get(token, 0)):
                return count + PythonState(constraint, state, closing)._validate_each(tokens[count:])
            spot, frame = read
        return len(tokens)

    def _validate_each(self, tokens: Sequence[int]) -> int:
        state = self
        for count, token in enumerate(tokens):
            following = state.advance(token)
            if following is None:
                return count + (token in self._constraint.vocabulary.end and state._may_end())
            state = following
        return len(tokens)

    def allowed(self) -> Bitmask | None:
        """int32[ceil(V / 32)], or None where the constraint is off. Shared: do not write into it."""
        if self._syntax is None:
            return None
        if self._mask is None:
            self._mask = self._constraint.end_mask if self._over else self._compute_mask(self._syntax)
        return self._mask

    def _compute_mask(self, syntax: State) -> Bitmask:
        constraint, closing = self._constraint, self._closing
        mask = constraint.masks.mask(syntax)
        mask = mask & ~constraint.blanks.too_long(self._blanks)
        if syntax.machine.depth and closing is not None and (closing.may_cover or closing.right.best.depth):
            refused = [t for t in constraint.closers if bit_is_set(mask, t) and self.advance(t) is None]
            mask = mask & ~constraint.masks.sets.mask(refused)
        return mask | constraint.end_mask | constraint.fences if self._may_end() else mask

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """Syntax has no soft preferences."""
        return None

    def penalty_of(self, token: int) -> float:
        """Syntax has no soft preferences."""
        return 0.0
