"""Cut a suggestion back to where it may end, so that what is shown never breaks the file around it.

A budget ends a text anywhere, and so does the end of a line: in a bracket, behind an operator, before the colon of an
`if`. Pure: knows text and, as questions that it may ask, how a text is trimmed and whether it fits. Must not know
models, tokens or grammars.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from decoding.trimming import Trimmed

_MOST_CUTS = 48
"""Places that are tried, from the end; a text that fits nowhere near its end is worth nothing."""
_SEAM = re.compile(r"(?<=\S)(?=\s)|(?<=\w)(?=[^\w\s'\"])|(?<=[^\w\s])(?=\S)")
"""Where a text may be cut: never inside a word or between the letters and the quote of a string, nor behind blanks."""

_GIVES_MEANING = re.compile(r"\s*(?:[-+*/%&|^@<>]{0,2}=(?!=)|:)")
"""What makes of the words before it something else than they are alone: a target, a key, a header."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is left of a raw text.

    Attributes:
        raw: the beginning of it that is shown, "" where none of it fits.
        trimmed: what to insert, None where there is nothing.
        cut: whether it had to be shortened to fit.
    """

    raw: str
    trimmed: Trimmed | None
    cut: bool


def cut_to_fit(
    raw: str, finished: bool, trim: Callable[[str, bool], Trimmed | None], fits: Callable[[Trimmed], bool]
) -> Fitted:
    """`raw`, or the longest beginning of it that fits.

    Args:
        raw: what the model wrote.
        finished: whether it stopped by itself.
        trim: from a raw text, and whether it is finished, to what is inserted; None where there is nothing to insert.
        fits: whether the document can be read on behind it.
    """
    trimmed = trim(raw, finished)
    if trimmed is None or (fits(trimmed) and not _changes_meaning(raw, trimmed.text)):
        return Fitted(raw, trimmed, cut=False)
    tried = {trimmed.text}
    for beginning in _beginnings(raw):
        if _changes_meaning(raw, beginning):
            continue
        shorter = trim(beginning, True)
        if shorter is not None and shorter.text not in tried:
            if fits(shorter):
                return Fitted(beginning, shorter, cut=True)
            tried.add(shorter.text)
            if len(tried) > _MOST_CUTS:
                break
    return Fitted("", None, cut=True)


def _changes_meaning(raw: str, beginning: str) -> bool:
    return raw.startswith(beginning) and _GIVES_MEANING.match(raw, len(beginning)) is not None


def _beginnings(raw: str) -> Iterator[str]:
    """Whole lines first, then parts of the first line; the longest first."""
    lines = raw.split("\n")
    for count in range(len(lines) - 1, 0, -1):
        if lines[count - 1].strip():
            yield "\n".join(lines[:count])
    for match in reversed([*_SEAM.finditer(lines[0])]):
        yield lines[0][: match.start()]
