"""The public corpora, sampled: `python -m tests.benchmarks.grammar_syntax` reads all of them."""

from __future__ import annotations

import random

import pytest

from grammars import check_prefix
from grammars.python_lines import logical_lines
from grammars.python_states import BYTE_ORDER_MARK, State, first_hopeless_byte
from tests.grammars.syntax.corpus import (
    NO_DATA,
    NO_ORACLE,
    Judge,
    data_folder,
    library_files,
    mutants,
    oracle,
    records,
)

needs_oracle = pytest.mark.skipif(oracle() is None, reason=NO_ORACLE)


def judged(label: str) -> list[dict]:
    folder = data_folder("py_syntax")
    if folder is None:
        pytest.skip(NO_DATA)
    return [record for record in records(folder) if record["label"] == label]


def is_valid(data: bytes) -> bool:
    state, offset = first_hopeless_byte(State.start(), data)
    return offset is None and state.may_end()


@needs_oracle  # an older library is valid too, but so is its use of what 3.13 dropped
def test_no_prefix_of_the_standard_library_is_refused() -> None:
    for path in random.Random(11).sample(library_files(), 25):
        data = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
        state, offset = first_hopeless_byte(State.start(), data)
        assert offset is None, (path, offset)
        assert state.may_end(), path


def test_valid_cases_are_accepted_with_every_prefix() -> None:
    for record in judged("valid"):
        assert check_prefix(record["source"]).viable, record["name"]
        assert is_valid(record["source"].encode()), record["name"]


def test_unfinished_cases_are_viable_and_not_finished() -> None:
    for record in judged("incomplete"):
        assert check_prefix(record["source"]).viable, record["name"]
        assert not is_valid(record["source"].encode()), record["name"]


@needs_oracle
def test_invalid_cases_are_refused_and_not_too_early() -> None:
    cases = judged("syntax")
    missed = [record["name"] for record in cases if is_valid(record["source"].encode("utf-8", "surrogatepass"))]
    assert len(missed) <= 0.02 * len(cases), missed
    with Judge() as judge:
        for record in cases:
            if record.get("witness") is None:
                continue
            before = record["source"][: record["viable_upto"]]
            if not check_prefix(before).viable:  # right only where the compiler refuses what the parser takes
                assert not judge.verdict(before + record["witness"])["valid"], record["name"]


@needs_oracle
def test_mutants_are_judged_as_cpython_does() -> None:
    missed = invalid = 0
    with Judge() as judge:
        for mutant in mutants(150, seed=5):
            ours = is_valid(mutant.text.encode())
            if judge.verdict(mutant.text)["valid"]:
                assert ours, mutant
            else:
                invalid += 1
                missed += ours
    assert missed <= 0.02 * invalid


def test_logical_lines_are_where_the_parser_begins_them() -> None:
    for path in random.Random(12).sample(library_files(), 12):
        data = path.read_bytes().removeprefix(BYTE_ORDER_MARK)
        lines = list(logical_lines(data))
        assert all(line.complete for line in lines[:-1])
        state = State.start()
        for line in lines:
            begun = state.run(data[line.begin : line.content])
            assert begun is not None
            assert begun.machine.depth == 0
            assert begun.mode.may_end
            state = begun.run(data[line.content : line.end])
            assert state is not None, (path, line)
