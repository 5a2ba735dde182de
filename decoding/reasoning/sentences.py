"""When a sentence or two are enough: the end of what is said about one step.

Knows growing texts. Must not know what is spoken about.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from decoding.messages import StopReason

_END = re.compile(r"[.!?][)\"']?$")
_NO_END = re.compile(r"(?:\d|\b(?:e\.g|i\.e|cf|vs|etc|resp|approx))\.$", re.IGNORECASE)


def said(enough: int) -> Callable[[str], StopReason | None]:
    """A rule for growing texts: over with the line, or with the first sentence that ends behind `enough` characters.

    Small models that are asked for one sentence write two or three; a limit of tokens would cut the last one.
    """

    def over(text: str) -> StopReason | None:
        if "\n" in text.lstrip() and text.strip():
            return "line"
        return "line" if len(text) >= enough and ends_sentence(text) else None

    return over


def ends_sentence(text: str) -> bool:
    """Whether `text` ends where a sentence does: not in a number, an abbreviation or `code`."""
    whole = _END.search(text) is not None and _NO_END.search(text) is None
    return whole and text.count("`") % 2 == 0
