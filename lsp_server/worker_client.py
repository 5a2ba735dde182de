"""The server's side of the worker: starts it, talks to it, and starts it again when it died.

Knows processes, pipes and the wire; no completions and no protocol of editors. A job is a coroutine: cancelling its
task tells the worker to stop at its next step. A worker that dies fails its jobs with WorkerDied and comes back by
itself, at once the first time and later and later when it keeps dying; one that hangs is killed first.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal

from pydantic import ValidationError

from decoding.errors import ModelError, WorkerDied
from decoding.messages import Chunk, Completion, EngineOptions
from decoding.reasoning.requests import CommandRequest, CommandResult, Replacement
from lsp_server import wire
from lsp_server.documents import View
from lsp_server.lines import decode

log = logging.getLogger(__name__)

ASSISTANT = "decoding.remote:make_assistant"
State = Literal["starting", "downloading", "loading", "ready", "error"]


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """What the worker is doing; `progress` in 0..1 where it is known, `message` one line for people."""

    state: State
    progress: float | None = None
    message: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, in seconds, before something else is done."""

    loading: float = 60.0
    """A job waits so long for the model; after that it is answered with nothing."""
    hang: float = 30.0
    """An engine, or a worker, that is silent so long is killed."""
    ping: float = 2.0
    backoff: float = 1.0
    """Before the second restart in a row; doubles with each further one."""
    backoff_limit: float = 60.0
    rest: float = 5.0
    """Jobs wait out a shorter delay, and are refused at once during a longer one."""
    healthy: float = 60.0
    """A worker that lived so long may die and be restarted at once."""
    goodbye: float = 2.0


@dataclass(slots=True)
class _Job:
    future: asyncio.Future[wire.Done]
    on_chunk: Callable[[Chunk], None] | None = None


