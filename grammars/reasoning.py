"""Thought blocks as a constraint: a mark, at most so many tokens of thought, the closing mark, then an answer.

Knows token bytes. Must not know models, prompts or what is thought about. The block is closed by force when its
budget is used up, wherever that happens, so that a text is never cut inside of it; states are immutable like those of
every constraint, so a draft tree may cross any boundary.

Three kinds of model, one machine: marks that are tokens of their own, marks that are plain text, and models that know
no thoughts at all, which write a plan section before their answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from grammars.constraint import Bitmask, Constraint, bitmask_of, validate_by_advancing
from grammars.vocabulary import Vocabulary

_ANSWER_SHARE = 4
_MOST_RESERVED = 64
"""Of a limit on all tokens, a quarter, or 64 if that is less, is kept for the answer."""


@dataclass(frozen=True, slots=True)
class ThoughtMarks:
    """What a model's thoughts stand between.

    Attributes:
        open, close: the marks as readers see them.
        open_token, close_token: the ids, where each mark is one special token.
        unwanted: texts that may not occur in a thought.
    """

    open: bytes = b"<think>\n"
    close: bytes = b"</think>"
    open_token: int | None = None
    close_token: int | None = None
    unwanted: tuple[bytes, ...] = ()

    @property
    def shown_tokens(self) -> dict[int, bytes]:
        """The text of the marks that are tokens: a vocabulary has none for them."""
        pairs = ((self.open_token, self.open), (self.close_token, self.close))
        return {token: text.strip() for token, text in pairs if token is not None}


TEXT_MARKS = ThoughtMarks()
PLAN_MARKS = ThoughtMarks(b"### Plan\n", b"\n### Answer\n", unwanted=(b"```",))
"""For models that know no thoughts. An open code fence would swallow the answer's heading."""


