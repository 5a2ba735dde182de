"""edit and fix: what is proposed parses, replaces whole statements, and says what was checked."""

from __future__ import annotations

import ast

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from decoding.errors import BadInput
from decoding.reasoning.checks import in_words
from decoding.reasoning.pieces import Piece, code_of, fenced
from decoding.reasoning.requests import Problem
from grammars.definitions import statements_around
from tests.decoding.reasoning.fakes import ScriptedBackend, after, ask, user_text

SHOP = '''\
import os


class Shop:
    """A shop."""

    def total(self, items):
        text = """one
  two"""
        return sum(items)⟦⟧

    @property
    def name(self):
        return self._name
'''
BROKEN = "def last(values):\n    return values[len(⟦⟧values)]\n"
FIXED = "    return values[len(values) - 1]\n```\nDone."


def test_an_edit_replaces_the_whole_method_in_its_indentation() -> None:
    backend = ScriptedBackend('def total(self, items):\n    text = """one\n  two"""\n    return 2 * sum(items)\n```\n')
    result, streamed = ask(backend, "edit", SHOP, text="double it")
    changed = after(SHOP, result)
    assert 'text = """one\n  two"""\n        return 2 * sum(items)\n\n    @property' in changed
    ast.parse(changed)
    assert result.text == streamed
    assert "the file parses" in result.checks
    assert "double it" in user_text(backend.turns[0])
    assert backend.turns[0].opening.startswith("```python\n")


def test_an_edit_of_selected_lines_replaces_those() -> None:
    marked = "def f(x):\n    ⟦if x:\n        y = 1⟧\n    else:\n        y = 2\n    return y\n"
    result, _ = ask(ScriptedBackend("y = 1 if x else 2\n```"), "edit", marked, text="shorter")
    assert after(marked, result) == "def f(x):\n    y = 1 if x else 2\n    return y\n"


def test_what_does_not_parse_is_tried_again_and_never_proposed() -> None:
    backend = ScriptedBackend("def total(self, items)\n    return 0\n```", "def total(self, items):\n    return 0\n```")
    result, streamed = ask(backend, "edit", SHOP, text="zero")
    assert result.tries == 2
    assert "would not parse" in user_text(backend.turns[1])
    assert "would not parse" in streamed
    ast.parse(after(SHOP, result))
    hopeless, _ = ask(ScriptedBackend("def total(self, items)\n```"), "edit", SHOP, text="zero", tries=4)
    assert hopeless.replacements == ()
    assert hopeless.tries == 4
    assert "no change is proposed" in hopeless.text


def test_what_a_limit_cut_off_is_not_proposed() -> None:
    result, _ = ask(ScriptedBackend("def total(self, items):\n    return", stop="length"), "edit", SHOP, text="zero")
    assert result.replacements == ()


def test_examples_behind_a_definition_are_left_out() -> None:
    backend = ScriptedBackend("def f(x):\n    return x\n\nprint(f(1))\n\nif __name__ == '__main__':\n    f(2)\n```")
    result, _ = ask(backend, "edit", "def f(y):\n    return y⟦⟧\n", text="rename y to x")
    assert after("def f(y):\n    return y⟦⟧\n", result) == "def f(x):\n    return x\n"


def test_a_fix_begins_with_the_header_and_tells_the_problem() -> None:
    backend = ScriptedBackend(FIXED)
    result, streamed = ask(backend, "fix", BROKEN, text="IndexError: list index out of range")
    assert backend.turns[0].opening == "```python\ndef last(values):\n"
    assert "IndexError" in user_text(backend.turns[0])
    assert after(BROKEN, result) == "def last(values):\n    return values[len(values) - 1]\n"
    assert result.text == streamed


UNDEFINED = "def f(count):\n    ⟦⟧total = 1\n    return totl\n"


def problem_at(marked: str, word: str, message: str) -> Problem:
    text = marked.replace("⟦⟧", "").encode()
    at = text.index(word.encode())
    return Problem(start=at, end=at + len(word), message=message, source="pyright")


def test_a_cause_that_our_own_checks_see_has_to_be_gone() -> None:
    problem = problem_at(UNDEFINED, "totl", '"totl" is not defined')
    backend = ScriptedBackend("    total = 2\n    return totl\n```", "    total = 1\n    return total\n```")
    result, _ = ask(backend, "fix", UNDEFINED, problems=(problem,))
    assert result.tries == 2
    assert "undefined name 'totl'" in user_text(backend.turns[1])
    assert "gone: undefined name 'totl'" in result.checks


