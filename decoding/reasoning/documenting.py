"""docstring: the structure comes from the signature, the words from the model, one slot after the other.

Knows shapes and the backend. The prompt is laid out as a list that the model fills in, so that every slot reuses the
keys and values of those before it.
"""

from __future__ import annotations

from decoding.errors import BadInput
from decoding.messages import StopReason
from decoding.reasoning import prompts
from decoding.reasoning.backend import Turn
from decoding.reasoning.docstrings import Shape, chosen_style, cleaned, insertion, shape_of, written
from decoding.reasoning.pieces import fenced
from decoding.reasoning.report import Report
from decoding.reasoning.requests import CommandRequest, CommandResult
from decoding.reasoning.source import Source, shortened

_CODE_TOKENS = 640
_SLOT_TOKENS = 48
_SUMMARY_TOKENS = 64


def docstring(request: CommandRequest, report: Report) -> CommandResult:
    """Document the function or class at the cursor; a docstring that it has is replaced."""
    source = Source.of(request.snapshot, request.end)
    definition = source.definition
    if definition is None:
        raise BadInput("put the cursor into a function or class to document it")
    piece = source.piece_of(definition)
    shape = shape_of(piece.code, method=definition.in_class)
    if shape is None:
        raise BadInput(f"{definition.qualified_name} does not parse: repair it first")
    style = chosen_style(request.style, source.text)
    words = _filled(shortened(piece.code, _CODE_TOKENS, report.backend.count), shape, report)
    change = insertion(source.data, definition, lambda indentation: written(shape, words, style, indentation))
    if change is None:
        return report.result(
            checks=(f"no change is proposed: {definition.qualified_name} has a form that cannot take a docstring",)
        )
    report.say(fenced(f'"""{written(shape, words, style, "")}"""'))
    listed = ", ".join(name for name, _ in shape.parameters) or "none"
    return report.result(
        replacements=(change,),
        checks=(
            f"{definition.qualified_name} is the same code with a docstring in {style} style",
            f"parameters as in the signature: {listed}",
        ),
    )


def _filled(code: str, shape: Shape, report: Report) -> dict[str, str]:
    """The words for every slot. A slot that stays empty is asked again, sampled; what it says then counts."""
    messages = prompts.document(code, shape.slots)
    if not report.backend.continues:
        reply = report.write(Turn(messages, _SLOT_TOKENS * (len(shape.slots) + 1)), silently=True)
        return _lines_of(reply.text, shape.slots)
    words: dict[str, str] = {}
    opening = ""
    for slot in shape.slots:
        opening += f"{slot}:"
        for temperature in (None, 0.8):
            turn = Turn(
                messages,
                _SLOT_TOKENS if opening.count("\n") else _SUMMARY_TOKENS,
                opening=opening,
                over=_line_is_over,
                temperature=temperature,
            )
            reply = report.write(turn, silently=True)
            words[slot] = _first_line(reply.text, finished=reply.stop_reason != "length")
            if cleaned(words[slot]):
                break
        opening += f" {words[slot].strip()}\n"
    return words


def _lines_of(text: str, slots: tuple[str, ...]) -> dict[str, str]:
    """The words of every slot from a list that was written at once."""
    words: dict[str, str] = {}
    for line in text.split("\n"):
        name, found, said = line.strip(" -`").partition(":")
        if found and (slot := name.strip(" `")) in slots:
            words.setdefault(slot, said.strip(" `"))
    return words


def _line_is_over(text: str) -> StopReason | None:
    return "line" if text.strip() and "\n" in text.lstrip() else None


def _first_line(text: str, *, finished: bool) -> str:
    """One slot's words; a line that was cut ends at its last whole sentence or clause."""
    line = text.strip().split("\n", 1)[0].strip()
    if finished or "\n" in text.strip():
        return line
    for end in (". ", "; ", ", "):
        head, found, _ = line.rpartition(end)
        if found and len(head) > len(line) // 3:
            return head
    return line.rpartition(" ")[0] or line
