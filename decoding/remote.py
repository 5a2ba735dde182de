"""A larger machine: any OpenAI-compatible server in place of the local model. The same prompts, the same checks.

Knows HTTP and server-sent events; never torch. Drafting and masks are the server's business; trimming, stop rules
and the checks of the commands stay here. Every way in which a server can fail becomes one line for people.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import httpx

from decoding.errors import Cancelled, RemoteError
from decoding.hole import Hole
from decoding.messages import Answer, Chunk, Completion, EngineOptions, ModelProgress, Snapshot, Stats, StopReason
from decoding.reasoning.backend import Reply, Say, Turn
from decoding.reasoning.commands import run_command
from decoding.reasoning.fixing import Trial
from decoding.reasoning.requests import CommandRequest, CommandResult
from decoding.reasoning.thoughts import ThoughtView
from decoding.stopping import StopRule, wants_lines
from decoding.trimming import trim
from grammars.reasoning import TEXT_MARKS

CancelCheck = Callable[[], bool]

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0
_POLL_SECONDS = 0.05
_BYTES_PER_TOKEN = 3
"""Windows are cut in characters here: the server's tokenizer is not known. Code has 3.2 bytes a token."""
_INFILLING = (
    (("qwen", "codeqwen"), ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")),
    (("starcoder", "granite", "smollm"), ("<fim_prefix>", "<fim_suffix>", "<fim_middle>")),
    (("deepseek-coder",), ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")),
)
_REASONS: dict[str, StopReason] = {"stop": "end", "length": "length"}


@dataclass(frozen=True, slots=True)
class Server:
    """Where the requests go.

    Attributes:
        url: the base address, with "/v1".
        model: the model's name there.
        key_variable: the environment variable that holds the key, "" for none.
    """

    url: str
    model: str
    key_variable: str = ""
    read_seconds: float = _READ_SECONDS

    @classmethod
    def of(cls, options: EngineOptions) -> Server:
        """The server of the options; where they name no model, the first that it offers. Raises RemoteError."""
        server = cls(options.remote_url.rstrip("/"), options.remote_model, options.remote_key_env)
        return server if server.model else cls(server.url, server._first_model(), server.key_variable)

    @property
    def headers(self) -> dict[str, str]:
        """With the key where there is one."""
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def _first_model(self) -> str:
        try:
            answer = httpx.get(f"{self.url}/models", headers=self.headers, timeout=_CONNECT_SECONDS)
            self.check(answer.status_code)
            models = answer.json()["data"]
            return str(models[0]["id"])
        except httpx.HTTPError as error:
            raise self.failure(error) from error
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise RemoteError(f"{self.url} does not say which models it has: set remote.model") from error

    def check(self, status: int) -> None:
        """Raises RemoteError for a status that is no success."""
        if status < 400:
            return
        if status in (401, 403):
            name = self.key_variable or "named by remote.apiKeyEnv"
            raise RemoteError(f"{self.url} refused the key ({status}): check the environment variable {name}")
        if status == 404:
            raise RemoteError(f"{self.url} has no such path or model (404): check remote.baseUrl and remote.model")
        if status == 429:
            raise RemoteError(f"{self.url} has too many requests at the moment (429): try again later")
        if status < 500:
            raise RemoteError(f"{self.url} refused the request ({status}): check remote.model and its context length")
        raise RemoteError(f"{self.url} failed ({status}): look into the server's log")

    def failure(self, error: httpx.HTTPError) -> RemoteError:
        """What went wrong on the way, in one line."""
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.UnsupportedProtocol):
            return RemoteError(f"{self.url} cannot be reached: check remote.baseUrl and that the server runs")
        if isinstance(error, httpx.TimeoutException):
            return RemoteError(f"{self.url} was silent for {self.read_seconds:.0f} seconds: it may be overloaded")
        return RemoteError(f"the answer of {self.url} broke off ({type(error).__name__}): ask again")

    def events(self, path: str, payload: dict[str, Any], cancelled: CancelCheck) -> Iterator[dict[str, Any]]:
        """The events of a streamed answer. Raises RemoteError, and Cancelled soon after `cancelled()` is true."""
        loop = asyncio.new_event_loop()
        lines = self._lines(path, payload)
        ended = False
        try:
            while (line := _next_line(loop, lines, cancelled)) is not None:
                data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
                if data == "[DONE]":
                    ended = True
                    break
                if data:
                    event = self._parsed(data)
                    ended |= any(choice.get("finish_reason") for choice in event["choices"])
                    yield event
        except httpx.HTTPError as error:
            raise self.failure(error) from error
        finally:
            loop.run_until_complete(lines.aclose())
            loop.close()
        if not ended:
            raise RemoteError(f"the answer of {self.url} broke off: ask again")

    def _parsed(self, data: str) -> dict[str, Any]:
        try:
            event = json.loads(data)
            if "error" in event:
                raise RemoteError(f"{self.url} gave up in the middle of an answer: look into the server's log")
            event["choices"] = [dict(choice) for choice in event["choices"]]
        except (ValueError, KeyError, TypeError) as error:
            raise RemoteError(f"{self.url} sent what is no answer: is it OpenAI-compatible?") from error
        return dict(event)

    async def _lines(self, path: str, payload: dict[str, Any]) -> AsyncGenerator[str, None]:
        timeout = httpx.Timeout(self.read_seconds, connect=_CONNECT_SECONDS)
        body = {"model": self.model, "stream": True, **payload}
        async with (
            httpx.AsyncClient(timeout=timeout, headers=self.headers) as client,
            client.stream("POST", f"{self.url}/{path}", json=body) as answer,
        ):
            self.check(answer.status_code)
            async for line in answer.aiter_lines():
                yield line


def _next_line(loop: asyncio.AbstractEventLoop, lines: Any, cancelled: CancelCheck) -> str | None:
    """The next line, None at the end. Between two looks at `cancelled` the loop does not run."""
    waiting = loop.create_task(anext(lines, None))
    while not waiting.done():
        loop.run_until_complete(asyncio.wait({waiting}, timeout=_POLL_SECONDS))
        if not waiting.done() and cancelled():
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                loop.run_until_complete(waiting)
            raise Cancelled("not wanted any more")
    line: str | None = waiting.result()
    return line


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
        self.marks = next(
            (marks for names, marks in _INFILLING if any(name in self.server.model.lower() for name in names)), None
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
        rule = StopRule(hole, wants_lines(hole, options.multiline), snapshot.language == "python")
        payload = {
            "prompt": self._prompt(snapshot, options),
            "max_tokens": options.max_tokens,
            **_sampling(options, None, None),
        }
        raw, reason, stats = self._written("completions", payload, rule.reason, cancelled, emit)
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

    def warm(self, snapshot: Snapshot, options: EngineOptions, cancelled: CancelCheck) -> None:
        """Nothing is kept here that could be warm."""

    def remember(self, uri: str, text: str) -> None:
        """Nothing drafts here."""

    def forget(self, uri: str) -> None:
        """Nothing was kept."""

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