def test_a_cause_that_we_cannot_see_is_said_to_be_unchecked() -> None:
    problem = problem_at(UNDEFINED, "total", "type is partially unknown")
    result, _ = ask(ScriptedBackend("    total = 1\n    return total\n```"), "fix", UNDEFINED, problems=(problem,))
    assert any("not ours" in check for check in result.checks)


def test_the_best_candidate_is_proposed_if_none_passes() -> None:
    failures = iter(["assert 1 == 2", "assert 1 == 2", "assert 1 == 2"])
    backend = ScriptedBackend("    return undefined_name\n```", FIXED, "    return nothing_either\n```")
    result, _ = ask(backend, "fix", BROKEN, text="wrong", trial=lambda text: next(failures))
    assert after(BROKEN, result) == "def last(values):\n    return values[len(values) - 1]\n"
    assert "not a proof" in result.text
    assert any("tests fail" in check for check in result.checks)


def test_the_users_tests_decide_where_they_are_run() -> None:
    tried: list[str] = []

    def trial(text: str) -> str | None:
        tried.append(text)
        return None if "- 1" in text else "assert last([1]) == 1"

    backend = ScriptedBackend("    return values[0]\n```", FIXED)
    result, _ = ask(backend, "fix", BROKEN, trial=trial)
    assert tried[0] == BROKEN.replace("⟦⟧", "")  # nothing was said: the tests say what is wrong
    assert "assert last" in user_text(backend.turns[0])
    assert "the tests pass" in result.checks
    assert result.tries == 2


def test_tests_that_passed_before_prove_nothing_and_it_is_said() -> None:
    result, _ = ask(ScriptedBackend(FIXED), "fix", BROKEN, text="wrong", trial=lambda text: None)
    assert any("passed before" in check for check in result.checks)


def test_a_traceback_points_at_the_function() -> None:
    marked = "⟦⟧def good():\n    return 1\n\n\n" + BROKEN.replace("⟦⟧", "")
    text = 'Traceback:\n  File "/elsewhere/shop.py", line 6, in last\n    return values[len(values)]\nIndexError: out'
    result, _ = ask(ScriptedBackend(FIXED), "fix", marked, text=text)
    assert "values[len(values) - 1]" in after(marked, result)


def test_a_file_that_does_not_parse_can_be_fixed() -> None:
    marked = "def f(x):\n    return (x⟦⟧\n\n\ndef g(y):\n    return y\n"
    result, _ = ask(ScriptedBackend("def f(x):\n    return x\n```"), "fix", marked)
    ast.parse(after(marked, result))


def test_bad_requests_say_what_to_do() -> None:
    backend = ScriptedBackend("x")
    for command, marked, fields in [
        ("edit", SHOP, {"text": "  "}),
        ("edit", "⟦⟧\n\n", {"text": "do"}),
        ("fix", "x = 1⟦⟧\n", {}),
        ("edit", "def f():\n" + "    x = 1⟦⟧\n" * 2000, {"text": "do"}),
    ]:
        with pytest.raises(BadInput):
            ask(backend, command, marked.replace("⟦⟧", "", marked.count("⟦⟧") - 1), **fields)


LINES = st.sampled_from(
    [
        "x = 1",
        "if x:",
        "    y = 2",
        "else:",
        "\tz = 3",
        "s = '''a",
        "  b'''",
        "",
        "def f(a):",
        "        return a",
        "#",
        "é",
    ]
)


@example(["else:", "        return a", "else:"], "\n", 22, 22)
@settings(max_examples=200, deadline=None)
@given(st.lists(LINES, max_size=8), st.sampled_from(["\n", "\r\n"]), st.integers(0, 60), st.integers(0, 60))
def test_a_piece_put_back_unchanged_changes_nothing_but_white_space(lines, newline, one, other) -> None:
    data = newline.join(lines).encode()
    start, end = sorted((min(one, len(data)), min(other, len(data))))
    piece = Piece(data, *statements_around(data, start, end))
    again = piece.replaced(piece.code)
    assert [line.strip() for line in again.splitlines()] == [line.strip() for line in data.decode().splitlines()]


@given(st.text(max_size=80))
def test_code_survives_its_fence(code: str) -> None:
    stripped = code.replace("\r", "").strip("\n")
    if "~~~" not in stripped and not any(line.strip() == "`" * 3 for line in stripped.split("\n")):
        assert code_of(fenced(stripped), opened=False) == stripped


DOUBLE = 'def double(x):⟦⟧\n    """Twice x."""\n    return x + 2\n'


def attempts(backend: ScriptedBackend, tries: int, marked: str = DOUBLE, **fields: object) -> list[str]:
    """How the code of each try had to begin, when the tests fail for ever."""
    ask(backend, "fix", marked, text="wrong", tries=tries, trial=lambda text: "assert 4 == 6", **fields)
    return [turn.opening.partition("\n")[2] for turn in backend.turns]


