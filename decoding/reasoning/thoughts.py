"""Thoughts of a model: which marks it knows, and how readers see what stood between them.

Knows model folders' templates and the thought grammar's marks. Must not know the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from decoding.reasoning.requests import Thoughts
from grammars.reasoning import PLAN_MARKS, TEXT_MARKS, ThoughtMarks

if TYPE_CHECKING:
    from decoding.chat import ChatTemplate
    from decoding.models.loading import LoadedModel

OPEN, CLOSE = "<think>", "</think>"
_SHOWN_OPEN, _SHOWN_CLOSE = f"{OPEN}\n", f"\n{CLOSE}\n\n"


def marks_of(model: LoadedModel, template: ChatTemplate) -> ThoughtMarks:
    """The marks of a model: tokens of its tokenizer, else text that its chat template speaks of, else headings."""
    opening, closing = (model.tokenizer.token_to_id(mark) for mark in (OPEN, CLOSE))
    if opening is not None and closing is not None:
        return ThoughtMarks(open_token=opening, close_token=closing)
    return TEXT_MARKS if template.mentions(CLOSE) else PLAN_MARKS


def split_thought(raw: str, marks: ThoughtMarks, opened: bool) -> tuple[str, str]:
    """(thought, answer) of a text that the thought grammar held."""
    opening, close = marks.open.decode(), marks.close.decode()
    begun = raw if opened else raw.removeprefix(opening) if raw.startswith(opening) else None
    if begun is None and raw.startswith(opening.strip()):
        begun = raw.removeprefix(opening.strip())
    if begun is None or close not in begun:
        return ("", raw) if begun is None else (begun.strip(), "")
    thought, _, answer = begun.partition(close)
    return thought.strip(), answer.lstrip()


def shown(raw: str, marks: ThoughtMarks, how: Thoughts, opened: bool, *, finished: bool) -> str:
    """What readers see of `raw`: `<think>` … `</think>` whatever the model's own marks are, or the answer alone.

    For text that still grows (`finished` false) the result is a beginning of every later one.
    """
    close = marks.close.decode()
    if not opened and not raw.startswith(marks.open.strip().decode()):
        undecided = marks.open.decode().startswith(raw) and not finished
        return "" if undecided else raw
    thought, answer = split_thought(raw, marks, opened)
    if close in raw:
        head = f"{_SHOWN_OPEN}{thought}{_SHOWN_CLOSE}" if how == "folded" and thought else ""
        return head + answer
    if how == "hidden" or not thought:
        return ""
    return f"{_SHOWN_OPEN}{thought}{_SHOWN_CLOSE}" if finished else _SHOWN_OPEN + _certain(thought, close)


def _certain(thought: str, close: str) -> str:
    """`thought` without an end that may be the beginning of the closing mark."""
    for size in range(min(len(close) - 1, len(thought)), 0, -1):
        if close.lstrip().startswith(thought[-size:]):
            return thought[:-size].rstrip()
    return thought


class ThoughtView:
    """A growing text as readers see it: hands on each piece that will not change any more."""

    def __init__(self, marks: ThoughtMarks | None, how: Thoughts, opened: bool, say: Callable[[str], None]) -> None:
        """`marks` is None for a text without a thought, which is shown as it is."""
        self._marks = marks
        self._how = how
        self._opened = opened
        self._say = say
        self._raw = ""
        self.visible = ""

    def add(self, text: str) -> None:
        """More of the text."""
        self._raw += text
        self._show(finished=False)

    def finish(self) -> None:
        """There is no more."""
        self._show(finished=True)

    @property
    def thought(self) -> str:
        """What was thought."""
        return split_thought(self._raw, self._marks, self._opened)[0] if self._marks else ""

    @property
    def answer(self) -> str:
        """What was answered."""
        return split_thought(self._raw, self._marks, self._opened)[1] if self._marks else self._raw

    def _show(self, *, finished: bool) -> None:
        now = shown(self._raw, self._marks, self._how, self._opened, finished=finished) if self._marks else self._raw
        if len(now) > len(self.visible):
            self._say(now[len(self.visible) :])
            self.visible = now
