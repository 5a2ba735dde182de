"""A larger machine: any OpenAI-compatible server in place of the local model. The same prompts, the same checks.

Knows the fields of requests and answers; never torch. Drafting and masks are the server's business; trimming, stop
rules and the checks of the commands stay here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from decoding.hole import Hole
from decoding.messages import Answer, Chunk, Completion, EngineOptions, ModelProgress, Snapshot, Stats, StopReason
from decoding.names import imports_for
from decoding.reasoning.backend import Reply, Say, Turn
from decoding.reasoning.commands import run_command
from decoding.reasoning.fixing import Trial
from decoding.reasoning.requests import CommandRequest, CommandResult, Replacement
from decoding.reasoning.thoughts import ThoughtView
from decoding.server import CancelCheck, Server
from decoding.stopping import StopRule, wants_lines
from decoding.trimming import trim
from grammars.reasoning import TEXT_MARKS
from grammars.scope_documents import ScopeDocuments

_BYTES_PER_TOKEN = 3
"""Windows are cut in characters here: the server's tokenizer is not known. Code has 3.2 bytes a token."""
_INFILLING = (
    (r"qwen.*coder|codeqwen|codegemma", ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")),
    (r"starcoder|granite.*code", ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")),
    (r"deepseek-coder", ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")),
)
"""Marks by the model's name: a server does not say which ones its model has learnt."""
_LEAKS = ("<|endoftext|>", "<|im_end|>", "<|fim_pad|>", "<|file_sep|>", "<|repo_name|>", "<file_sep>", "</s>")
"""What a server may spell out of a special token with which its model ends a file. Here only its text can be seen, so
it counts only where the file itself does not hold it."""
_REASONS: dict[str, StopReason] = {"stop": "end", "length": "length"}


@dataclass(slots=True)
class _Cost:
    """What one answer cost, as far as it can be seen from here."""

    started: float = field(default_factory=time.perf_counter)
    first: float | None = None
    pieces: int = 0
    usage: dict[str, int] = field(default_factory=dict)

    def see(self, event: dict[str, Any]) -> None:
        self.pieces += 1
        self.first = self.first or time.perf_counter()
        self.usage = event.get("usage") or self.usage

    def stats(self) -> Stats:
        now = time.perf_counter()
        first = self.first or now
        tokens = int(self.usage.get("completion_tokens", self.pieces))
        decode = 1e3 * (now - first)
        return Stats(
            prompt_tokens=int(self.usage.get("prompt_tokens", 0)),
            prefill_ms=round(1e3 * (first - self.started), 3),
            steps=self.pieces,
            tokens=tokens,
            mean_accepted=round(tokens / self.pieces, 4) if self.pieces else 0.0,
            decode_ms=round(decode, 3),
            tokens_per_second=round(1e3 * tokens / decode, 2) if decode else 0.0,
            constraint_off_reason="a remote server decodes",
        )


class RemoteBackend:
    """Writes the texts of commands on a server. It cannot go on behind an opening."""

    continues = False
    drafter = "none"

    def __init__(self, server: Server, options: EngineOptions, cancelled: CancelCheck) -> None:
        self._server = server
        self._options = options
        self._cancelled = cancelled
        self.model = server.model
        self.runtime = f"remote {server.url}"

    def count(self, text: str) -> int:
        """See `Backend`: an estimate."""
        return len(text.encode("utf-8", "surrogatepass")) // _BYTES_PER_TOKEN + 1

    def would_write(self, turn: Turn, text: str) -> bool:
        """See `Backend`: not known."""
        return False

    def second_choices(self, turn: Turn, text: str) -> Sequence[str]:
        """See `Backend`: what a server could have said instead is not known."""
        return ()

    def reply(self, turn: Turn, say: Say) -> Reply:
        """See `Backend`. A thought is what the server calls so, or what stands in `<think>`."""
        payload = {
            "messages": list(turn.messages),
            "max_tokens": turn.max_tokens,
            **_sampling(self._options, turn.temperature, turn.seed),
        }
        view = ThoughtView(TEXT_MARKS, turn.thoughts, False, say)
        cost = _Cost()
        reason: StopReason = "end"
        text = ""
        thinking = False
        for event in self._server.events("chat/completions", payload, self._cancelled):
            cost.see(event)
            for choice in event["choices"]:
                delta = choice.get("delta") or {}
                thought = delta.get("reasoning_content") or delta.get("reasoning") or ""
                said = delta.get("content") or ""
                if thought:
                    view.add(thought if thinking else f"<think>\n{thought}")
                    thinking = True
                said, found = _until(turn.over, text, said)
                if said:
                    view.add(f"\n</think>\n\n{said}" if thinking else said)
                    thinking = False
                    text += said
                reason = found or _REASONS.get(choice.get("finish_reason") or "", reason)
                if found is not None:
                    view.finish()
                    return Reply(view.answer, view.thought, view.visible, found, cost.stats())
        view.finish()
        return Reply(view.answer, view.thought, view.visible, reason, cost.stats())


class RemoteAssistant:
    """The facade of `decoding.assistant.Assistant` for a server."""

    def __init__(self, options: EngineOptions, progress: Callable[[ModelProgress], None] = lambda _: None) -> None:
        """Ask the server for its model where none is named. Raises RemoteError."""
        progress(ModelProgress(model=options.remote_model or options.remote_url, stage="load"))
        self.options = options
        self.server = Server.of(options)
        self.scopes = ScopeDocuments()
        self.marks = next(
            (marks for names, marks in _INFILLING if re.search(names, self.server.model, re.IGNORECASE)), None
        )

    def complete(
        self,
        snapshot: Snapshot,
        options: EngineOptions,
        cancelled: CancelCheck,
        emit: Callable[[Chunk], None],
        watch: object = None,
    ) -> list[Completion]:
        """See `Assistant.complete`; one alternative. Raises RemoteError, Cancelled."""
        hole = Hole.at(snapshot.text, snapshot.offset)
        leaks = tuple(mark for mark in (*(self.marks or ()), *_LEAKS) if mark not in snapshot.text)
        rule = StopRule(hole, wants_lines(hole, options.multiline), snapshot.language == "python", leaks)
        payload = {
            "prompt": self._prompt(snapshot, options),
            "max_tokens": options.max_tokens,
            **_sampling(options, None, None),
        }
        raw, reason, stats = self._written("completions", payload, rule.reason, cancelled, emit)
        raw = raw[: min((raw.find(mark) for mark in leaks if mark in raw), default=len(raw))]
        trimmed = trim(
            raw,
            text=snapshot.text,
            offset=snapshot.offset,
            finished=reason != "length",
            multiline=rule.several_lines,
            language=snapshot.language,
        )
        return [
            Completion(
                text=trimmed.text if trimmed else "",
                start=trimmed.start if trimmed else snapshot.offset,
                end=trimmed.end if trimmed else snapshot.offset,
                raw=raw,
                token_ids=(),
                stop_reason=reason,
                constraint="off",
                stats=stats,
                **self._names,
            )
        ]

    def answer(
        self,
        prompt: str | Sequence[dict[str, str]],
        options: EngineOptions,
        cancelled: CancelCheck,
        emit: Callable[[Chunk], None],
    ) -> Answer:
        """See `Assistant.answer`. Raises RemoteError, Cancelled."""
        path, asked = ("completions", {"prompt": prompt}) if isinstance(prompt, str) else (
            "chat/completions", {"messages": list(prompt)}
        )  # fmt: skip
        payload = {**asked, "max_tokens": options.max_tokens, **_sampling(options, None, None)}
        text, reason, stats = self._written(path, payload, lambda _: None, cancelled, emit)
        return Answer(text=text, token_ids=(), stop_reason=reason, stats=stats, **self._names)

    def command(
        self,
        request: CommandRequest,
        options: EngineOptions,
        cancelled: CancelCheck,
        emit: Callable[[Chunk], None],
        pause: Callable[[], bool] = lambda: False,
        trial: Trial | None = None,
    ) -> CommandResult:
        """See `Assistant.command`. While the server is silent, `pause` is asked as between rounds."""

        def wanted_no_more() -> bool:
            pause()
            return cancelled()

        backend = RemoteBackend(self.server, options, wanted_no_more)
        return run_command(request, backend, lambda text: emit(Chunk(text=text, token_ids=())), trial)

    def prepare(self) -> Iterator[None]:
        """Nothing is made here ahead."""
        return iter(())

    def warm(self, snapshot: Snapshot, options: EngineOptions, cancelled: CancelCheck) -> None:
        """Nothing is kept here that could be warm."""

    def forget(self, uri: str) -> None:
        """Drop what was kept of a document."""
        self.scopes.forget(uri)

    def imports(self, snapshot: Snapshot, start: int) -> tuple[Replacement, ...]:
        """See `Assistant.imports`."""
        return imports_for(self.scopes, snapshot, start)

    def describe(self) -> dict[str, object]:
        """What runs, for status and statistics."""
        reason = None if self.marks else f"{self.server.model} cannot fill in the middle: only what is above counts"
        return {"model": self.server.model, "runtime": f"remote {self.server.url}", "fallback_reason": reason}

    @property
    def _names(self) -> dict[str, str]:
        return {"model": self.server.model, "runtime": f"remote {self.server.url}", "drafter": "none"}

    def _prompt(self, snapshot: Snapshot, options: EngineOptions) -> str:
        """The same layout as for the local model: suffix first where the model can fill in the middle."""
        data = snapshot.text.encode("utf-8", "surrogatepass")
        before = data[: snapshot.offset][-options.prefix_tokens * _BYTES_PER_TOKEN :].decode("utf-8", "ignore")
        if self.marks is None:
            return before
        after = data[snapshot.offset :][: options.suffix_tokens * _BYTES_PER_TOKEN].decode("utf-8", "ignore")
        prefix, suffix, middle = self.marks
        return f"{prefix}{suffix}{after}{middle}{before}"

    def _written(
        self,
        path: str,
        payload: dict[str, Any],
        over: Callable[[str], StopReason | None],
        cancelled: CancelCheck,
        emit: Callable[[Chunk], None],
    ) -> tuple[str, StopReason, Stats]:
        text = ""
        reason: StopReason = "end"
        cost = _Cost()
        for event in self.server.events(path, payload, cancelled):
            cost.see(event)
            for choice in event["choices"]:
                said = str(choice.get("text") or (choice.get("delta") or {}).get("content") or "")
                reason = _REASONS.get(choice.get("finish_reason") or "", reason)
                kept, found = _until(over, text, said)
                text += kept
                if kept:
                    emit(Chunk(text=kept, token_ids=()))
                if found is not None:
                    return text, found, cost.stats()
        return text, reason, cost.stats()


def _until(over: Callable[[str], StopReason | None], text: str, said: str) -> tuple[str, StopReason | None]:
    """As much of `said` behind `text` as comes before its end, and why it ended: the end may lie anywhere in it."""
    for size in range(1, len(said) + 1):
        found = over(text + said[:size])
        if found is not None:
            return said[:size], found
    return said, None


def make_assistant(options: EngineOptions, progress: Callable[[ModelProgress], None] = lambda _: None) -> Any:
    """The assistant of the options: a server where one is named, else this machine."""
    if options.remote_url:
        return RemoteAssistant(options, progress)
    from decoding.assistant import Assistant

    return Assistant(options, progress)


def _sampling(options: EngineOptions, temperature: float | None, seed: int | None) -> dict[str, Any]:
    """The fields that every server knows."""
    chosen = options.temperature if temperature is None else temperature
    values: dict[str, Any] = {"temperature": chosen, "seed": options.seed if seed is None else seed}
    if options.top_p < 1.0:
        values["top_p"] = options.top_p
    return values