class ThoughtGrammar:
    """The grammar of one vocabulary and one pair of marks; makes the states."""

    def __init__(self, vocabulary: Vocabulary, marks: ThoughtMarks) -> None:
        self.vocabulary = vocabulary
        self.marks = marks
        opening = marks.open.strip()
        closes_as_text = marks.close_token is None
        self.in_thought = TextWatch(
            vocabulary,
            (opening, *marks.unwanted, *(() if closes_as_text else (marks.close,))),
            marks.close if closes_as_text else None,
        )
        self.in_answer = TextWatch(vocabulary, (_like(opening, marks.close), marks.close))
        self.closing_cost = max(
            self._cost(*self._closing(marks.close[:size])) for size in range(len(marks.close) if closes_as_text else 1)
        )
        """The most tokens that closing by force can take."""
        self.opening_cost = 1 if marks.open_token is not None else self._cost(marks.open, None)

    def start(self, budget: int, max_tokens: int, then: Constraint, *, opened: bool = False) -> Constraint:
        """The state before the opening mark, or behind it where the prompt has `opened` the thought.

        Args:
            budget: the most tokens of the thought itself.
            max_tokens: the most tokens of everything. Where they are too few for a block and an answer, there is no
                block (an opened one is closed at once).
            then: holds the answer.
        """
        reserved = max(1, min(_MOST_RESERVED, max_tokens // _ANSWER_SHARE))
        room = max_tokens - reserved - self.closing_cost - (0 if opened else self.opening_cost)
        left = min(budget, room)
        answer = Answering(self, then, self.in_answer.tail_of(self.marks.close), begun=False)
        if left < 1:
            return Spelling(self, *self._closing(b""), answer) if opened else answer
        thinking = Thinking(self, left, b"", answer)
        if opened:
            return thinking
        if self.marks.open_token is not None:
            return Spelling(self, b"", self.marks.open_token, thinking)
        return Spelling(self, self.marks.open, None, thinking)

    def after_thought(self, left: int, tail: bytes, answer: Constraint) -> Constraint:
        """The state inside a thought with `left` tokens to go."""
        if left > 0:
            return Thinking(self, left, tail, answer)
        return Spelling(self, *self._closing(tail), answer)

    def longest_token(self, text: bytes) -> int:
        """The token that spells most of the beginning of `text`."""
        for size in range(len(text), 0, -1):
            token = self.vocabulary.ids_by_bytes.get(text[:size])
            if token is not None:
                return token
        raise ValueError(f"no token begins {text!r}")

    def _closing(self, tail: bytes) -> tuple[bytes, int | None]:
        """What closes a thought that ends in `tail`: the bytes to spell, and the token behind them."""
        close, token = self.marks.close, self.marks.close_token
        if token is not None:
            return b"\n", token
        begun = next((size for size in range(min(len(tail), len(close) - 1), 0, -1) if tail.endswith(close[:size])), 0)
        return (close[begun:] if begun or close.startswith(b"\n") else b"\n" + close), None

    def _cost(self, text: bytes, token: int | None) -> int:
        """How many tokens `Spelling` takes for it."""
        count = 0 if token is None else 1
        while text:
            text = text[len(self.vocabulary.tokens[self.longest_token(text)]) :]
            count += 1
        return count


def _like(opening: bytes, close: bytes) -> bytes:
    """The opening as it is looked for in an answer: at the beginning of a line where the closing mark is a line."""
    return b"\n" + opening if close.startswith(b"\n") else opening


class TextWatch:
    """Looks for texts in a stream of tokens, across their borders.

    A `tail` is the end of the text so far that may yet become one of the texts. `end` is where the stream is left: a
    token may go on behind it with white space only.
    """

    def __init__(self, vocabulary: Vocabulary, forbidden: tuple[bytes, ...], end: bytes | None = None) -> None:
        self._vocabulary = vocabulary
        self._forbidden = forbidden
        self._end = end
        self._texts = (*forbidden, *((end,) if end else ()))
        self._masks: dict[bytes, NDArray[np.bool_]] = {}

    def read(self, tail: bytes, text: bytes) -> tuple[bytes, bool] | None:
        """(new tail, whether the end was reached) after `text`; None where it is not allowed."""
        both = tail + text
        stop = both.find(self._end) if self._end else -1
        if stop >= 0:
            stop += len(self._end or b"")
            if both[stop:].strip():
                return None
        inside = both if stop < 0 else both[:stop]
        if any(unwanted in inside for unwanted in self._forbidden):
            return None
        return (b"", True) if stop >= 0 else (self.tail_of(both), False)

    def tail_of(self, text: bytes) -> bytes:
        """The longest end of `text` that is a true beginning of a watched text."""
        longest = max(len(watched) for watched in self._texts) - 1
        for size in range(min(longest, len(text)), 0, -1):
            end = text[-size:]
            if any(size < len(watched) and watched.startswith(end) for watched in self._texts):
                return end
        return b""

    def mask(self, tail: bytes) -> NDArray[np.bool_]:
        """bool[size rounded up to 32]: the ordinary tokens that may come after `tail`. Not to be written to."""
        found = self._masks.get(tail)
        if found is None:
            found = self._masks[tail] = self._after(tail) if tail else self._anywhere()
        return found

    def _anywhere(self) -> NDArray[np.bool_]:
        allowed = np.zeros((self._vocabulary.size + 31) // 32 * 32, dtype=np.bool_)
        allowed[self._vocabulary.sorted_ids] = True
        for token, text in enumerate(self._vocabulary.tokens):
            if any(watched in text for watched in self._texts):
                allowed[token] = self.read(b"", text) is not None
        return allowed

    def _after(self, tail: bytes) -> NDArray[np.bool_]:
        """Only tokens that complete what the tail began differ from those that may come anywhere."""
        allowed = self.mask(b"").copy()
        for watched in self._texts:
            for size in range(1, min(len(watched) - 1, len(tail)) + 1):
                if tail.endswith(watched[:size]):
                    for token in self._vocabulary.with_prefix(watched[size:]):
                        allowed[token] = self.read(tail, self._vocabulary.tokens[token]) is not None
        return allowed


@dataclass(frozen=True, slots=True)
class Spelling:
    """Fixed text, then (where there is one) a fixed token, then `then`. One way of spelling: the longest tokens."""

    grammar: ThoughtGrammar = field(repr=False)
    text: bytes
    token: int | None
    then: Constraint

    @property
    def forced(self) -> int:
        """The only token that may come next."""
        if self.text or self.token is None:
            return self.grammar.longest_token(self.text)
        return self.token

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        if token != self.forced:
            return None
        if not self.text:
            return self.then
        rest = self.text[len(self.grammar.vocabulary.tokens[token]) :]
        return Spelling(self.grammar, rest, self.token, self.then) if rest or self.token is not None else self.then

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        return token == self.forced

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask:
        """See `Constraint`."""
        return bitmask_of([self.forced], self.grammar.vocabulary.size)

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return None

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Thinking:
    """Inside the thought: any text but the marks, the closing mark, and no end.

    Attributes:
        left: tokens that the thought may still take, at least 1.
        tail: what may yet become a mark.
        answer: the state behind the block.
    """

    grammar: ThoughtGrammar = field(repr=False)
    left: int
    tail: bytes
    answer: Constraint

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        if token == self.grammar.marks.close_token:
            return self.answer
        text = _text(self.grammar.vocabulary, token)
        read = self.grammar.in_thought.read(self.tail, text) if text else None
        if read is None:
            return None
        tail, closed = read
        return self.answer if closed else self.grammar.after_thought(self.left - 1, tail, self.answer)

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        if token == self.grammar.marks.close_token:
            return True
        text = _text(self.grammar.vocabulary, token)
        return bool(text) and self.grammar.in_thought.read(self.tail, text) is not None

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask:
        """See `Constraint`."""
        allowed = self.grammar.in_thought.mask(self.tail).copy()
        if self.grammar.marks.close_token is not None:
            allowed[self.grammar.marks.close_token] = True
        return _packed(allowed)

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return None

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return 0.0


@dataclass(frozen=True, slots=True)
class Answering:
    """Behind the thought, or without one: text without marks; it may end once something was said.

    Attributes:
        then: holds the text as well.
        tail: what may yet become a mark.
        begun: whether anything but white space was said.
    """

    grammar: ThoughtGrammar = field(repr=False)
    then: Constraint
    tail: bytes
    begun: bool

    def advance(self, token: int) -> Constraint | None:
        """See `Constraint`."""
        text = _text(self.grammar.vocabulary, token)
        read = self.grammar.in_answer.read(self.tail, text) if text else None
        then = self.then.advance(token) if read is not None else None
        if read is None or then is None:
            return None
        return Answering(self.grammar, then, read[0], self.begun or bool(text.strip()))

    def permits(self, token: int) -> bool:
        """See `Constraint`."""
        if token in self.grammar.vocabulary.end:
            return self.begun and self.then.permits(token)
        text = _text(self.grammar.vocabulary, token)
        allowed = bool(text) and self.grammar.in_answer.read(self.tail, text) is not None
        return allowed and self.then.permits(token)

    def validate(self, tokens: Sequence[int]) -> int:
        """See `Constraint`."""
        return validate_by_advancing(self, tokens)

    def allowed(self) -> Bitmask:
        """See `Constraint`."""
        allowed = self.grammar.in_answer.mask(self.tail)
        if self.begun and self.grammar.vocabulary.end:
            allowed = allowed.copy()
            allowed[list(self.grammar.vocabulary.end)] = True
        mask = _packed(allowed)
        inner = self.then.allowed()
        return mask if inner is None else mask & inner[: len(mask)]

    def penalty(self) -> tuple[NDArray[np.int32], NDArray[np.float32]] | None:
        """See `Constraint`."""
        return self.then.penalty()

    def penalty_of(self, token: int) -> float:
        """See `Constraint`."""
        return self.then.penalty_of(token)


def _text(vocabulary: Vocabulary, token: int) -> bytes:
    return vocabulary.tokens[token] if 0 <= token < vocabulary.size else b""


def _packed(allowed: NDArray[np.bool_]) -> Bitmask:
    return np.packbits(allowed, bitorder="little").view(np.int32)
