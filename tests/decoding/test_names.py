"""Names that a suggestion gets wrong: where they stand, and from which token on it is written again."""

from __future__ import annotations

import pytest

from decoding.names import NamesAround
from decoding.trimming import Trimmed
from grammars.scope_index import ScopeIndex


def around(marked: str) -> NamesAround:
    before, _, after = marked.partition("|")
    return NamesAround(ScopeIndex.of((before + after).encode()), len(before.encode()))


def text(names: NamesAround, text: str, covered: int = 0) -> Trimmed:
    return Trimmed(text, names.offset, names.offset + covered)


@pytest.mark.parametrize(
    ("marked", "put", "wrong"),
    [
        ("x = |\n", "y", 0),
        ("x = |\n", "max(y)", 4),
        ("x = |\n", "1", None),
        ("value = 1\nx = val|\n", "id", -3),  # could have become `value`
        ("x = val|\n", "id", None),  # what nobody knows is the user's
        ("x = val|\n", "id(y)", 3),
        ("print(y)\nx = |\n", "y", None),
        ("é = 1\nx = |\n", "é + ä", 5),
    ],
)
def test_where_a_name_is_wrong(marked: str, put: str, wrong: int | None) -> None:
    names = around(marked)
    assert names.wrong(text(names, put)) == wrong


def test_what_the_text_covers_is_not_there_any_more() -> None:
    names = around("print(|y)\n")
    assert names.wrong(text(names, "1)", covered=2)) is None
    assert names.wrong(text(names, "z, ")) == 0  # `y` is none of ours


@pytest.mark.parametrize(
    ("marked", "put", "tokens", "healed", "kept", "owed", "word"),
    [
        ("x = |\n", "max(y)", ["max", "(", "y", ")"], "", 2, "", "y"),
        ("x = |\n", "max(y)", ["max", "(y", ")"], "", 1, "(", "y"),
        ("x =|\n", " max(yes)", [" max", "(y", "es"], "=", None, "", ""),
        ("x =|\n", " max(yes)", ["= max", "(y", "es", ")"], "=", 1, "(", "yes"),
        ("value = 1\nx = val|\n", "id", ["val", "id"], "val", 1, "", "id"),
        ("value = 1\nx = val|\n", "id", ["valid"], "val", 0, "val", "id"),
    ],
)
def test_from_where_it_is_written_again(
    marked: str, put: str, tokens: list[str], healed: str, kept: int | None, owed: str, word: str
) -> None:
    names = around(marked)
    wrong = names.wrong(text(names, put))
    assert wrong is not None
    resume = names.resume(text(names, put), wrong, [each.encode() for each in tokens], healed.encode())
    if kept is None:
        assert resume is None
        return
    assert resume is not None
    assert (resume.kept, resume.owed.decode(), resume.word.decode()) == (kept, owed, word)
    assert {"x", "max"} & resume.names
    assert resume.before.decode() + resume.owed.decode() + resume.word.decode() in marked.replace("|", put)
