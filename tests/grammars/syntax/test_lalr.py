from __future__ import annotations

import pytest

from grammars.lalr import Row, build_tables, read_grammar

ARITHMETIC = """
start: sum END
sum: product | sum '+' product
product: NUMBER | product '*' NUMBER | '(' sum ')'
"""


def accepts(text: str, words: str) -> bool:
    """Whether some reading of the tables accepts the words."""
    grammar = read_grammar(text)
    rows = build_tables(grammar)
    stacks: set[tuple[int, ...]] = {(0,)}
    for word in words.split():
        terminal = grammar.symbols.index(word)
        stacks = {new for stack in stacks for new in shift(grammar, rows, stack, terminal)}
    return bool(stacks)


def shift(grammar, rows: list[Row], stack: tuple[int, ...], terminal: int) -> list[tuple[int, ...]]:
    row = rows[stack[-1]]
    found = [(*stack, row.shifts[terminal])] if terminal in row.shifts else []
    for number, lookahead in row.reductions:
        if lookahead >> terminal & 1:
            production = grammar.productions[number]
            base = stack[: -len(production.right)]
            found += shift(grammar, rows, (*base, rows[base[-1]].gotos[production.left]), terminal)
    return found


@pytest.mark.parametrize("words", ["NUMBER END", "NUMBER + NUMBER * NUMBER END", "( NUMBER + NUMBER ) * NUMBER END"])
def test_accepts(words: str) -> None:
    assert accepts(ARITHMETIC, words)


@pytest.mark.parametrize("words", ["END", "NUMBER NUMBER", "( NUMBER END", "NUMBER + END", "NUMBER )"])
def test_refuses(words: str) -> None:
    assert not accepts(ARITHMETIC, words)


def test_a_conflict_keeps_both_readings() -> None:
    ambiguous = "start: item END\nitem: 'a' | pair\npair: word\nword: 'a' | 'a' 'a'"
    rows = build_tables(read_grammar(ambiguous))
    assert any(len(row.reductions) == 2 for row in rows)
    assert accepts(ambiguous, "a END")
    assert accepts(ambiguous, "a a END")


def test_optional_symbols_are_multiplied_out() -> None:
    text = "start: 'a' 'b'? 'c'? END"
    for words in ("a END", "a b END", "a c END", "a b c END"):
        assert accepts(text, words)
    assert not accepts(text, "a c b")


def test_marks_and_actions_are_kept() -> None:
    grammar = read_grammar("start: 'a' @here item => seq\nitem: 'b'")
    assert grammar.productions[0].marks == ((1, "here"),)
    assert grammar.productions[0].action == "seq"
    assert [row.mark for row in build_tables(grammar)].count("here") == 1


def test_two_marks_in_one_state_are_refused() -> None:
    with pytest.raises(ValueError, match="several marks"):
        build_tables(read_grammar("start: 'a' @one 'b' | 'a' @two 'c'"))


def test_a_symbol_without_a_rule_is_named() -> None:
    with pytest.raises(ValueError, match="missing"):
        read_grammar("start: missing END")


def test_what_cannot_be_read_is_named() -> None:
    with pytest.raises(ValueError, match=r"'a'b"):
        read_grammar("start: 'a'b")
