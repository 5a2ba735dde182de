"""The Markdown of one command while it grows, and the sum of what its texts cost.

Knows replies. Must not know commands.
"""

from __future__ import annotations

from dataclasses import replace

from decoding.messages import Stats, StopReason
from decoding.reasoning.backend import Backend, Reply, Say, Turn
from decoding.reasoning.pieces import code_of, fence_is_closed
from decoding.reasoning.requests import CommandResult, NewFile, Replacement

FENCE = "```python\n"


class Report:
    """What readers see of a command. Everything goes through `say`, so that what was streamed is what is answered."""

    def __init__(self, backend: Backend, say: Say) -> None:
        self.backend = backend
        self._say = say
        self.text = ""
        self.thought = ""
        self.stats = Stats()
        self.stop_reason: StopReason = "end"
        self.tries = 0

    def say(self, text: str) -> None:
        """Add Markdown."""
        self.text += text
        if text:
            self._say(text)

    def write(self, turn: Turn, *, silently: bool = False) -> Reply:
        """Let the backend write one text, shown as it comes or not at all."""
        reply = self.backend.reply(turn, (lambda _: None) if silently else self.say)
        self.stats = added(self.stats, reply.stats)
        self.stop_reason = reply.stop_reason
        self.thought = "\n\n".join(filter(None, (self.thought, reply.thought)))
        return reply

    def write_code(self, turn: Turn, opening: str, *, silently: bool = False) -> tuple[str, Reply]:
        """(code, reply) of a turn that is answered with one block of code, which begins with `opening` where the
        backend can go on behind one; the turn's own opening does not count."""
        if not self.backend.continues:
            reply = self.write(replace(turn, code="fenced", opening=""), silently=silently)
            self._end_line(silently)
            return code_of(reply.text, opened=False), reply
        if not silently:
            self.say(FENCE + opening)
        held = replace(turn, opening=FENCE + opening, code="all", over=_closed)
        reply = self.write(held, silently=silently)
        if not silently and not fence_is_closed(reply.text):
            self.say("\n```")
        self._end_line(silently)
        return code_of(opening + reply.text, opened=True), reply

    def end_paragraph(self) -> None:
        """Make what comes next begin behind an empty line."""
        if self.text:
            self.say("\n" * (2 - len(self.text) + len(self.text.rstrip("\n"))))

    def _end_line(self, silently: bool) -> None:
        if not silently and not self.text.endswith("\n"):
            self.say("\n")

    def result(
        self,
        *,
        replacements: tuple[Replacement, ...] = (),
        new_file: NewFile | None = None,
        checks: tuple[str, ...] = (),
    ) -> CommandResult:
        """The answer; the checks are said at its end."""
        if checks:
            self.say("\n" + "".join(f"- {check}\n" for check in checks))
        return CommandResult(
            text=self.text,
            thought=self.thought,
            replacements=replacements,
            new_file=new_file,
            checks=checks,
            tries=max(1, self.tries),
            stop_reason=self.stop_reason,
            model=self.backend.model,
            runtime=self.backend.runtime,
            drafter=self.backend.drafter,
            stats=self.stats,
        )


def added(one: Stats, other: Stats) -> Stats:
    """The cost of two texts together."""
    steps = one.steps + other.steps
    decode_ms = one.decode_ms + other.decode_ms
    emitted = one.mean_accepted * one.steps + other.mean_accepted * other.steps
    reasons = dict.fromkeys(filter(None, (one.constraint_off_reason, other.constraint_off_reason)))
    return Stats(
        prompt_tokens=one.prompt_tokens + other.prompt_tokens,
        reused_tokens=one.reused_tokens + other.reused_tokens,
        prefill_ms=round(one.prefill_ms + other.prefill_ms, 3),
        steps=steps,
        drafted=one.drafted + other.drafted,
        accepted=one.accepted + other.accepted,
        tokens=one.tokens + other.tokens,
        mean_accepted=round(emitted / steps, 4) if steps else 0.0,
        decode_ms=round(decode_ms, 3),
        tokens_per_second=round(1e3 * emitted / decode_ms, 2) if decode_ms else 0.0,
        mask_ms=round(one.mask_ms + other.mask_ms, 3),
        scope_ms=round(one.scope_ms + other.scope_ms, 3),
        constraint_off_reason="; ".join(reasons) or None,
    )


def _closed(text: str) -> StopReason | None:
    return "stop_text" if fence_is_closed(text) else None
