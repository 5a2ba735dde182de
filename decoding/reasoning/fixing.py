"""edit and fix: whole statements are written anew, checked on a copy of the text, and proposed.

Knows pieces, checks and the candidate loop. Runs nothing of the user's code by itself: a trial is handed in.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from decoding.errors import BadInput
from decoding.reasoning import prompts
from decoding.reasoning.checks import findings, new_findings, syntax_error
from decoding.reasoning.pieces import Piece
from decoding.reasoning.places import broken_piece, described, own_problems, selected_piece, settled, speaks_of
from decoding.reasoning.related import open_sources, related_code
from decoding.reasoning.report import Report
from decoding.reasoning.requests import CommandRequest, CommandResult, Problem
from decoding.reasoning.rewriting import Judge, Task, Verdict, Way, best_candidate
from decoding.reasoning.source import Source, shortened
from grammars.definitions import outline

Trial = Callable[[str], str | None]
"""Runs the user's tests on a text: what failed, None where nothing did."""

_RELATED_TOKENS = 160
_PROBLEM_TOKENS = 200
_INSTRUCTION_TOKENS = 300
_REFUSED = -1
_MADE_WORSE, _CAUSE_LEFT, _TESTS_FAIL, _PASSED = 0, 1, 2, 3


def edit(request: CommandRequest, report: Report) -> CommandResult:
    """Change the selected statements, or the definition at the cursor, as the instruction says."""
    instruction = request.text.strip()
    if not instruction:
        raise BadInput("say how the code is to be changed")
    if (size := report.backend.count(instruction)) > _INSTRUCTION_TOKENS:
        raise BadInput(f"the instruction has {size} tokens, at most {_INSTRUCTION_TOKENS} fit: shorten it")
    source = Source.of(request.snapshot, request.end)
    piece = selected_piece(source)
    related = related_code(source, piece, _RELATED_TOKENS, report.backend.count, open_sources(request))
    task = Task(_place(source, piece), Way(prompts.edit(piece.code, related, instruction)), _judge(source, piece))
    best = best_candidate(task, report, request.tries, request.max_tokens)
    return _proposed(piece, best.code, best.verdict, report)


def fix(request: CommandRequest, report: Report, trial: Trial | None = None) -> CommandResult:
    """Make problems go away: diagnostics, or what an error message says. `trial` is run on a copy if it is given."""
    source = Source.of(request.snapshot, request.end)
    count = report.backend.count
    problems = tuple(settled(source, problem) for problem in request.problems)
    piece = broken_piece(source, problems, request.text)
    if not problems and not request.text.strip():
        problems = own_problems(source, piece)
    problem = described(source, problems, request.text) or syntax_error(source.text)
    if not problem and trial is not None:
        problem = trial(source.text) or ""
    if not problem:
        raise BadInput("say what is wrong: give a message or a diagnostic")
    related = related_code(source, piece, _RELATED_TOKENS, count, open_sources(request))
    said = shortened(problem, _PROBLEM_TOKENS, count)
    header, loosely = _headers(piece)
    task = Task(
        _place(source, piece),
        Way(prompts.fix(piece.code, related, said), header),
        _judge(source, piece, problems, trial),
        loosely,
        _afresh(source, piece, related, said) if trial is not None else None,
    )
    best = best_candidate(task, report, request.tries, request.max_tokens)
    return _proposed(piece, best.code, best.verdict, report)


@dataclass(frozen=True, slots=True)
class _Cause:
    """What is to go away: one of our own findings, and how often it was there."""

    text: str
    times: int


