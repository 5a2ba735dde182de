"""Viability of a prefix: can some continuation of this text still be a valid Python 3.13 file?

The public question and its answer. Must not know token ids, vocabularies or documents with a cursor.
"""

from __future__ import annotations

from dataclasses import dataclass

from grammars.python_right import RightContext
from grammars.python_states import BYTE_ORDER_MARK, State, describe_refusal, first_hopeless_byte


@dataclass(frozen=True, slots=True)
class PrefixVerdict:
    """Whether a text can still become a valid Python file.

    Attributes:
        viable: some continuation is valid.
        offset: where it became hopeless: text[:offset] was viable and text[:offset + 1] is not. Code points where
            the text was given as str, bytes where it was given as bytes. None where the text is viable.
        reason: what was wrong there, in words, or None.
    """

    viable: bool
    offset: int | None = None
    reason: str | None = None


def check_prefix(text: str | bytes, *, suffix: str | bytes | None = None) -> PrefixVerdict:
    """Whether some continuation of `text` is a valid Python 3.13 file.

    Args:
        text: the beginning of a file, cut anywhere; bytes are UTF-8 and may end inside a character.
        suffix: what follows directly, None where anything may be written after `text`. A text that can be continued
            but not by `suffix` is refused at its end. Of the suffix is read what depends on the text before it: the
            rest of its first logical line, and the first word of every block that it returns to.

    A pure function. Never raises for any text; unpaired surrogates are valid nowhere.
    """
    data = as_bytes(text)
    skipped = len(BYTE_ORDER_MARK) if data.startswith(BYTE_ORDER_MARK) else 0
    state, offset = first_hopeless_byte(State.start(), data[skipped:])
    if offset is None:
        if suffix is None or RightContext(as_bytes(suffix), state).fits(state):
            return PrefixVerdict(True)
        return PrefixVerdict(False, len(text), "what follows the text does not fit")
    offset += skipped
    reason = describe_refusal(state, data[offset])
    if isinstance(text, str):
        offset = sum(byte & 0xC0 != 0x80 for byte in data[: offset + 1]) - 1
    return PrefixVerdict(False, offset, reason)


def as_bytes(text: str | bytes) -> bytes:
    """UTF-8, in which an unpaired surrogate is three bytes that no lexer accepts."""
    return text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
