"""Many tokens at a time are read as each of them alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.python_lexer import Comment, Lexer, LineStart, Number, Operator, Space, Word
from grammars.python_states import python
from grammars.python_strings import Escape, Literal, Opening, String, Style
from grammars.token_reading import TokenReader
from grammars.vocabulary import Vocabulary

LEXER: Lexer = python().lexer
STRING = LEXER.get(String, (), Style("", ord('"')))
MODES = [
    LEXER.get(Space, ()),
    LEXER.get(LineStart, 4, 4, 0),
    LEXER.get(Word, (), ""),
    LEXER.get(Word, (), "i"),
    LEXER.get(Word, (), "rb"),
    LEXER.get(Number, (), "decimal"),
    LEXER.get(Operator, (), "="),
    LEXER.get(Operator, (), ".."),
    LEXER.get(Comment, (), False),
    LEXER.get(Opening, (), Style("f", ord("'")), 2),
    STRING,
    LEXER.get(Escape, STRING, False, False),
]
bits = st.sampled_from(
    [b" ", b"x", b"if", b"\n", b"    ", b"'", b'"', b"{", b"}", b"1", b".", b"(", b"\\", b"\xc3", b"="]
)
texts = st.lists(st.lists(bits, min_size=1, max_size=6).map(b"".join), min_size=1, max_size=40)


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: type(mode).__name__)
@settings(deadline=None, max_examples=40)
@given(texts)
def test_read_together_or_alone(mode, texts: list[bytes]) -> None:
    reader = TokenReader(Vocabulary.from_tokens(texts))
    found = {
        int(token): (step.mode, step.events)
        for step, tokens in reader.read(mode, np.arange(len(texts), dtype=np.int32))
        for token in tokens
    }
    for token, text in enumerate(texts):
        alone = read_bytes(mode, text)
        assert found.get(token) == alone
        remembered = mode.read(text)
        assert (remembered and (remembered.mode, remembered.events)) == alone


def read_bytes(mode, text: bytes):
    """The mode after `text` and what it completed, byte by byte."""
    events = ()
    for byte in text:
        step = mode.step(byte)
        if step is None:
            return None
        mode, events = step.mode, events + step.events
    return mode, events


def test_no_tokens_are_no_groups() -> None:
    reader = TokenReader(Vocabulary.from_tokens([b"a"]))
    assert not list(reader.read(MODES[0], np.zeros(0, dtype=np.int32)))


def test_literals_keep_their_frames() -> None:
    opened = LEXER.get(Space, ()).read(b'f"{a')
    assert opened is not None
    assert opened.mode.frames[-1].fields == (0,)
    closed = opened.mode.read(b"}")
    assert closed is not None
    assert isinstance(closed.mode, Literal)