def _judge(source: Source, piece: Piece, problems: tuple[Problem, ...] = (), trial: Trial | None = None) -> Judge:
    """Looks at the whole text with a candidate in place: does it parse, what is new, is the cause gone."""
    before = source.text
    error_before = syntax_error(before)
    causes = [cause for problem in problems if (cause := _cause(source, problem)) is not None]

    def judge(code: str) -> Verdict:
        after = piece.replaced(code)
        if not code.strip():
            return Verdict(_REFUSED, "There was no code.")
        if code.strip() == piece.code.strip():
            return Verdict(_REFUSED, "The code was not changed.", misbehaves=True)
        error = syntax_error(after)
        if error is not None and (error_before is None or not _is_closer(code)):
            return Verdict(_REFUSED, f"The file would not parse: {error}.")
        if error is not None:
            return Verdict(_MADE_WORSE, f"The file still does not parse: {error}.", (f"still does not parse: {error}",))
        checks = ["the file parses"]
        new = new_findings(before, after)
        if new:
            return Verdict(_MADE_WORSE, f"Now {new[0]}.", (*checks, *(f"new finding: {text}" for text in new)))
        if error_before is None:
            checks.append("pyflakes finds nothing new")
        for cause in causes:
            if sum(finding.text == cause.text for finding in findings(after)) >= cause.times:
                return Verdict(_CAUSE_LEFT, f"There still is: {cause.text}.", (*checks, f"still there: {cause.text}"))
            checks.append(f"gone: {cause.text}")
        if len(causes) < len(problems):
            checks.append("a checker that is not ours reported the problem: look at its next report")
        if trial is not None:
            failed = trial(after)
            if failed is not None:
                return Verdict(_TESTS_FAIL, failed, (*checks, "the tests fail"), misbehaves=True)
            checks.append("the tests pass")
            if trial(before) is None:  # asked once: the loop ends with the first candidate that passes
                checks.append("they passed before, too: they do not show the problem")
        return Verdict(_PASSED, "", tuple(checks))

    return judge


def _is_closer(code: str) -> bool:
    """Whether a piece of a file that did not parse at least parses by itself."""
    return syntax_error(code) is None


def _cause(source: Source, problem: Problem) -> _Cause | None:
    """Our own finding for a problem of any checker: on the same line, about a name that the message has too."""
    if syntax_error(source.text) is not None:
        return None
    line = source.data[: problem.start].count(b"\n") + 1
    found = findings(source.text)
    for finding in found:
        if finding.line == line and speaks_of(problem.message, finding.names):
            return _Cause(finding.text, sum(other.text == finding.text for other in found))
    return None


def _proposed(piece: Piece, code: str, verdict: Verdict, report: Report) -> CommandResult:
    """The change with what was checked, or an honest refusal."""
    if verdict.rank < 0:
        return report.result(checks=(f"no change is proposed: {_sentence_part(verdict.failure)}",))
    checks = verdict.checks if not verdict.failure else (*verdict.checks, "this is the best of the tries, not a proof")
    return report.result(replacements=(piece.replacement(code),), checks=checks)


def _sentence_part(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".") if text else "nothing came"


def _place(source: Source, piece: Piece) -> Source:
    return Source(source.data, piece.start, piece.end, source.uri)


def _headers(piece: Piece) -> tuple[str, str]:
    """How the corrected code has to begin, so that a function is written in full and its callers still fit: with its
    whole header, and in later tries with its name alone. Nothing where the piece is no plain function."""
    node = _function(piece)
    if node is None or node.decorator_list:
        return "", ""
    word = "def" if isinstance(node, ast.FunctionDef) else "async def"
    header = outline(piece.code.encode()).definitions[0].header_end
    return piece.code.encode()[:header].decode() + "\n", f"{word} {node.name}("


def _afresh(source: Source, piece: Piece, related: str, problem: str) -> Way | None:
    """How to ask for the function from its description alone; None where there is none."""
    node = _function(piece)
    if node is None or node.decorator_list:
        return None
    header, _ = _headers(piece)
    if ast.get_docstring(node):
        end = node.body[0].end_lineno
        header = "\n".join(piece.code.split("\n")[:end]) + "\n"
        return Way(prompts.afresh(header, "", related, problem), header)
    description = source.words_about(piece)
    return Way(prompts.afresh(header, description, related, problem), header) if description else None


def _function(piece: Piece) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    try:
        body = ast.parse(piece.code).body
    except (SyntaxError, ValueError):
        return None
    only = body[0] if len(body) == 1 else None
    return only if isinstance(only, ast.FunctionDef | ast.AsyncFunctionDef) else None
