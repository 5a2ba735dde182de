"""When a suggestion is over: the line is finished, the block is left, the text after the cursor is reached.

Pure and torch-free. Knows text around a cursor; must not know tokens or models. Small code models hardly ever end
a suggestion by themselves (none of 48 measured multi-line holes), so these rules are what ends it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from decoding.hole import Hole
from decoding.messages import Multiline, StopReason
from decoding.text_rules import within_block, within_paragraph, without_repeated_next_lines

_OPENS = re.compile(r":\s*(?:#.*)?\Z")
_ONLY_CLOSERS = re.compile(r"[\s)\]}'\",:;]*\Z")


def wants_lines(hole: Hole, multiline: Multiline) -> bool:
    """Whether the position calls for several lines: nothing but closers after the cursor, and before it either
    nothing or the head of a block."""
    if multiline != "auto":
        return multiline == "always"
    if not _ONLY_CLOSERS.match(hole.after):
        return False
    before = hole.before.strip()
    return (not before and not hole.after.strip()) or (bool(_OPENS.search(hole.before)) and not hole.after.strip())


@dataclass(frozen=True, slots=True)
class StopRule:
    """The rule for one request.

    Attributes:
        hole: the surroundings of the cursor.
        several_lines: from `wants_lines`.
        python: whether indentation means blocks.
        texts: further texts that end it.
    """

    hole: Hole
    several_lines: bool
    python: bool = True
    texts: tuple[str, ...] = ()

    def reason(self, raw: str) -> StopReason | None:
        """Why the text is over after `raw`, None while it goes on."""
        if any(text in raw for text in self.texts):
            return "stop_text"
        if "\n" not in raw:
            return None
        if not self.several_lines:
            return "line"
        if without_repeated_next_lines(raw, self.hole) != raw:
            return "suffix"
        if self.python and within_paragraph(within_block(raw, self.hole), self.hole) != raw:
            return "block"
        return None
