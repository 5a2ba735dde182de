"""Prompts: layout, windows, healing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from decoding.hole import closed_already
from decoding.kv_cache import shared_prefix
from decoding.models.folder import open_folder
from decoding.prompts import WINDOW_STEP_LINES, Layout, window_starts
from grammars.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def layout(tiny_folder) -> Layout:
    folder = open_folder(tiny_folder, "tiny", "local")
    tokenizer = Tokenizer.from_file(str(folder.tokenizer_file))
    tokenizer.encode_special_tokens = True
    return Layout(
        encode=lambda text: tokenizer.encode(text, add_special_tokens=False).ids,
        vocabulary=Vocabulary.from_file(folder.tokenizer_file, folder.end_token_ids),
        start=(),
        fallback=folder.end_token_ids[0],
        fim=folder.fim,
    )


def parts(layout: Layout, prompt) -> tuple[bytes, bytes]:
    """Suffix and prefix text of an infilling prompt."""
    ids = list(prompt.token_ids)
    assert ids[:2] == [layout.fim.prefix, layout.fim.suffix]
    middle = ids.index(layout.fim.middle)
    return layout.vocabulary.decode(ids[2:middle]), layout.vocabulary.decode(ids[middle + 1 :])


def test_the_suffix_comes_first(layout) -> None:
    text = b"def f(x):\n    return x\n\nprint(f(1))\n"
    suffix, prefix = parts(layout, layout.infill(text, 14, 200, 200))
    prompt = layout.infill(text, 14, 200, 200)
    assert suffix == text[14:]
    assert prefix + prompt.healed == text[:14]


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200), st.integers(0, 200), st.integers(32, 64), st.integers(0, 40))
def test_any_text_at_any_cursor(layout, text, at, before, after) -> None:
    import unicodedata

    if unicodedata.normalize("NFC", text) != text:
        return
    head, tail = text[:at].encode(), text[at:].encode()
    prompt = layout.infill(head + tail, len(head), before, after)
    assert len(prompt.token_ids) <= before + after + 4
    suffix, prefix = parts(layout, prompt)
    clean = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert clean.endswith(prefix + prompt.healed)
    whole = tail.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    assert whole.startswith(suffix) or tail.endswith(b"\r")
    assert not set(prompt.token_ids[2:]) & (layout.vocabulary.special - {layout.fim.middle})


def test_text_that_looks_like_a_mark_stays_text(layout) -> None:
    text = b'mark = "<|fim_middle|>"\n'
    prompt = layout.infill(text, len(text), 100, 0)
    assert list(prompt.token_ids).count(layout.fim.middle) == 1


def test_a_model_without_marks_reads_the_prefix_alone(layout) -> None:
    plain = Layout(layout.encode, layout.vocabulary, (), layout.fallback, None)
    text = b"a = 1\nb = 2\n"
    prompt = plain.infill(text, 6, 100, 100)
    assert layout.vocabulary.decode(prompt.token_ids) + prompt.healed == b"a = 1\n"
    assert plain.infill(b"", 0, 100, 100).token_ids == (layout.fallback,)


def test_the_window_starts_at_a_line_and_moves_in_steps() -> None:
    lines = [b"line %d\n" % number for number in range(400)]
    seen = set()
    for count in range(300, 364):
        before = b"".join(lines[:count])
        start = window_starts(before, 800)[0]
        assert before[start - 1 : start] == b"\n"
        assert before.count(b"\n", 0, start) % WINDOW_STEP_LINES == 0
        seen.add(start)
    assert len(seen) <= 64 // WINDOW_STEP_LINES + 1


def test_a_keystroke_keeps_the_tokens_before_it(layout) -> None:
    text = b"".join(b"value_%d = compute(%d)\n" % (n, n) for n in range(60))
    one = layout.infill(text + b"resul", len(text) + 5, 300, 0).token_ids
    two = layout.infill(text + b"result", len(text) + 6, 300, 0).token_ids
    shared = next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    assert shared >= len(one) - 4


@pytest.mark.parametrize(
    ("opening", "closing"), [("(", ")"), ('"', '"'), ("{[", "]}"), ('"""', '"""'), ('(f"{', '}")')]
)
def test_a_closer_that_an_editor_types_changes_no_token_before_it(layout, opening, closing) -> None:
    before, after = b"value = compute", b"\nprint(value)\n"
    prompt = layout.infill(before + after, len(before), 100, 100)
    typed = before + opening.encode()
    closed = layout.infill(typed + closing.encode() + after, len(typed), 100, 100)
    assert shared_prefix(prompt.token_ids, closed.token_ids) >= len(prompt.token_ids) - 1


@pytest.mark.parametrize(
    ("text", "closed"),
    [
        ("f(|)", ")"),
        ("f(|)\n", ")"),
        ("f(a, [|])", "])"),
        ('print("|")', '")'),
        ('"""|"""', '"""'),
        ("d = {'|'}", "'}"),
        ('print(f"{|}")', '}")'),
        ('print(f"{a[|]}")', ']}")'),
        ('print("{|}")', ""),
        ("f(|", ""),
        ("f(|]", ""),
        ("f(| )", ""),
        ("f(a)|)", ""),
        ("f(\n|)", ""),
        ("f(|'a')", ""),
        ("# (|)", ""),
        ("f('(', |)", ")"),
        ("|)", ""),
        ("é = (|)", ")"),
    ],
)
def test_what_is_closed_already(text, closed) -> None:
    before, _, after = text.partition("|")
    assert closed_already((before + after).encode(), len(before.encode())) == len(closed)


@pytest.mark.parametrize("lines", [1, 3])
def test_a_window_within_a_long_line_moves_in_steps(layout, lines) -> None:
    text = b"x = [\n" * (lines - 1) + b"".join(b"value_%d, " % n for n in range(6_000))
    windows = [parts(layout, layout.infill(text[:end], end, 128, 0))[1] for end in range(50_000, 50_200)]
    assert all(len(window) > 32 for window in windows)
    assert len({text.rfind(window, 0, 50_250) for window in windows}) <= 12


def test_what_is_shown_can_be_told_and_text_put_above_it(layout) -> None:
    text = b"".join(b"line_%d = 1\n" % number for number in range(200))
    prompt = layout.infill(text, 1000, 64, 32)
    before, after = layout.shown(prompt)
    suffix, prefix = parts(layout, prompt)
    assert text[1000 - before : 1000] == prefix + prompt.healed
    assert text[1000 : 1000 + after] == suffix
    above = layout.behind(prompt, "def f(x): ...\n")
    assert parts(layout, above) == (suffix, b"def f(x): ...\n" + prefix)
    assert above.healed == prompt.healed
