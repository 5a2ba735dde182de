"""One text that the model writes for one place in a document, while it grows and after.

Knows bytes before and after a cursor and what was generated between them; no worker, no tasks, no protocol. Whether
a later state of the document agrees with it is decided by comparing contents, never by counting events or versions:
so nothing that a client reorders, repeats or omits can make a wrong text look right.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from decoding.hole import Hole
from decoding.messages import Chunk, Completion, EngineOptions, Multiline
from decoding.stopping import wants_lines
from decoding.trimming import Trimmed, trim_at
from lsp_server.documents import View
from lsp_server.lines import decode

WINDOW = 8_000
"""Bytes around the cursor that the text rules may look at."""
LONGEST = 20_000
"""Bytes that may have been typed since: more is no longer the same place."""
_NEAR = 64


@dataclass(slots=True)
class Generation:
    """The texts for the place between `prefix` and `suffix`, best first once it is finished.

    Closers right behind the cursor are part of neither: the texts write their own, and editors add and drop them with
    the bracket or quote that is typed.
    """

    view: View
    options: EngineOptions
    prefix: bytes
    suffix: bytes
    raws: dict[int, str] = field(default_factory=dict)
    finished: bool = False
    """Nothing more will come."""
    whole: bool = False
    """The model stopped by itself: the text is no half sentence."""
    prefilled: int = 0
    """Prompt tokens that had to be read for it."""
    failed: bool = False
    """The worker could not do it."""
    tokens: int = 0
    """That were written for it, so far."""
    seen: bool = False
    """Something of it was shown."""

    @classmethod
    def at(cls, view: View, options: EngineOptions) -> Generation:
        """An empty one for the view's cursor."""
        return cls(view, options, view.data[: view.offset], view.data[view.follows :])

    @property
    def _near(self) -> bytes:
        return self.prefix[-_NEAR:]

    @property
    def size(self) -> int:
        """Bytes of memory that keeping it costs, about."""
        return len(self.prefix) + len(self.suffix)

    def add(self, chunk: Chunk) -> None:
        """Text that came from the worker."""
        self.raws[chunk.alternative] = self.raws.get(chunk.alternative, "") + chunk.text
        self.tokens += len(chunk.token_ids)

    def finish(self, completions: tuple[Completion, ...]) -> None:
        """The worker's final word: it replaces what was streamed."""
        self.raws = {rank: completion.raw for rank, completion in enumerate(completions)}
        self.whole = bool(completions) and completions[0].stop_reason not in ("length", "cancelled")
        if completions:
            self.prefilled = completions[0].stats.prompt_tokens - completions[0].stats.reused_tokens
        self.finished = True

    def typed(self, view: View) -> str | None:
        """What stands between this text's place and the view's cursor, if it begins one of the texts; None where it
        does not or where the view is another place.

        Closers that an editor adds behind the cursor, and such as are typed over, do not make it another place.
        """
        data, start = view.data, len(self.prefix)
        end = len(data) - len(self.suffix)
        if not start <= view.offset <= min(end, start + LONGEST) or data[max(0, start - _NEAR) : start] != self._near:
            return None
        typed = _newlines(decode(data[start : view.offset]))
        added = data[view.offset : end]
        if not any(self.may_follow(typed, rank) for rank in self.raws or (0,)):
            return None
        if added and view.follows != end:
            return None
        # The whole text last: it takes longest, and of the many texts that were kept only one or two get so far.
        return typed if data.startswith(self.prefix) and data.endswith(self.suffix) else None

    def agrees(self, data: bytes) -> bool:
        """Whether a text may still turn out to follow this one: what was put into its place begins it, so far."""
        start, end = len(self.prefix), len(data) - len(self.suffix)
        if start > end or not data.startswith(self.prefix) or not data.endswith(self.suffix):
            return False
        put = decode(data[start:end])
        closers = len(put) - len(put.rstrip(")]}\"'"))
        return any(self.may_follow(_newlines(put[: len(put) - cut])) for cut in range(min(closers, 4) + 1))

    def may_follow(self, typed: str, rank: int = 0) -> bool:
        """Whether a text begins with `typed`, or may yet."""
        raw = _newlines(self.raws.get(rank, ""))
        return raw.startswith(typed) or (not self.finished and typed.startswith(raw))

    def answer(self, view: View, typed: str, multiline: Multiline, rank: int = 0) -> Trimmed | None:
        """The suggestion of alternative `rank` for a view that has `typed` of it already; offsets are the view's.

        Whether it may have several lines depends on where the view is, not on where the text began: what was written
        ahead from the end of a line is shown once the user is on the next.
        """
        raw = _newlines(self.raws.get(rank, ""))
        if not raw.startswith(typed):
            return None
        hole = Hole.at(*view.window(WINDOW, WINDOW))
        return trim_at(
            raw[len(typed) :],
            hole,
            view.offset,
            finished=self.whole,
            multiline=wants_lines(hole, multiline),
            language=view.language,
        )


def _newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
