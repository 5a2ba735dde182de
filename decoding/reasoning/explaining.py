"""explain and reason: answers in words.

Knows sources and prompts. Proposes no change.
"""

from __future__ import annotations

import ast

from decoding.errors import BadInput
from decoding.reasoning import prompts
from decoding.reasoning.backend import Turn
from decoding.reasoning.pieces import fenced
from decoding.reasoning.related import open_sources, related_code
from decoding.reasoning.report import Report
from decoding.reasoning.requests import CommandRequest, CommandResult
from decoding.reasoning.sentences import said
from decoding.reasoning.source import Source, shortened
from decoding.reasoning.steps import steps_of

PROMPT_TOKENS = 640
"""For code, its surroundings and an error; with the wording and the template a prompt stays below 900 tokens, which a
laptop reads in a second."""
_RELATED_SHARE = 4
_ERROR_TOKENS = 160
_SENTENCE_TOKENS = 96
_ENOUGH, _ENOUGH_A_LINE, _MOST_LINES = 60, 20, 8
"""Characters after which what is said about a step ends with its sentence: more for each of its lines."""
_FOR_CALLERS = "**Callers should know:**"


def explain(request: CommandRequest, report: Report) -> CommandResult:
    """Explain the selection, the definition at the cursor or the file; or the error message that was given."""
    source = Source.of(request.snapshot, request.end)
    count = report.backend.count
    error = shortened(request.text.strip(), _ERROR_TOKENS, count) if request.text.strip() else ""
    room = PROMPT_TOKENS - (count(error) if error else 0)
    python = request.snapshot.language == "python"
    piece = None
    if not python:
        piece = source.whole_lines() if source.selected else source.everything()
    elif source.selected:
        piece = source.whole_statements()
    elif source.definition is not None:
        piece = source.piece_of(source.definition)
    if piece is None:
        code, related = source.skeleton(room, count), ""
    else:
        code = shortened(piece.code, room, count)
        left = min(room // _RELATED_SHARE, room - count(code))
        related = related_code(source, piece, left, count, open_sources(request)) if python else ""
    if not code.strip():
        raise BadInput(f"there is no code in {source.name} to explain")
    in_steps = python and not error and not request.thinking_tokens and report.backend.continues
    steps = steps_of(code) if in_steps else ()
    if steps:
        name = source.definition.name if source.definition is not None and not source.selected else "this code"
        messages = prompts.explain_steps(code, name, source.name, related)
        _explain_steps(messages, name, steps, request.max_tokens, report)
    else:
        report.write(
            Turn(
                prompts.explain(code, source.name, related, error, request.snapshot.language),
                request.max_tokens,
                code="fenced",
                thinking_tokens=request.thinking_tokens,
                thoughts=request.thoughts,
            )
        )
    return report.result()


def _explain_steps(
    messages: prompts.Messages, name: str, steps: tuple[str, ...], max_tokens: int, report: Report
) -> None:
    """A sentence about all of it, every step quoted with a sentence below, and one for callers.

    The quotes are ours: verbatim, valid, and read at the speed of a prompt instead of being written.
    """
    subject = f"`{name}`" if name.isidentifier() else name.capitalize()
    quoted = [(f"{fenced(step)}\n{_pointing(step)}", 1 + step.count("\n")) for step in steps]
    for beginning, lines in [(subject, 0), *quoted, (_FOR_CALLERS, 0)]:
        report.end_paragraph()
        report.say(beginning)
        left = max_tokens - report.stats.tokens
        if left <= 0:
            report.stop_reason = "length"
            return
        enough = _ENOUGH + _ENOUGH_A_LINE * min(lines, _MOST_LINES)
        turn = Turn(messages, min(left, _SENTENCE_TOKENS), opening=report.text, code="line", over=said(enough))
        reply = report.write(turn)
        if reply.stop_reason == "length":
            report.say(" …")


def _pointing(step: str) -> str:
    """How a sentence about a step begins."""
    match ast.parse(step).body:
        case [ast.FunctionDef() | ast.AsyncFunctionDef()]:
            return "This function"
        case [ast.For() | ast.AsyncFor() | ast.While()]:
            return "This loop"
    return "These lines" if "\n" in step else "This"


def reason(request: CommandRequest, report: Report) -> CommandResult:
    """Answer a question after thinking about it, with the selection or the file if there is one."""
    question = request.text.strip()
    if not question:
        raise BadInput("ask a question")
    source = Source.of(request.snapshot, request.end)
    count = report.backend.count
    room = PROMPT_TOKENS - count(question)
    if room < 0:
        raise BadInput(f"the question has {count(question)} tokens, at most {PROMPT_TOKENS} fit: shorten it")
    code = source.whole_statements().code if source.selected else source.text
    report.write(
        Turn(
            prompts.reason(question, source.name, source.skeleton(room, count) if code == source.text else code),
            request.max_tokens,
            code="fenced",
            thinking_tokens=request.thinking_tokens,
            thoughts=request.thoughts,
        )
    )
    return report.result()
