"""Steering: what holds one answer, beside the options.

Knows the Constraint protocol. Must not know models, prompts or what the answer is for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from decoding.messages import StopReason
from grammars.constraint import Constraint


def _goes_on(_: str) -> StopReason | None:
    return None


def _nobody_waits() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Steering:
    """How an answer begins, what it may say and when it is over.

    Attributes:
        opening: text that the answer begins with; the model goes on behind it. Not part of the answer's text.
        constraint: what may be said after the opening; None allows everything.
        over: asked after every token with the text so far: why the answer is over, None while it goes on.
        marks: special tokens that readers see, with their text (`<think>`); others have none.
        stops: special tokens at which the answer is over, beside the model's own ends.
        pause: called between two rounds. It may use the same assistant for something more urgent and says whether
            it did: the answer then takes up its place again, and its text is what it would have been.
    """

    opening: str = ""
    constraint: Constraint | None = None
    over: Callable[[str], StopReason | None] = _goes_on
    marks: Mapping[int, bytes] = field(default_factory=dict)
    stops: frozenset[int] = frozenset()
    pause: Callable[[], bool] = _nobody_waits
    think: bool = True
