"""The text rules against golden files: `|` marks the cursor, ⟦ ⟧ what the editor inserts.

A case reads

    == what is expected [single] [unfinished] [language=NAME]
    document with |
    -- what the model wrote
    -- the document after accepting, or a lone ∅ where nothing may be shown

`→` stands for a tab and `␍` for a carriage return; the last line end of each part does not count.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from decoding.hole import Hole, Opened, scan, statements
from decoding.trimming import trim

GOLDEN = sorted((Path(__file__).parent / "trimming").glob("*.txt"))


class Case(NamedTuple):
    title: str
    document: str
    raw: str
    expected: str
    multiline: bool
    finished: bool
    language: str


def parse(path: Path) -> list[Case]:
    cases = []
    for block in re.split(r"^== ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        title, _, body = block.partition("\n")
        document, raw, expected = (_part(part) for part in re.split(r"^--.*\n", body, flags=re.MULTILINE))
        language = re.search(r"\[language=(\w+)]", title)
        cases.append(
            Case(
                title,
                document,
                raw,
                expected,
                "[single]" not in title,
                "[unfinished]" not in title,
                language[1] if language else "python",
            )
        )
    return cases


def _part(text: str) -> str:
    return text.rstrip("\n").replace("→", "\t").replace("␍", "\r").replace("␤", "\n")


def accepted(document: str, raw: str, *, multiline: bool, finished: bool, language: str = "python") -> str:
    before, _, after = document.partition("|")
    text = before + after
    offset = len(before.encode())
    result = trim(raw, text=text, offset=offset, finished=finished, multiline=multiline, language=language)
    if result is None:
        return "∅"
    data = text.encode()
    return f"{data[: result.start].decode()}⟦{result.text}⟧{data[result.end :].decode()}"


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=f"{path.stem}: {case.title}") for path in GOLDEN for case in parse(path)]
)
def test_golden(case: Case) -> None:
    shown = accepted(case.document, case.raw, multiline=case.multiline, finished=case.finished, language=case.language)
    assert shown == case.expected


def test_every_golden_file_is_read() -> None:
    assert len(GOLDEN) >= 8
    assert all(parse(path) for path in GOLDEN)


code = st.text(alphabet="ab_ \n\t()[]{}'\":,.=#\r1é😀", max_size=60)


@given(before=code, after=code, raw=code, finished=st.booleans(), multiline=st.booleans())
def test_a_suggestion_stays_on_its_line_and_never_invents_text(
    before: str, after: str, raw: str, finished: bool, multiline: bool
) -> None:
    text = before + after
    offset = len(before.encode())
    result = trim(raw, text=text, offset=offset, finished=finished, multiline=multiline)
    if result is None:
        return
    replaced = text.encode()[offset : result.end].decode()
    assert result.start == offset <= result.end
    assert "\n" not in replaced
    assert "\r" not in replaced
    assert result.text.strip()
    assert multiline or not re.search(r"[\r\n]", result.text)
    visible = list(re.sub(r"\s", "", result.text))
    source = iter(re.sub(r"\s", "", raw))
    assert all(character in source for character in visible)


@given(before=code, after=code, raw=code)
def test_what_is_replaced_is_written_again(before: str, after: str, raw: str) -> None:
    """Editors show an item only if what it replaces is a subsequence of its text."""
    text = before + after
    offset = len(before.encode())
    result = trim(raw, text=text, offset=offset, finished=True, multiline=True)
    if result is None:
        return
    replaced = text.encode()[offset : result.end].decode().replace(" ", "").replace("\t", "")
    rest = iter(result.text)
    assert all(character in rest for character in replaced)


@given(st.text(max_size=40), st.integers(0, 200), st.text(max_size=20))
def test_any_text_and_any_offset_are_survived(text: str, offset: int, raw: str) -> None:
    trim(raw, text=text, offset=min(offset, len(text.encode("utf-8", "surrogatepass"))), finished=True, multiline=True)


def test_lone_surrogates_are_survived() -> None:
    text = "x = '\ud83d'\ny = "
    offset = len(text.encode("utf-8", "surrogatepass"))
    result = trim("1", text=text, offset=offset, finished=True, multiline=False)
    assert result is not None
    assert result.text == "1"


def test_scan_ignores_brackets_in_strings_and_comments() -> None:
    state = scan("f(')', \"]\", # )\n  {")
    assert [opened.closer for opened in state.open] == [")", "}"]
    assert state.unmatched == ()
    assert scan("abc'", (Opened("'"),)).unmatched == ((3, "'"),)
    assert scan("'''it's").quote == "'''"


@pytest.mark.parametrize(
    ("code", "closers"),
    [
        ('print(f"{', ')"}'),
        ('print(f"{a[', ')"}]'),
        ('print("{', ')"'),
        ('print(f"{{', ')"'),
        ('print(rf"{a}', ')"'),
        ('print(f"{a!r:>{', ')"}}'),
        ('f\'{x["a"]', "'}"),
        ("f'{x[\"a", "'}]\""),
        ("f'{a'", ""),
        ("f'{a\nb", ""),
        ("f'''{a\nb", "'''}"),
        ("elf'{", "'"),
        ("{# (", "}"),
    ],
)
def test_fields_of_strings_are_code(code: str, closers: str) -> None:
    assert "".join(opened.closer for opened in scan(code).open) == closers


@given(st.text(alphabet="f'\"(){}[]a\n#\\", max_size=24), st.integers(0, 24))
def test_a_scan_goes_on_where_another_ended(code: str, cut: int) -> None:
    if "'" in code[:cut][-2:] or '"' in code[:cut][-2:] or code[:cut][-1:] in ("f", "\\", "{"):
        return  # in the middle of what is read as one
    whole, first = scan(code), scan(code[:cut])
    if first.inside != tuple(replace(opened, at=-1) for opened in first.open) or "#" in code:
        return  # brackets around are not handed over, and a comment is not
    assert scan(code[cut:], first.inside).inside == whole.inside


@pytest.mark.parametrize("piece", ["(", "([{", 'f"{(', "(\n", "'''(", "f'{", ")", "'"])
def test_a_scan_reads_each_character_once(piece: str) -> None:
    scan(piece * 200_000)  # would take an hour where every token looked at everything that is open


def test_statements_join_brackets_strings_and_backslashes() -> None:
    lines = ["x = (", "  1)", "y = \\", "  2", "", "'''", "z", "'''", "w"]
    assert [index for index, _ in statements(lines)] == [0, 2, 5, 8]


def test_a_hole_looks_at_its_neighbourhood_only() -> None:
    hole = Hole.at("x = 1\n" * 100_000 + "  y", 600_003)
    assert hole.before == "  y"
    assert len(hole.above) < 3_000
    assert set(hole.above) == {"x = 1"}


@pytest.mark.parametrize(
    ("text", "raw"), [("retu|rn x", "rn"), ("impo|rt os", "rt"), ("x.appe|nd(1)", "nd"), ("a|b", "b")]
)
def test_the_rest_of_the_word_under_the_cursor_is_not_written_twice(text: str, raw: str) -> None:
    head, _, tail = text.partition("|")
    assert trim(raw, text=head + tail, offset=len(head), finished=True, multiline=False) is None
