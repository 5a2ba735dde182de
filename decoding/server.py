"""An OpenAI-compatible server, asked over HTTP: streamed answers, cancels, and one line for everything that can fail.

Knows HTTP and server-sent events. Must not know prompts, or what an answer is for.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import httpx

from decoding.errors import Cancelled, RemoteError
from decoding.messages import EngineOptions

CancelCheck = Callable[[], bool]

_CONNECT_SECONDS = 5.0
_READ_SECONDS = 60.0
_POLL_SECONDS = 0.05


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
        begun = ended = False
        try:
            while (line := _next_line(loop, lines, cancelled)) is not None:
                if cancelled():  # asked here too: a fast server is never waited for
                    raise Cancelled("not wanted any more")
                data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
                if data == "[DONE]":
                    ended = True
                    break
                if data:
                    begun = True
                    event = self._parsed(data)
                    ended |= any(choice.get("finish_reason") for choice in event["choices"])
                    yield event
        except httpx.HTTPError as error:
            raise self.failure(error) from error
        finally:
            loop.run_until_complete(lines.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()
        if not begun:  # llama.cpp's server does so
            raise RemoteError(f"{self.url} sent nothing: is the prompt longer than its context? Its log says why")
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
