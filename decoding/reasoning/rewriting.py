"""Candidates for a piece of code: let the model write, check, try again otherwise, keep the best.

Knows pieces, prompts and judges. Must not know what the judge looks at.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Protocol

from decoding.errors import BadInput
from decoding.reasoning import prompts
from decoding.reasoning.backend import Backend, Turn
from decoding.reasoning.checks import in_words
from decoding.reasoning.pieces import Piece
from decoding.reasoning.report import FENCE, Report
from decoding.reasoning.source import Source

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
        misbehaves: the code is in order and does the wrong thing, or is what it was.
    """

    rank: int
    failure: str = ""
    checks: tuple[str, ...] = ()
    misbehaves: bool = False


@dataclass(frozen=True, slots=True)
class Candidate:
    """Code at column 0, what the model wrote of it behind the opening, and what was said of it."""

    code: str
    written: str
    verdict: Verdict


class Judge(Protocol):
    """Looks at a candidate's code."""

    def __call__(self, code: str) -> Verdict:
        """The verdict."""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to ask: messages, how the code has to begin, and the seed where it is sampled."""

    messages: prompts.Messages
    opening: str = ""
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be written anew.

    Attributes:
        source: the file, the piece being its selection.
        first: how the model is asked first.
        loosely: how the code has to begin in later tries, if the opening of the first binds too much.
        afresh: how it is asked to write the code from its description alone; None where nothing describes it.
        judge: what says whether a candidate will do.
    """

    source: Source
    first: Way
    judge: Judge
    loosely: str = ""
    afresh: Way | None = None

    @property
    def piece(self) -> Piece:
        """The statements."""
        return self.source.piece(self.source.start, self.source.end)


def best_candidate(task: Task, report: Report, tries: int, max_tokens: int) -> Candidate:
    """The first candidate that passes, else the one with the highest rank, the earlier among equals."""
    size = report.backend.count(task.piece.code)
    if size > MOST_TOKENS:
        raise BadInput(f"the code has {size} tokens, at most {MOST_TOKENS} can be rewritten at once: select a part")
    most = min(max_tokens, 2 * size + 128)
    found: list[Candidate] = []
    ways = _ways(task, found, report.backend, most)
    while True:
        report.tries += 1
        candidate = _candidate(task, next(ways), most, report)
        found.append(candidate)
        if not candidate.verdict.failure or report.tries >= tries:
            return max(found, key=lambda each: (not each.verdict.failure, each.verdict.rank))
        report.say(f"\nThis does not do: {candidate.verdict.failure}\n\n")


def _ways(task: Task, found: Sequence[Candidate], backend: Backend, most: int) -> Iterator[Way]:
    """How to ask, one way after the other; `found` grows meanwhile.

    A small model often repeats the code as it is (all of four bugs looked at): that is known before it is written,
    and not tried. One that is shown its failure seldom leaves its own mistake: of 18 bugs whose first repair failed
    the tests, telling it repaired 1, three samples 4, writing the function afresh 7, and the two likeliest second
    choices 7. So the failure is told first only where the code is not in order, which is easy to say and to repair.
    """
    written = _repetition(task)
    repeats = written is not None and backend.would_write(_turn(task, task.first, most), written)
    if not repeats:
        yield task.first
        written = found[0].written
        if not found[0].verdict.misbehaves:
            yield _told(task, found)
    others = _other_beginnings(task, written or "", backend, most)
    if repeats:  # what changes least comes first
        yield from islice(others, 1)
    if task.afresh is not None and (repeats or found[0].verdict.misbehaves):
        yield task.afresh
    yield from islice(others, 2)
    seed = 0
    while True:
        told = _told(task, found) if found else task.first
        yield replace(told, opening=task.loosely, seed=seed) if seed else told
        seed += 1
        sampled = Way(task.first.messages, task.loosely, seed)
        yield sampled
        yield next(others, replace(told, opening=task.loosely, seed=seed))


def _repetition(task: Task) -> str | None:
    """What stands behind the first opening where the code is written as it is."""
    code = f"{task.piece.code.rstrip()}\n```"
    return code.removeprefix(task.first.opening) if code.startswith(task.first.opening) else None


def _told(task: Task, found: Sequence[Candidate]) -> Way:
    """With the failure of the best candidate so far."""
    best = max(found, key=lambda each: each.verdict.rank)
    return Way(prompts.again(task.first.messages, best.code, best.verdict.failure), task.first.opening)


def _other_beginnings(task: Task, written: str, backend: Backend, most: int) -> Iterator[Way]:
    """What was written first, up to where the model hesitated most, with its second choice there; words for readers
    and the white space between lines are not worth a try."""
    for beginning in backend.second_choices(_turn(task, task.first, most), written):
        code = task.first.opening + beginning
        chosen = beginning.rpartition("\n")[2].strip()
        if chosen and not chosen.startswith(("#", "`")) and not in_words(code, len(code) - 1):
            yield Way(task.first.messages, code)


def _turn(task: Task, way: Way, most: int) -> Turn:
    sampled = way.seed is not None
    return Turn(
        way.messages,
        most,
        opening=FENCE + way.opening,
        code="all",
        temperature=_TEMPERATURE if sampled else None,
        seed=way.seed,
        replaces=task.source,
    )


def _candidate(task: Task, way: Way, most: int, report: Report) -> Candidate:
    written, reply = report.write_code(_turn(task, way, most), way.opening)
    code = _without_examples(written, task.piece)
    if reply.stop_reason == "length":
        return Candidate(code, reply.text, Verdict(-1, "the code was not finished within the limit of tokens"))
    return Candidate(code, reply.text, task.judge(code))


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
