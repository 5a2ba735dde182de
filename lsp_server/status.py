"""What the server is doing, told to the editor: `draftwood/status` and a work-done progress while a model comes.

Knows the protocol's notifications and the worker's states; decides nothing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from lsprotocol import types
from pygls.exceptions import JsonRpcException

from lsp_server.protocol import Server
from lsp_server.worker_client import WorkerStatus

log = logging.getLogger(__name__)

STATUS = "draftwood/status"
_TOKENS = count(1)
"""A token of a client may be used once."""
_REPORT_SECONDS = 0.1
_CALM_SECONDS = 0.15
"""Shorter work is not told: a status bar that flickers at every key is worse than none."""
_TITLES = {"starting": "Starting", "downloading": "Fetching the model", "loading": "Loading the model"}


@dataclass(slots=True)
class _Progress:
    """Where the work-done progress stands."""

    token: str = field(default_factory=lambda: f"draftwood/model/{next(_TOKENS)}")
    begun: bool = False
    created: asyncio.Task[None] | None = None


class StatusReporter:
    """Sends a status whenever it changes."""

    def __init__(self, server: Server, model: str, *, work_done: bool) -> None:
        self._server = server
        self._model = model
        self._work_done = work_done
        self._progress = _Progress()
        self._worker = WorkerStatus("starting")
        self._busy = False
        self._clock: asyncio.TimerHandle | None = None
        self._sent: dict[str, Any] = {}
        self._sent_at = 0.0

    @property
    def facts(self) -> dict[str, Any]:
        """What the assistant said of itself when it was ready."""
        return self._worker.facts

    def worker(self, status: WorkerStatus) -> None:
        """The worker's state changed."""
        self._worker = status
        self._send()
        self._tell_progress()

    def activity(self, busy: bool) -> None:
        """Generating began or ended."""
        self._busy = busy
        if self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(_CALM_SECONDS, self._calm)

    def _calm(self) -> None:
        self._clock = None
        self._send()

    def _send(self) -> None:
        status = self._worker
        state = "busy" if status.state == "ready" and self._busy else status.state
        fields = {"state": state, "progress": status.progress, "model": self._model, "message": status.message}
        told = {name: value for name, value in fields.items() if value is not None}
        only_progress = told.get("state") == self._sent.get("state") and status.progress not in (None, 1.0)
        if told == self._sent or (only_progress and time.monotonic() - self._sent_at < _REPORT_SECONDS):
            return
        self._sent, self._sent_at = told, time.monotonic()
        self._server.protocol.notify(STATUS, told)

    def _tell_progress(self) -> None:
        if not self._work_done:
            return
        title = _TITLES.get(self._worker.state)
        if title is not None and self._progress.created is None:
            self._progress.created = asyncio.create_task(self._begin(title))
        if title is None:
            self._end()
        elif self._progress.begun:
            self._report(title)

    async def _begin(self, title: str) -> None:
        try:
            await self._server.work_done_progress.create_async(self._progress.token)
        except JsonRpcException:
            log.info("the client shows no progress")
            return
        if self._worker.state in _TITLES:
            self._server.work_done_progress.begin(
                self._progress.token, types.WorkDoneProgressBegin(f"Draftwood: {title}", percentage=0)
            )
            self._progress.begun = True
            self._report(title)

    def _report(self, title: str) -> None:
        percentage = None if self._worker.progress is None else round(100 * self._worker.progress)
        message = self._worker.message or title
        self._server.work_done_progress.report(
            self._progress.token, types.WorkDoneProgressReport(message=message, percentage=percentage)
        )

    def _end(self) -> None:
        if self._progress.begun:
            self._server.work_done_progress.end(self._progress.token, types.WorkDoneProgressEnd())
            del self._server.work_done_progress.tokens[self._progress.token]
            self._progress = _Progress()
