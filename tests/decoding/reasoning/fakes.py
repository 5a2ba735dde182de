"""A backend whose texts are given beforehand."""

from __future__ import annotations

from collections.abc import Sequence

from decoding.messages import Snapshot, Stats, StopReason
from decoding.reasoning.backend import Reply, Say, Turn
from decoding.reasoning.commands import run_command
from decoding.reasoning.fixing import Trial
from decoding.reasoning.pieces import applied
from decoding.reasoning.requests import CommandRequest, CommandResult


class ScriptedBackend:
    """Writes `texts` one after the other, the last one for ever; keeps the turns that it was asked."""

    continues = True
    model, runtime, drafter = "script", "none", "none"

    def __init__(
        self, *texts: str, stop: StopReason = "end", others: Sequence[str] = (), would: str | None = None
    ) -> None:
        """`others` are the second choices for any text, `would` is what it is known to write."""
        self.would = would
        self.texts = list(texts)
        self.others = others
        self.stop = stop
        self.turns: list[Turn] = []

    def count(self, text: str) -> int:
        return len(text) // 3

    def would_write(self, turn: Turn, text: str) -> bool:
        return text == self.would

    def second_choices(self, turn: Turn, text: str) -> Sequence[str]:
        return self.others

    def reply(self, turn: Turn, say: Say) -> Reply:
        text = self.texts[min(len(self.turns), len(self.texts) - 1)]
        self.turns.append(turn)
        said, reason = "", self.stop
        for character in text:  # as the engine does: what ends it is asked after every step
            said += character
            say(character)
            if (over := turn.over(said)) is not None:
                reason = over
                break
        return Reply(said, "", said, reason, Stats(tokens=len(said), steps=len(said), mean_accepted=1.0))


def ask(
    backend: ScriptedBackend,
    command: str,
    marked: str,
    *,
    uri: str = "file:///project/shop.py",
    trial: Trial | None = None,
    language: str = "python",
    **fields: object,
) -> tuple[CommandResult, str]:
    """Run a command on a text whose selection is ⟦marked⟧ (or whose cursor is ⟦⟧); the result and what was streamed."""
    head, _, rest = marked.partition("⟦")
    selected, _, tail = rest.partition("⟧")
    start = len(head.encode())
    request = CommandRequest(
        command=command,
        snapshot=Snapshot(uri=uri, text=head + selected + tail, offset=start, language=language),
        end=start + len(selected.encode()),
        **fields,
    )
    streamed: list[str] = []
    result = run_command(request, backend, streamed.append, trial)
    return result, "".join(streamed)


def after(marked: str, result: CommandResult) -> str:
    """The text after the proposed change."""
    text = marked.replace("⟦", "").replace("⟧", "")
    return applied(text.encode(), result.replacements)


def user_text(turn: Turn) -> str:
    """What the user says last."""
    return turn.messages[-1]["content"]