class WorkerClient:
    """One worker process at a time, and the jobs given to it."""

    def __init__(
        self,
        options: EngineOptions,
        on_status: Callable[[WorkerStatus], None],
        factory: str = ASSISTANT,
        patience: Patience | None = None,
    ) -> None:
        self._options = options
        self._on_status = on_status
        self._factory = factory
        self._patience = patience or Patience()
        self._numbers = count(1)
        self._jobs: dict[int, _Job] = {}
        self._known: dict[str, int] = {}
        self._process: asyncio.subprocess.Process | None = None
        self._life: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._hopeless = asyncio.Event()  # no model could be loaded: nobody need wait for this attempt
        self._signs_of_life = 0
        self._engine_steps = 0
        self._resting = False

    @property
    def pid(self) -> int | None:
        """The worker's process id while it lives."""
        return self._process.pid if self._process is not None else None

    @property
    def busy(self) -> bool:
        """Whether any job is under way."""
        return bool(self._jobs)

    def start(self) -> None:
        """Starts the worker and keeps it alive until `stop`. To be called in the event loop."""
        self._life = asyncio.create_task(self._live(), name="worker")

    async def stop(self) -> None:
        """Ends the worker; none is left when this returns."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)

    async def complete(
        self,
        view: View,
        options: EngineOptions,
        on_chunk: Callable[[Chunk], None] | None = None,
    ) -> tuple[Completion, ...]:
        """Completions at the view's cursor, best first.

        Raises WorkerDied, and ModelError if the engine failed. Cancelling the task stops the engine.
        """
        number = next(self._numbers)
        message = wire.Complete(job=number, uri=view.uri, offset=view.offset, patches=view.patches, options=options)
        return (await self._run(message, view, on_chunk)).completions

    async def command(
        self, request: CommandRequest, options: EngineOptions, on_chunk: Callable[[Chunk], None] | None = None
    ) -> CommandResult:
        """Runs a command; chunks are Markdown. Raises WorkerDied, and ModelError with one line for people. Cancelling
        the task stops the engine."""
        message = wire.Command(job=next(self._numbers), request=request, options=options)
        result = (await self._run(message, None, on_chunk)).result
        if result is None:
            raise ModelError("the answer was cut off")
        return result

    async def warm(self, view: View, options: EngineOptions) -> None:
        """Prefills for a completion at the view's cursor."""
        number = next(self._numbers)
        message = wire.Warm(job=number, uri=view.uri, offset=view.offset, patches=view.patches, options=options)
        await self._run(message, view)

    async def imports(self, view: View, start: int) -> tuple[Replacement, ...]:
        """The edits that add the imports which the text from byte `start` to the view's cursor lacks.

        Raises WorkerDied, ModelError.
        """
        number = next(self._numbers)
        message = wire.Imports(job=number, uri=view.uri, start=start, offset=view.offset, patches=view.patches)
        return (await self._run(message, view)).edits

    async def describe(self) -> dict[str, Any]:
        """What the assistant says of itself."""
        return (await self._run(wire.Describe(job=next(self._numbers)))).facts

    def forget(self, uri: str) -> None:
        """A document was closed."""
        if self._known.pop(uri, None) is not None:
            self._send(wire.Forget(uri=uri))

    async def _run(
        self,
        message: wire.Complete | wire.Warm | wire.Imports | wire.Describe | wire.Command,
        view: View | None = None,
        on_chunk: Callable[[Chunk], None] | None = None,
    ) -> wire.Done:
        await self._wait_until_ready()
        if view is not None:
            self._sync(view)
        job = self._jobs[message.job] = _Job(asyncio.get_running_loop().create_future(), on_chunk)
        self._send(message)
        try:
            return await job.future
        except asyncio.CancelledError:
            self._send(wire.Cancel(job=message.job))
            raise
        finally:
            self._jobs.pop(message.job, None)

    async def _wait_until_ready(self) -> None:
        if self._resting:
            raise WorkerDied("the model process keeps ending; see the log")
        if self._ready.is_set():
            return
        outcomes = [asyncio.create_task(event.wait()) for event in (self._ready, self._hopeless)]
        try:
            await asyncio.wait(outcomes, timeout=self._patience.loading, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for outcome in outcomes:
                outcome.cancel()
        if self._hopeless.is_set():
            raise WorkerDied("no model could be loaded; see the status")
        if not self._ready.is_set():
            raise WorkerDied("the model is not there yet")

    def _sync(self, view: View) -> None:
        """Brings the worker's copy to the view's revision, by patches where it knows an earlier one."""
        known = self._known.get(view.uri)
        if known == view.revision:
            return
        changes = view.log.between(known, view.revision) if known is not None else None
        if changes is None:
            known = None
            changed = [wire.Patch(start=0, old_end=0, text=decode(view.document_data))]
        else:
            changed = [
                wire.Patch(start=change.edit.start, old_end=change.edit.old_end, text=decode(change.inserted))
                for change in changes
            ]
        self._known[view.uri] = view.revision
        self._send(
            wire.Sync(
                uri=view.uri,
                language=view.language,
                base=known,
                revision=view.revision,
                patches=tuple(changed),
            )
        )

    def _send(self, message: wire.Request) -> None:
        """Hands a message to the pipe. A worker that just died is noticed by its reader, not here."""
        if self._process is not None and self._process.stdin is not None and not self._process.stdin.is_closing():
            self._process.stdin.write(wire.frame(message))

    async def _live(self) -> None:
        """Restarts the worker for as long as the server runs."""
        delay = 0.0
        while True:
            born = time.monotonic()
            try:
                await self._one_life()
            except WorkerDied as error:
                delay = 0.0 if time.monotonic() - born > self._patience.healthy else delay
                state: State = "error" if delay else "starting"
                self._on_status(WorkerStatus(state, message=f"{error}; it is started again"))
            except ModelError as error:
                delay = self._patience.backoff_limit
                self._on_status(WorkerStatus("error", message=str(error)))
                self._hopeless.set()
            self._resting = delay > self._patience.rest
            await asyncio.sleep(delay)
            self._resting = False
            delay = min(self._patience.backoff_limit, max(self._patience.backoff, 2 * delay))

    async def _one_life(self) -> None:
        """From start to death. Raises ModelError if no model could be loaded, else WorkerDied."""
        self._hopeless.clear()
        self._on_status(WorkerStatus("starting"))
        # -P: the folder that the server was started in is the user's; what lies there must not be imported.
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", "-m", "lsp_server.worker", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        watchdog = asyncio.create_task(self._watch(process))
        try:
            self._send(wire.Load(factory=self._factory, options=self._options))
            await self._listen(process)
        finally:
            watchdog.cancel()
            self._bury()
            await _end(process, self._patience.goodbye)
        raise WorkerDied(f"the model process ended ({_how(process.returncode)})")

    async def _listen(self, process: asyncio.subprocess.Process) -> None:
        """Takes reports until the pipe ends. Raises ModelError if the worker says that it cannot load."""
        assert process.stdout is not None
        while True:
            try:
                header = await process.stdout.readexactly(wire.HEADER_BYTES)
                report = wire.read_report(await process.stdout.readexactly(wire.body_length(header)))
            except asyncio.IncompleteReadError:
                return
            except ValidationError as error:
                log.error("the worker sent something that is no report: %d errors", error.error_count())
                return
            self._take(report)

    def _take(self, report: wire.Report) -> None:
        if isinstance(report, wire.Pong):
            self._signs_of_life += report.engine_steps != self._engine_steps
            self._engine_steps = report.engine_steps
            return
        self._signs_of_life += 1
        if isinstance(report, wire.Loading):
            progress = report.progress
            state: State = "downloading" if progress.stage in ("download", "convert") else "loading"
            self._on_status(WorkerStatus(state, progress.fraction, progress.message or None))
        elif isinstance(report, wire.Ready):
            self._ready.set()
            self._on_status(WorkerStatus("ready", facts=report.facts))
        elif isinstance(report, wire.LoadFailed):
            raise ModelError(report.message)
        elif job := self._jobs.get(report.job):
            self._take_for_job(job, report)

    def _take_for_job(self, job: _Job, report: wire.Emitted | wire.Done | wire.Failed) -> None:
        if isinstance(report, wire.Emitted):
            if job.on_chunk is not None:
                job.on_chunk(report.chunk)
        elif not job.future.done():
            if isinstance(report, wire.Done):
                job.future.set_result(report)
            else:
                job.future.set_exception(ModelError(report.message))

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Kills a worker, or an engine in it, that has a job and says nothing for too long.

        Silence is counted in pings, not by a clock: a machine that slept, and a server that was stopped together with
        its worker, find hours gone in which nobody could have said anything.
        """
        silent, seen = 0.0, self._signs_of_life
        while True:
            await asyncio.sleep(self._patience.ping)
            if not self._jobs or not self._ready.is_set() or self._signs_of_life != seen:
                silent, seen = 0.0, self._signs_of_life
            else:
                silent += self._patience.ping
            if silent > self._patience.hang:
                log.error("the worker is silent for more than %.0f s and is killed", self._patience.hang)
                process.kill()
                return
            if self._jobs:
                self._send(wire.Ping())

    def _bury(self) -> None:
        """Forgets a worker: its jobs fail, and the next one knows no documents."""
        self._process = None
        self._ready.clear()
        self._known.clear()
        for job in self._jobs.values():
            if not job.future.done():
                job.future.set_exception(WorkerDied("the model process ended"))


async def _end(process: asyncio.subprocess.Process, patience: float) -> None:
    """Closes the worker's input, at which it ends, and kills it if it does not."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        await asyncio.wait_for(process.wait(), patience)
    except TimeoutError:
        process.kill()
        await process.wait()


def _how(returncode: int | None) -> str:
    return f"signal {-returncode}" if returncode is not None and returncode < 0 else f"status {returncode}"
