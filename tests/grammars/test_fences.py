"""Markdown with python fences: whatever is written, every closed python fence parses."""

from __future__ import annotations

import ast
import random
import re
import unicodedata
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.constraint import Constraint, bitmask_to_bool
from grammars.fences import FenceGrammar
from grammars.python_constraint import PythonConstraint
from grammars.vocabulary import Vocabulary

LETTERS = [bytes([byte]) for byte in range(256)]
WORDS = [
    b"```", b"``", b"````", b"```\n", b"```\n\n", b"```python", b"```python\n", b"python", b"py", b"text", b"\n\n",
    b"\n    ", b"    ", b"return", b" x", b" =", b" 1", b"def f(x):\n", b"if x:", b"(", b")", b"'''", b'"""',
    b"x = 1\n",
    b"   ```", b"\n```", b"~~~", b" `x`", b"The ", b"\n```python\nx", b"# ```", b"\t", b"\r\n", b":\n    pass\n",
]  # fmt: skip
END = len(LETTERS) + len(WORDS)
VOCABULARY = Vocabulary.from_tokens([*LETTERS, *WORDS, b"<END>"], end=[END])


@cache
def grammar() -> FenceGrammar:
    return FenceGrammar(PythonConstraint(VOCABULARY))


def walk(state: Constraint, steps: int, choose: random.Random) -> tuple[bytes, bool]:
    """Random permitted tokens; whether it ended by itself."""
    text = b""
    for _ in range(steps):
        if state.permits(END) and choose.random() < 0.05:
            return text, True
        pool = list(range(len(LETTERS), END)) if choose.random() < 0.8 else list(range(END))
        choose.shuffle(pool)
        token = next((t for t in pool if state.permits(t)), None)
        if token is None:
            token = next((t for t in range(END) if state.permits(t)), None)
        assert token is not None, text
        state = state.advance(token)
        assert state is not None
        text += VOCABULARY.tokens[token]
    return text, False


def python_fences(text: str) -> list[str]:
    """The closed python fences of Markdown, read line by line as renderers do."""
    found, code, kind = [], [], None
    for line in text.split("\n"):
        mark = re.match(r" {0,3}(`{3,})([^`]*)$", line)
        if kind is None:
            if mark:
                kind, code = mark[2].strip().lower(), []
        elif mark and not mark[2].strip():
            if kind in ("python", "py", "python3"):
                found.append("\n".join(code) + "\n")
            kind = None
        else:
            code.append(line)
    return found


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), st.randoms(use_true_random=False))
def test_every_closed_python_fence_parses(steps: int, choose: random.Random) -> None:
    text, ended = walk(grammar().prose(), steps, choose)
    decoded = text.decode("latin-1" if b"```" not in text else "utf-8", "replace")
    for code in python_fences(decoded):
        # A character that this Python's Unicode does not know yet may be a letter in a newer one: it is let through.
        if not any(unicodedata.category(character) == "Cn" for character in code):
            ast.parse(code)
    if ended:
        lines = [line for line in decoded.split("\n") if line.startswith("```")]
        assert len(lines) % 2 == 0


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 40), st.randoms(use_true_random=False))
def test_the_mask_says_what_permits_and_advance_say(steps: int, choose: random.Random) -> None:
    state: Constraint = grammar().prose()
    for _ in range(steps):
        permitted = [token for token in range(len(LETTERS), END) if state.permits(token)]
        permitted = permitted or [token for token in range(END) if state.permits(token)]
        state = state.advance(choose.choice(permitted))
        assert state is not None
    mask = state.allowed()
    assert mask is not None
    allowed = bitmask_to_bool(mask, VOCABULARY.size)
    for token in range(VOCABULARY.size):
        assert bool(allowed[token]) == state.permits(token), VOCABULARY.tokens[token]
        if token != END:
            assert (state.advance(token) is not None) == bool(allowed[token])


def read(text: str) -> Constraint | None:
    state: Constraint | None = grammar().prose()
    for byte in text.encode():
        state = state.advance(byte) if state is not None else None
    return state


@pytest.mark.parametrize(
    "text",
    [
        "Say `x`:\n\n```python\nx = 1\n```\n\nDone.",
        "```py\nif x:\n    return 1\n```",
        "```\n$ ls (\n```\n\n```python\n```\n",
        "```text\nif x\n```\n",
        "```python\nx = '''\n  `code`\n'''\n```\n",
        "```python\nawait f()\nbreak\n```",
    ],
)
def test_ordinary_answers_may_be_written_and_end(text: str) -> None:
    state = read(text)
    assert state is not None
    assert state.permits(END)


@pytest.mark.parametrize(
    "text",
    [
        "```python\nif x:\n```",
        "```python\nx = (\n```",
        "```python\n  x\n",
        "```python\nx = '''\n```",
        "```python\nx = 1 2",
        "   ```python",
        "~~~",
        "````",
    ],
)
def test_what_readers_or_python_would_misread_is_refused(text: str) -> None:
    assert read(text) is None


@pytest.mark.parametrize("text", ["```python\nx = 1\n", "```text\nx", "```", "```python\nx\n`"])
def test_an_answer_does_not_end_inside_a_fence(text: str) -> None:
    state = read(text)
    assert state is not None
    assert not state.permits(END)


def test_code_that_has_begun_goes_on_in_its_fence() -> None:
    state = grammar().in_code("def f(x):\n")
    assert state is not None
    assert state.advance(ord("x")) is None  # the body has to be indented
    assert grammar().in_code("def f(x:\n)") is None
