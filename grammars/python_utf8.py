"""UTF-8 and identifier characters, one byte at a time.

Knows Unicode. Must not know Python's lexemes.
"""

from __future__ import annotations

import unicodedata
from functools import cache

_CONTINUATION = (0x80, 0xBF)
_NARROWED = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}


def sequence_length(lead: int) -> int:
    """How many bytes a character has that begins with `lead`; 0 where none does."""
    if lead < 0x80:
        return 1
    if 0xC2 <= lead <= 0xDF:
        return 2
    if 0xE0 <= lead <= 0xEF:
        return 3
    return 4 if 0xF0 <= lead <= 0xF4 else 0


def begins_character(data: bytes) -> bool:
    """Whether `data` is a character or the beginning of one (no surrogates, no overlong forms)."""
    length = sequence_length(data[0])
    if not length or len(data) > length:
        return False
    for position, byte in enumerate(data[1:]):
        low, high = _NARROWED.get(data[0], _CONTINUATION) if position == 0 else _CONTINUATION
        if not low <= byte <= high:
            return False
    return True


def may_be_in_identifier(data: bytes, first: bool) -> bool:
    """Whether the character `data` may stand in an identifier. A character that this Python's Unicode tables do
    not know is given the benefit of the doubt."""
    character = data.decode("utf-8")
    if unicodedata.category(character) == "Cn":
        return True
    return character.isidentifier() if first else f"a{character}".isidentifier()


def may_begin_in_identifier(data: bytes, first: bool) -> bool:
    """Whether a character that begins with `data`, or is it, may stand in an identifier: whole planes may not."""
    if not begins_character(data):
        return False
    if len(data) == sequence_length(data[0]):
        return may_be_in_identifier(data, first)
    return _may_go_on(data, first)


@cache
def _may_go_on(data: bytes, first: bool) -> bool:
    return any(may_begin_in_identifier(data + bytes((byte,)), first) for byte in range(0x80, 0xC0))