def test_what_misbehaves_is_written_afresh_and_then_with_second_choices() -> None:
    begun = '    """Twice x."""\n    return x'
    others = ["    ", '    """Twice y', "    # why", "```", begun + " -", begun + " **"]
    backend = ScriptedBackend(begun + "\n```", others=others)
    header, documented = "def double(x):\n", 'def double(x):\n    """Twice x."""\n'
    assert attempts(backend, 6) == [
        header,
        documented,
        f"{header}{begun} -",
        f"{header}{begun} **",
        header,
        "def double(",
    ]
    afresh, told = user_text(backend.turns[1]), user_text(backend.turns[4])
    assert "return x + 2" not in afresh
    assert "wrong" in afresh
    assert "This is still wrong. assert 4 == 6" in told
    assert [turn.temperature for turn in backend.turns] == [None] * 5 + [0.8]


REPEATED = '    """Twice x."""\n    return x + 2\n```'


def test_code_that_would_only_be_repeated_is_not_tried_but_begun_otherwise() -> None:
    begun = '    """Twice x."""\n    return '
    backend = ScriptedBackend("2 * x\n```", others=[begun + "2"], would=REPEATED)
    result, streamed = ask(backend, "fix", DOUBLE, text="wrong")
    assert [turn.opening.partition("\n")[2] for turn in backend.turns] == [f"def double(x):\n{begun}2"]
    assert result.tries == 1
    assert result.replacements
    assert "not changed" not in streamed
    documented = 'def double(x):\n    """Twice x."""\n'
    others = [begun + each for each in ("2", "3", "-", "~")]
    backend = ScriptedBackend("    return x\n```", others=others, would=REPEATED)
    begun_otherwise = [f"def double(x):\n{each}" for each in others]
    assert attempts(backend, 4) == [begun_otherwise[0], documented, begun_otherwise[1], begun_otherwise[2]]
    backend = ScriptedBackend(REPEATED, would=REPEATED)  # nothing else is known: it says so
    result, _ = ask(backend, "fix", DOUBLE, text="wrong", tries=2)
    assert result.replacements == ()
    assert "not changed" in result.checks[0]


def test_what_was_repeated_all_the_same_is_begun_otherwise_before_it_is_told() -> None:
    begun = '    """Twice x."""\n    return '
    backend = ScriptedBackend(REPEATED, " * x\n```", others=[begun + "2"])
    result, _ = ask(backend, "fix", DOUBLE, text="wrong", tries=2)
    assert backend.turns[1].opening.endswith(f"{begun}2")
    assert "2 * x" in after(DOUBLE, result)


def test_a_comment_above_or_a_lone_text_describes_a_function() -> None:
    without = DOUBLE.replace('    """Twice x."""\n', "")
    backend = ScriptedBackend("    return x\n```")
    assert attempts(backend, 2, "# Twice x.\n" + without) == ["def double(x):\n"] * 2
    assert "Twice x." in user_text(backend.turns[1])
    backend = ScriptedBackend("    return x\n```")
    attempts(backend, 2, without + '\n\n"""\nTwice x.\n"""\n')
    assert "Twice x." in user_text(backend.turns[1])
    backend = ScriptedBackend("    return x\n```", others=["    return -"])
    assert attempts(backend, 2, without)[1] == "def double(x):\n    return -"


def test_code_that_is_not_in_order_is_told_what_is_wrong_first() -> None:
    backend = ScriptedBackend("    return y\n```", "    return 2 * x\n```", others=["    return -"])
    result, _ = ask(backend, "fix", DOUBLE, text="wrong", trial=lambda text: None)
    assert result.tries == 2
    assert "undefined name 'y'" in user_text(backend.turns[1])


@given(st.integers(1, 16), st.lists(st.text("re#t`\n 'x", min_size=1), max_size=6))
def test_a_loop_ends_after_its_tries_whatever_could_be_said(tries: int, others: list[str]) -> None:
    backend = ScriptedBackend("    return x\n```", others=others)
    assert len(attempts(backend, tries)) == tries


@pytest.mark.parametrize(
    ("code", "inside"),
    [
        ("x = 1  # a", True),
        ('x = "# a', False),
        ('def f():\n    """A', True),
        ('def f():\n    """A."""\n    x', False),
        ('x = """A', False),
        ("def f():\n    r'''A\n  b", True),
        ("x", False),
    ],
)
def test_words_for_readers(code: str, inside: bool) -> None:
    assert in_words(code, len(code) - 1) is inside
