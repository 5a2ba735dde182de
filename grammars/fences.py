"""Markdown whose ```python fences are held to Python's syntax.

Knows fences, token bytes and the syntax constraint. Must not know models or what an answer is about. A fence can be
closed only where its code may end, and an answer cannot end inside of one, so that every python fence that is not cut
off by a limit parses. Fences of other languages, or of none, may hold anything.

So that every reader sees the same fences, some ways of writing them are not offered: indented ones, tildes, more than
three backticks, and an opening line inside of a fence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Bitmask, Constraint, bitmask_to_bool, validate_by_advancing
from grammars.python_closing import Closing
from grammars.python_constraint import PythonConstraint, PythonState
from grammars.python_parser import ANYWHERE
from grammars.python_right import RightContext
from grammars.python_states import python
from grammars.vocabulary import Vocabulary

Where = Literal["prose", "other", "closing"]

_TICKS = b"```"
_PYTHON_NAMES = frozenset({b"python", b"py", b"python3"})
_MAY_BECOME_FENCE = frozenset({b"", b"`", b"``", b"~", b"~~"})
_NEWLINE = 0x0A
_LONGEST_KEPT_LINE = 24
"""Masks of lines that begin like a fence are kept up to this length."""


class FenceGrammar:
    """The grammar of one vocabulary; makes the states."""

    def __init__(self, code: PythonConstraint) -> None:
        """`code` says what Python is, over the same vocabulary."""
        self.code = code
        self.vocabulary: Vocabulary = code.vocabulary
        tokens = self.vocabulary.tokens
        self.marked = [token for token, text in enumerate(tokens) if any(byte in b"`~\n" for byte in text)]
        """Tokens that can begin or end a fence; all others may stand anywhere in prose."""
        self.ticks = [token for token in self.marked if b"`" in tokens[token]]
        self._masks: dict[tuple[Where, bytes | None], Bitmask] = {}

    def prose(self) -> Constraint:
        """The state before an answer."""
        return Prose(self, "prose", b"")

    def mid_line(self) -> Constraint:
        """The state in a line of prose that has begun: it cannot become the line of a fence."""
        return Prose(self, "prose", None)

    def in_code(self, code: str) -> Constraint | None:
        """The state inside a python fence that holds `code` so far; None where that cannot become Python."""
        return self.code_state(code.encode("utf-8"))

    def code_state(self, code: bytes) -> InCode | None:
        """See `in_code`. The code may stand in any function or loop: an answer may quote from the middle of one."""
        state = python().start(ANYWHERE).read(code) if code else python().start(ANYWHERE)
        if state is None:
            return None
        line = code.rsplit(b"\n", 1)[-1]
        return InCode(self, PythonState(self.code, state, Closing.at(RightContext(b"", state))), _kept(line))

    def kept_mask(self, state: Prose) -> Bitmask:
        """The mask of a state of prose."""
        key = (state.where, state.line)
        found = self._masks.get(key)
        if found is None:
            found = self._prose_mask(state)
            if state.line is None or len(state.line) <= _LONGEST_KEPT_LINE:
                self._masks[key] = found
        return found

    def _prose_mask(self, state: Prose) -> Bitmask:
        allowed = np.zeros((self.vocabulary.size + 31) // 32 * 32, dtype=np.bool_)
        asked = self.marked
        if state.where == "closing" or (state.where == "other" and (state.line or b"").startswith(_TICKS)):
            asked = [t for t, text in enumerate(self.vocabulary.tokens) if text and text[0] in b"` \t\r\n"]
        else:
            allowed[self.vocabulary.sorted_ids] = True
        for token in asked:
            allowed[token] = state.advance(token) is not None
        if state.may_end:
            allowed[list(self.vocabulary.end)] = True
        return _packed(allowed)


@dataclass(frozen=True, slots=True)
class Prose:
    """Outside of Python.

    Attributes:
        where: in prose, in a fence of another language, or in the backticks that close a python fence and behind
            them.
        line: the line so far while it is or may become a fence's line (spaces, backticks and what follows them), None
            once it is any other.
    """

    grammar: FenceGrammar = field(repr=False)
    where: Where
    line: bytes | None

    @property
    def may_end(self) -> bool:
        """Whether the answer may end here: not inside a fence, nor in the line that opens one."""
        begins_fence = (self.line or b"").startswith(_TICKS)
        return begins_fence if self.where == "closing" else self.where == "prose" and not begins_fence

    def read(self, text: bytes) -> Constraint | None:
        """The state after `text`."""
        state = self
        for position, byte in enumerate(text):
            if byte != _NEWLINE:
                after = state._next_byte(byte)
                if after is None:
                    return None
                state = after
            elif state._opens_python():
                return self.grammar.code_state(text[position + 1 :])
            elif state.where == "closing" and state.line != _TICKS:
                return None
            else:
                state = state._next_line()
        return state

    def _next_byte(self, byte: int) -> Prose | None:
        if self.where == "closing" and self.line == _TICKS:
            return self if byte in b" \t\r" else None
        if self.line is None:
            return self
        line = self.line + bytes((byte,))
        if self.where == "closing":
            return Prose(self.grammar, "closing", line) if _TICKS.startswith(line) else None
        stripped = line.lstrip(b" \t")
        if line.startswith(_TICKS):
            odd = b"`" in line[3:] or (self.where == "other" and line[3:].strip(b" \t\r"))
            return None if odd else Prose(self.grammar, self.where, line)
        if stripped in (_TICKS, b"~~~"):
            return None
        return Prose(self.grammar, self.where, line if stripped in _MAY_BECOME_FENCE else None)

    def _opens_python(self) -> bool:
        line = self.line or b""
        return self.where == "prose" and line.startswith(_TICKS) and line[3:].strip().lower() in _PYTHON_NAMES

    def _next_line(self) -> Prose:
        line = self.line or b""
        where: Where = "prose" if self.where == "closing" else self.where
        if self.where != "closing" and line.startswith(_TICKS):
            where = "other" if self.where == "prose" else "prose"
        return Prose(self.grammar, where, b"")

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        text = _text(self.grammar.vocabulary, token)
        return self.read(text) if text else None

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        if token in self.grammar.vocabulary.end:
            return self.may_end
        return self.advance(token) is not None

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask:
        """See `Constraint`."""
        return self.grammar.kept_mask(self)

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return None

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return 0.0


@dataclass(frozen=True, slots=True)
class InCode:
    """Inside a python fence.

    Attributes:
        code: the syntax of the code so far.
        line: its last line while that may become the line of a fence, None once it cannot.
    """

    grammar: FenceGrammar = field(repr=False)
    code: PythonState
    line: bytes | None

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        text = _text(self.grammar.vocabulary, token)
        if not text:
            return None
        if self.line == b"" and text.startswith(b"`"):
            return Prose(self.grammar, "closing", b"").read(text) if self._may_close() else None
        lines = text.split(b"\n")
        begun = None if self.line is None else self.line + lines[0]
        started = [*([] if begun is None else [begun]), *lines[1:]]
        if any(line.lstrip(b" \t").startswith(_TICKS) for line in started):
            return None
        code = self.code.advance(token)
        if code is not None and code.over:  # backticks in the middle of a line close no fence
            return None
        last = lines[-1] if len(lines) > 1 else begun
        return code and InCode(self.grammar, code, _kept(last))

    def _may_close(self) -> bool:
        return self.code.syntax is not None and self.code.syntax.may_end()

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        return self.advance(token) is not None

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask:
        """See `Constraint`."""
        vocabulary = self.grammar.vocabulary
        allowed = np.zeros((vocabulary.size + 31) // 32 * 32, dtype=np.bool_)
        mask = self.code.allowed()
        if mask is None:
            allowed[vocabulary.sorted_ids] = True
        else:
            allowed[: vocabulary.size] = bitmask_to_bool(mask, vocabulary.size)
        allowed[list(vocabulary.end)] = False
        for token in self.grammar.ticks:
            allowed[token] = self.advance(token) is not None
        return _packed(allowed)

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return self.code.penalty()

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return self.code.penalty_of(token)


def _kept(line: bytes | None) -> bytes | None:
    return line if line is not None and line.lstrip(b" \t") in _MAY_BECOME_FENCE else None


def _text(vocabulary: Vocabulary, token: int) -> bytes:
    return vocabulary.tokens[token] if 0 <= token < vocabulary.size else b""


def _packed(allowed: NDArray[np.bool_]) -> Bitmask:
    return np.packbits(allowed, bitorder="little").view(np.int32)
