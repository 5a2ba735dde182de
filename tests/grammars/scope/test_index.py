"""The incremental index against a fresh one, after every edit of a fuzzer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars import scopes
from grammars.scope_index import ScopeIndex
from tests.grammars.scope.oracle import require_oracle, stdlib_files

_FIXTURES = sorted(Path(__file__).with_name("fixtures").glob("[!u]*.py.txt"))
_FRAGMENTS = [
    *"abefrst01 .,:=()[]{}'\"#\\@",
    *["\n", "\n\n", "\n    ", "\n        ", "\r\n", "\t", '"""', "'''", 'f"', "f'{", "}'", "{x}", "\\\n", "é", "→"],
    *["if x:\n", "else:\n", "def f(a):\n", "class A:\n", "    return a\n", "try:\n", "except E as e:\n", "@d\n"],
    *["import a\n", "from a import *\n", "for i in x:", "lambda x: ", " as ", "del ", "global x\n", "elif y:"],
]


def assert_fresh(index: ScopeIndex) -> None:
    fresh = ScopeIndex.of(index.text)
    assert index.starts == fresh.starts
    assert [entry.piece for entry in index.entries] == [entry.piece for entry in fresh.entries]
    assert [entry.facts for entry in index.entries] == [entry.facts for entry in fresh.entries]
    assert b"".join(entry.piece.text for entry in index.entries) == index.text


def random_edit(text: bytes, chance: random.Random) -> tuple[int, int, bytes]:
    """Type, delete, or move lines about, like a hurried person."""
    start = chance.randrange(len(text) + 1)
    kind = chance.random()
    if kind < 0.6:
        return start, start, chance.choice(_FRAGMENTS).encode()
    if kind < 0.85:
        return start, min(len(text), start + chance.randrange(1, 6)), b""
    end = min(len(text), start + chance.randrange(200))
    moved = chance.randrange(len(text) + 1)
    return start, end, text[moved : moved + chance.randrange(200)]


@pytest.mark.parametrize("seed", range(4))
def test_fuzzed_fixtures(seed: int) -> None:
    chance = random.Random(seed)
    index = ScopeIndex.of(chance.choice(_FIXTURES).read_bytes())
    for _ in range(100):
        index = index.edited(*random_edit(index.text, chance))
        assert_fresh(index)


def test_fuzzed_real_files() -> None:
    chance = random.Random(3)
    files = [path for path in stdlib_files(require_oracle()) if path.stat().st_size < 20_000]
    for path in chance.sample(files, 12):
        index = ScopeIndex.of(path.read_bytes())
        for _ in range(25):
            index = index.edited(*random_edit(index.text, chance))
            assert_fresh(index)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 8), st.sampled_from(_FRAGMENTS)), max_size=12))
def test_any_edits(edits: list[tuple[float, int, str]]) -> None:
    index = ScopeIndex.of(b"class A:\n    def f(self):\n        return x\n\nx = f'{1}'\n")
    for where, deleted, inserted in edits:
        start = int(where * len(index.text))
        index = index.edited(start, min(len(index.text), start + deleted), inserted.encode())
        assert_fresh(index)


def test_an_edit_shares_what_it_does_not_touch() -> None:
    index = ScopeIndex.of(b"a = 1\n\ndef f():\n    return a\n\nb = 2\n")
    edited = index.edited(24, 24, b"a")
    assert [old is new for old, new in zip(index.entries, edited.entries, strict=True)] == [True, False, True]


def test_the_index_before_an_edit_stays_as_it_was() -> None:
    index = ScopeIndex.of(b"a = 1\nprint()\n")
    index.edited(0, 5, b"b = 1")
    assert "a" in scopes.view(index, 12).names
    assert_fresh(index)


@pytest.mark.parametrize(("start", "end"), [(-1, 0), (2, 1), (0, 9)])
def test_an_edit_outside_of_the_text_is_an_error(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="outside of a text of 5 bytes"):
        ScopeIndex.of(b"a = 1").edited(start, end, b"")


def test_a_view_of_an_edited_index_is_that_of_its_text() -> None:
    chance = random.Random(5)
    index = ScopeIndex.of(_FIXTURES[0].read_bytes())
    for _ in range(60):
        index = index.edited(*random_edit(index.text, chance))
        offset = chance.randrange(len(index.text) + 1)
        assert scopes.view(index, offset) == scopes.visible_names(index.text, offset)
