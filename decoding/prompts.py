"""Prompts: what the model reads for a cursor in a file.

Knows token ids, a tokenizer's `encode`, the infilling marks of a model and the line that a cursor splits. Must not know
the engine, caches or what is done with the answer. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from decoding.hole import closed_already
from decoding.models.folder import InfillingTokens
from grammars.healing import worth_healing
from grammars.vocabulary import Vocabulary

Encode = Callable[[str], list[int]]

WINDOW_STEP_LINES = 16
"""The window's first line moves in steps of this many lines: while it stands still, a keystroke leaves every key
and value before it valid."""
_WINDOW_STEP_TOKENS = 64
"""The same for windows that begin within a line."""
_BYTES_PER_TOKEN = 5
"""More than any real code needs on average (measured 3.2 on the standard library): bounds what is tokenised."""
_LINE_ENDS = re.compile("\r\n?")


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids to continue, and the text that was taken back for healing.

    Attributes:
        token_ids: at least one; the last is the first root.
        healed: bytes at the end of the text before the cursor that the first new tokens must spell again.
    """

    token_ids: tuple[int, ...]
    healed: bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """How a model wants to be asked.

    Attributes:
        encode: text to ids without any special token, text that looks like one included.
        vocabulary: the ids' bytes.
        start: ids that begin every text of this model (often none).
        fallback: an id to begin with where there would be no token at all.
        fim: the infilling marks, None for models without.
    """

    encode: Encode
    vocabulary: Vocabulary
    start: tuple[int, ...]
    fallback: int
    fim: InfillingTokens | None

    def infill(self, text: bytes, offset: int, prefix_tokens: int, suffix_tokens: int) -> Prompt:
        """The prompt for the cursor at byte `offset` of `text`.

        The suffix comes first (`fim_prefix fim_suffix S fim_middle P`): measured better than the usual order with
        token healing, and a keystroke at the end of P reuses every key before it. For the same reason S begins behind
        what an editor has closed already: a `(` that brings its `)` along would change the very first token of S.
        """
        before = self._last_tokens(text[:offset], max(32, prefix_tokens))
        ids, healed = self._healed(before)
        if self.fim is None:
            ids = [*self.start, *ids]
            return Prompt(tuple(ids or [self.fallback]), healed)
        after = self._suffix(text[offset + closed_already(text, offset) :], suffix_tokens)
        return Prompt((self.fim.prefix, self.fim.suffix, *after, self.fim.middle, *ids), healed)

    def shown(self, prompt: Prompt) -> tuple[int, int]:
        """How many bytes before and after the cursor an infilling prompt shows, where line ends are one byte."""
        ids = prompt.token_ids
        middle = ids.index(self.fim.middle) if self.fim is not None else len(self.start) - 1
        before, after = (self.vocabulary.decode(part) for part in (ids[middle + 1 :], ids[:middle]))
        return len(before) + len(prompt.healed), len(after)

    def behind(self, prompt: Prompt, text: str) -> Prompt:
        """An infilling prompt with `text` above what it shows of the document before the cursor."""
        ids = prompt.token_ids
        at = ids.index(self.fim.middle) + 1 if self.fim is not None else len(self.start)
        return Prompt((*ids[:at], *self.encode(text), *ids[at:]), prompt.healed)

    def continuation(self, text: str) -> Prompt:
        """The prompt that is `text` itself, not healed."""
        ids = [*self.start, *self.encode(text)]
        return Prompt(tuple(ids or [self.fallback]), b"")

    def _last_tokens(self, before: bytes, budget: int) -> list[int]:
        """The end of `before` in at most `budget` tokens, from a line start that is a multiple of the step."""
        ids: list[int] = []
        for start in window_starts(before, budget * _BYTES_PER_TOKEN):
            ids = self.encode(_as_text(before[start:]))
            if len(ids) <= budget:
                return ids
        surplus = len(ids) - budget
        return ids[surplus + -surplus % min(_WINDOW_STEP_TOKENS, budget // 2) :]

    def _suffix(self, after: bytes, budget: int) -> list[int]:
        """The beginning of `after` in at most `budget` tokens, whole lines where there are any."""
        text = _as_text(after[: budget * _BYTES_PER_TOKEN])
        ids = self.encode(text)
        while len(ids) > budget:
            cut = text.rfind("\n", 0, max(1, len(text) * budget // len(ids)))
            if cut <= 0:
                return ids[:budget]
            text = text[:cut]
            ids = self.encode(text)
        return ids

    def _healed(self, ids: list[int]) -> tuple[list[int], bytes]:
        """`ids` without its last token where another token could begin with that token's text."""
        if not ids:
            return ids, b""
        last = self.vocabulary.tokens[ids[-1]]
        return (ids[:-1], last) if worth_healing(self.vocabulary, last) else (ids, b"")


def window_starts(before: bytes, most_bytes: int) -> list[int]:
    """Byte offsets at which a window that ends with `before` may begin, longest window first.

    Line starts whose line number is a multiple of the step, then, for files with few long lines, every line start
    of the last step; within a line that is longer than all of it, a place that moves in steps as well.
    """
    lowest = max(0, len(before) - most_bytes)
    line = before.count(b"\n", 0, lowest)
    coarse = [0] if lowest == 0 else []
    fine: list[int] = []
    position = lowest
    while (position := before.find(b"\n", position) + 1) > 0:
        line += 1
        fine.append(position)
        if line % WINDOW_STEP_LINES == 0:
            coarse.append(position)
    return [*coarse, *fine[-WINDOW_STEP_LINES:]] or [lowest + -lowest % (most_bytes // 4)]


def _as_text(part: bytes) -> str:
    """Text of a window: one kind of line end, no half characters."""
    return _LINE_ENDS.sub("\n", part.decode("utf-8", "ignore"))
