"""Text from tokens that come one by one: what was healed is left out, half characters wait.

Knows bytes. Must not know tokens' ids or where they come from.
"""

from __future__ import annotations

import codecs


class TextStream:
    """Decodes UTF-8 incrementally after skipping the healed bytes."""

    def __init__(self, healed: bytes) -> None:
        """`healed` is what the first bytes spell again: it stands before the cursor already."""
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._to_skip = len(healed)
        self.text = ""

    def add(self, new: bytes) -> str:
        """The text that became complete with `new`."""
        skipped = min(self._to_skip, len(new))
        self._to_skip -= skipped
        said = self._decoder.decode(new[skipped:])
        self.text += said
        return said
