"""Candidates for a piece of code: let the model write, check, try again with what went wrong, keep the best.

Knows pieces, prompts and judges. Must not know what the judge looks at.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from decoding.errors import BadInput
from decoding.reasoning import prompts
from decoding.reasoning.backend import Turn
from decoding.reasoning.pieces import Piece
from decoding.reasoning.report import Report

MOST_TOKENS = 700
"""Of a piece that is to be written anew: it has to fit twice, with its surroundings, into the context."""
_TEMPERATURE = 0.8


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a judge says of a candidate.

    Attributes:
        rank: the higher the better; below 0 a candidate must not be proposed.
        failure: what is wrong with it, for the next try; "" where nothing is.
        checks: what was checked, for the reader.
    """

    rank: int
    failure: str = ""
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """Code at column 0 and what was said of it."""

    code: str
    verdict: Verdict


Judge = Callable[[str], Verdict]


def best_candidate(
    piece: Piece,
    messages: prompts.Messages,
    openings: Sequence[str],
    judge: Judge,
    report: Report,
    tries: int,
    max_tokens: int,
) -> Candidate:
    """The first candidate that passes, else the one with the highest rank, the earlier among equals.

    `openings` is what the code of each try has to begin with, the last for all further ones. The first try is greedy,
    the second too, with the first's failure in the prompt; the others are sampled, in turn from the first prompt and
    from the failure of the best one: a small model seldom leaves its own mistake when it sees it, and seldom finds
    another way without being told.
    """
    size = report.backend.count(piece.code)
    if size > MOST_TOKENS:
        raise BadInput(f"the code has {size} tokens, at most {MOST_TOKENS} can be rewritten at once: select a part")
    most = min(max_tokens, 2 * size + 128)
    best: Candidate | None = None
    for number in range(tries):
        report.tries += 1
        told = best is not None and (number == 1 or number % 2 == 0)
        asked = prompts.again(messages, best.code, best.verdict.failure) if told and best is not None else messages
        opening = openings[min(number, len(openings) - 1)]
        turn = Turn(asked, most, temperature=_TEMPERATURE if number > 1 else None, seed=number if number > 1 else None)
        candidate = _candidate(piece, turn, opening, judge, report)
        if best is None or candidate.verdict.rank > best.verdict.rank:
            best = candidate
        if not candidate.verdict.failure:
            return candidate
        report.say(f"\nThis does not do: {candidate.verdict.failure}\n\n" if number + 1 < tries else "")
    assert best is not None
    return best


def _candidate(piece: Piece, turn: Turn, opening: str, judge: Judge, report: Report) -> Candidate:
    written, reply = report.write_code(turn, opening)
    code = _without_examples(written, piece)
    if reply.stop_reason == "length":
        return Candidate(code, Verdict(-1, "the code was not finished within the limit of tokens"))
    return Candidate(code, judge(code))


def _without_examples(code: str, piece: Piece) -> str:
    """Without the calls and prints that small models like to add behind a definition, where the piece is one."""
    try:
        had, has = ast.parse(piece.code).body, ast.parse(code).body
    except (SyntaxError, ValueError):
        return code
    definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    if len(had) != 1 or not isinstance(had[0], definitions):
        return code
    last = next((node for node in reversed(has) if isinstance(node, definitions)), None)
    if last is None or last.end_lineno is None:
        return code
    return "\n".join(code.split("\n")[: last.end_lineno])
