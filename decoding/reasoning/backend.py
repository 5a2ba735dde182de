"""The Backend protocol: who writes the texts of a command; and the local one, our own engine.

Knows turns and replies. Must not know what a command does with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from decoding.errors import Cancelled
from decoding.messages import EngineOptions, Stats, StopReason
from decoding.reasoning.requests import Thoughts
from decoding.reasoning.source import Source
from decoding.reasoning.thoughts import OPEN, ThoughtView
from decoding.steering import Steering
from grammars.constraint import Both, Constraint, Unconstrained

if TYPE_CHECKING:
    from decoding.assistant import Assistant

Say = Callable[[str], None]
Code = Literal["anywhere", "fenced", "line", "all"]


def _goes_on(_: str) -> StopReason | None:
    return None


@dataclass(frozen=True, slots=True)
class Turn:
    """One text to be written.

    Attributes:
        messages: {"role", "content"} of the conversation, the user's last.
        max_tokens: of the text, thought included.
        opening: what the text begins with; not part of the reply.
        code: where Python is held to its grammar: "anywhere" holds nothing, "fenced" every ```python fence, "line"
            too, but the text goes on in a line that has begun; "all" the text from its beginning up to a closing
            fence (the opening has opened one).
        thinking_tokens: the budget of a thought before the answer, 0 for none.
        thoughts: how a thought is shown while it streams.
        over: asked with the text so far: why it is over, None while it goes on.
        temperature, seed: sampling; None takes the options'.
        replaces: the part of the user's file that the code is for: names count that exist there.
    """

    messages: Sequence[dict[str, str]]
    max_tokens: int
    opening: str = ""
    code: Code = "anywhere"
    thinking_tokens: int = 0
    thoughts: Thoughts = "folded"
    over: Callable[[str], StopReason | None] = field(default=_goes_on)
    temperature: float | None = None
    seed: int | None = None
    replaces: Source | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What was written: the answer, the thought before it, how readers see both, and what it cost."""

    text: str
    thought: str
    shown: str
    stop_reason: StopReason
    stats: Stats


class Backend(Protocol):
    """Writes texts. `say` gets each piece of what readers see as it comes."""

    @property
    def continues(self) -> bool:
        """Whether it can go on behind an opening; where not, turns have none."""

    @property
    def model(self) -> str:
        """The model's name."""

    @property
    def runtime(self) -> str:
        """What runs it, for people."""

    @property
    def drafter(self) -> str:
        """What drafts for it, "none" where nothing does."""

    def count(self, text: str) -> int:
        """About how many tokens `text` has."""

    def reply(self, turn: Turn, say: Say) -> Reply:
        """Write one text. Raises Cancelled, BadInput or ModelError."""

    def would_write(self, turn: Turn, text: str) -> bool:
        """Whether the reply to `turn` is known to begin with `text`; false where it is sampled, or not known."""

    def second_choices(self, turn: Turn, text: str) -> Sequence[str]:
        """Beginnings of other replies to `turn` than `text`, the likeliest first; none where that is not known."""


class LocalBackend:
    """The assistant of this process."""

    continues = True

    def __init__(
        self,
        assistant: Assistant,
        options: EngineOptions,
        cancelled: Callable[[], bool],
        pause: Callable[[], bool] = lambda: False,
    ) -> None:
        """`pause` is asked between rounds; see `Steering`."""
        self._assistant = assistant
        self._options = options
        self._cancelled = cancelled
        self._pause = pause
        self.model = assistant.model.folder.name
        self.runtime = assistant.model.target.runtime
        self.drafter = options.drafter

    def count(self, text: str) -> int:
        """See `Backend`."""
        return len(self._assistant.model.encode(text))

    def reply(self, turn: Turn, say: Say) -> Reply:
        """See `Backend`."""
        thinks = turn.thinking_tokens > 0
        marks = self._assistant.thoughts.marks
        opened = thinks and self._assistant.chat.render(turn.messages).rstrip().endswith(OPEN)
        view = ThoughtView(marks if thinks else None, turn.thoughts, opened, say)
        steering = Steering(
            opening=turn.opening,
            constraint=self._constraint(turn, opened),
            over=turn.over,
            marks=marks.shown_tokens,
            pause=self._pause,
            think=thinks,
        )
        answer = self._assistant.answer(
            turn.messages, self._options_for(turn), self._cancelled, lambda chunk: view.add(chunk.text), None, steering
        )
        if answer.stop_reason == "cancelled":
            raise Cancelled("the answer is not wanted any more")
        view.finish()
        return Reply(view.answer, view.thought, view.visible, answer.stop_reason, answer.stats)

    def would_write(self, turn: Turn, text: str) -> bool:
        """See `Backend`. Only of turns without a thought."""
        if self._options_for(turn).temperature > 0.0:
            return False
        return self._assistant.would_write(turn.messages, text, self._cancelled, self._aside(turn))

    def second_choices(self, turn: Turn, text: str) -> Sequence[str]:
        """See `Backend`. Only of turns without a thought."""
        return self._assistant.second_choices(turn.messages, text, self._cancelled, self._aside(turn))

    def _aside(self, turn: Turn) -> Steering:
        return Steering(opening=turn.opening, constraint=self._constraint(turn, opened=False), think=False)

    def _options_for(self, turn: Turn) -> EngineOptions:
        changes: dict[str, object] = {"max_tokens": turn.max_tokens}
        if turn.temperature is not None:
            changes["temperature"] = turn.temperature
        if turn.seed is not None:
            changes["seed"] = turn.seed
        return self._options.model_copy(update=changes)

    def _constraint(self, turn: Turn, opened: bool) -> Constraint | None:
        """Python in fences, or from the opening on, and a thought before it; the mode `off` leaves only the thought."""
        held: Constraint | None = None
        if self._options.constraint != "off" and turn.code != "anywhere":
            fences = self._assistant.fences
            code = turn.opening.partition("\n")[2]
            prose = fences.mid_line() if turn.code == "line" else fences.prose()
            held = fences.in_code(code) if turn.code == "all" else prose
            if held is not None and turn.replaces is not None:
                held = self._scoped(held, code, turn.replaces)
        if not turn.thinking_tokens:
            return held
        return self._assistant.thoughts.start(
            turn.thinking_tokens, turn.max_tokens, held or Unconstrained(), opened=opened
        )

    def _scoped(self, held: Constraint, code: str, place: Source) -> Constraint:
        """`held` together with the names at a place of the user's file, `code` having been written there."""
        if self._options.scope == "off":
            return held
        index = self._assistant.infilling.scopes.index(place.uri, place.data)
        if index is None:
            return held
        names = self._assistant.infilling.names.open(index, place.end, self._options.scope, place.start)
        return Both(held, names.read(code.encode()).state) if names.off_reason is None else held
