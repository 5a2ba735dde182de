"""The worker process: owns the models, takes jobs from a pipe, one at a time, and honours cancels at once.

Knows the assistant's facade and the wire; never pygls. The main thread runs the jobs; a reader thread takes
messages meanwhile, so that a cancel reaches the engine at its next step. The end of the input means that the server
is gone, however it went: the process ends on the spot. Nothing but frames goes to the pipe: what libraries print
to stdout goes to stderr.
"""

from __future__ import annotations

import importlib
import logging
import os
import queue
import sys
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from typing import BinaryIO, Protocol

from pydantic import ValidationError

from decoding.errors import Cancelled, DraftwoodError
from decoding.messages import Chunk, Completion, Edit, EngineOptions, ModelProgress, Snapshot
from decoding.reasoning.requests import CommandRequest, CommandResult, Replacement
from lsp_server import wire

log = logging.getLogger(__name__)

Job = wire.Complete | wire.Warm | wire.Imports | wire.Describe | wire.Command
POLITENESS = 3
"""The editor and the server's event loop come first where cores are scarce."""
JOB_KINDS = (wire.Complete, wire.Warm, wire.Imports, wire.Describe, wire.Command)


class Assistant(Protocol):
    """What the worker needs of `decoding.assistant.Assistant`."""

    def complete(
        self,
        snapshot: Snapshot,
        options: EngineOptions,
        cancelled: Callable[[], bool],
        emit: Callable[[Chunk], None],
    ) -> list[Completion]:
        """Completions at the snapshot's cursor, best first."""

    def prepare(self) -> Iterator[None]:
        """What makes the first requests fast, to be done in idle moments: some milliseconds from step to step."""

    def warm(self, snapshot: Snapshot, options: EngineOptions, cancelled: Callable[[], bool]) -> None:
        """Prefill only."""

    def command(
        self,
        request: CommandRequest,
        options: EngineOptions,
        cancelled: Callable[[], bool],
        emit: Callable[[Chunk], None],
        pause: Callable[[], bool],
    ) -> CommandResult:
        """One command. `pause` is called between rounds, and may use the assistant for something else; it says
        whether it did."""

    def imports(self, snapshot: Snapshot, start: int) -> tuple[Replacement, ...]:
        """The edits that add the imports which the text from byte `start` to the cursor lacks."""

    def forget(self, uri: str) -> None:
        """The document was closed."""

    def describe(self) -> dict[str, object]:
        """Model, runtime, memory."""


class Mirror:
    """The server's document, kept up to date by patches, and what changed since the assistant last saw it."""

    def __init__(self) -> None:
        self._data = b""
        self._language = ""
        self._revision = 0
        self._shown: int | None = None
        self._edits: tuple[Edit, ...] = ()

    def sync(self, message: wire.Sync) -> None:
        """Follows the document. Raises LookupError if the patches are for another revision than ours."""
        if message.base is None:
            self._data, self._shown, self._edits = b"", None, ()
        elif message.base != self._revision:
            raise LookupError(f"patches are for revision {message.base}, not {self._revision}")
        self._data, edits = patched(self._data, message.patches)
        self._edits += edits if self._shown is not None else ()
        self._language, self._revision = message.language, message.revision

    def snapshot(self, uri: str, offset: int, patches: tuple[wire.Patch, ...], job: int) -> Snapshot:
        """The document for the assistant. One with patches is a version of its own that nothing builds on."""
        if patches:
            data, _ = patched(self._data, patches)
            text = data.decode("utf-8")
            return Snapshot(uri=uri, version=-job, text=text, offset=offset, language=self._language)
        snapshot = Snapshot(
            uri=uri,
            version=self._revision,
            text=self._data.decode("utf-8"),
            offset=offset,
            language=self._language,
            base_version=self._shown,
            edits=self._edits if self._shown is not None else (),
        )
        self._shown, self._edits = self._revision, ()
        return snapshot


def patched(data: bytes, patches: tuple[wire.Patch, ...]) -> tuple[bytes, tuple[Edit, ...]]:
    """`data` after `patches`, and those as edits."""
    edits = []
    for patch in patches:
        text = patch.text.encode("utf-8")
        data = b"".join((data[: patch.start], text, data[patch.old_end :]))
        edits.append(Edit(start=patch.start, old_end=patch.old_end, new_end=patch.start + len(text)))
    return data, tuple(edits)


class Worker:
    """Runs the jobs that arrive on `source`, and reports on `sink`."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._sending = threading.Lock()
        self._queue: queue.SimpleQueue[wire.Request] = queue.SimpleQueue()
        self._commands: deque[wire.Command] = deque()
        self._cancelled: set[int] = set()
        self._waiting: set[int] = set()
        self._engine_steps = 0
        self._mirrors: dict[str, Mirror] = {}

    def run(self) -> None:
        """Serves until the server is gone. Returns only where no assistant could be made."""
        threading.Thread(target=self._read, name="reader", daemon=True).start()
        first = self._queue.get()
        assistant = self._load(first) if isinstance(first, wire.Load) else None
        if assistant is None:
            return
        ahead = assistant.prepare()
        while True:
            self._serve_urgent(assistant)
            if self._commands:
                self._serve(assistant, self._commands.popleft())
            else:
                self._take(assistant, self._next(ahead))

    def _next(self, ahead: Iterator[None]) -> wire.Request:
        """The next message. While there is none, what makes the first requests fast is made `ahead`."""
        while self._queue.empty() and next(ahead, False) is not False:
            pass
        return self._queue.get()

    def _serve_urgent(self, assistant: Assistant) -> bool:
        """Serves what waits, commands left aside; whether the engine was used. A suggestion is wanted while somebody
        types, an answer can wait for it between two of its rounds."""
        used = False
        while True:
            try:
                message = self._queue.get_nowait()
            except queue.Empty:
                return used
            used |= self._take(assistant, message)

    def _take(self, assistant: Assistant, message: wire.Request) -> bool:
        """Serves a message, or puts a command in the line; whether the engine was used."""
        if isinstance(message, wire.Command):
            self._commands.append(message)
            return False
        self._serve(assistant, message)
        return isinstance(message, wire.Complete | wire.Warm)

    def _read(self) -> None:
        while body := self._read_frame():
            try:
                message = wire.read_request(body)
            except ValidationError as error:
                log.error("a message that is none of ours: %d errors", error.error_count())
                continue
            if isinstance(message, wire.Cancel):
                self._cancelled.update({message.job} & self._waiting)
            elif isinstance(message, wire.Ping):
                self._send(wire.Pong(engine_steps=self._engine_steps))
            else:
                if isinstance(message, JOB_KINDS):
                    self._waiting.add(message.job)
                self._queue.put(message)
        os._exit(0)  # the server is gone: nobody wants what the engine is doing, and it holds nothing to save

    def _read_frame(self) -> bytes:
        header = self._source.read(wire.HEADER_BYTES)
        return self._source.read(wire.body_length(header)) if len(header) == wire.HEADER_BYTES else b""

    def _send(self, report: wire.Report) -> None:
        with self._sending:
            self._sink.write(wire.frame(report))
            self._sink.flush()

    def _load(self, message: wire.Load) -> Assistant | None:
        module, _, name = message.factory.partition(":")
        try:
            assistant: Assistant = getattr(importlib.import_module(module), name)(message.options, self._progress)
            self._send(wire.Ready(facts=dict(assistant.describe())))
        except DraftwoodError as error:
            self._send(wire.LoadFailed(message=str(error)))
        except Exception as error:
            log.exception("the assistant cannot be made")
            self._send(wire.LoadFailed(message=f"the model cannot be loaded ({type(error).__name__}); see the log"))
        else:
            return assistant
        return None

    def _progress(self, progress: ModelProgress) -> None:
        self._send(wire.Loading(progress=progress))

    def _serve(self, assistant: Assistant, message: wire.Request) -> None:
        if isinstance(message, wire.Sync):
            self._sync(message)
        elif isinstance(message, wire.Forget):
            self._mirrors.pop(message.uri, None)
            assistant.forget(message.uri)
        elif isinstance(message, JOB_KINDS):
            self._send(self._outcome(assistant, message))
            self._waiting.discard(message.job)
            self._cancelled.discard(message.job)

    def _sync(self, message: wire.Sync) -> None:
        try:
            self._mirrors.setdefault(message.uri, Mirror()).sync(message)
        except LookupError as error:
            log.error("out of step with the server: %s", error)
            self._mirrors.pop(message.uri)

    def _outcome(self, assistant: Assistant, job: Job) -> wire.Report:
        """What became of a job. Whatever the engine raises ends the job, not the worker."""
        try:
            return self._run(assistant, job)
        except Cancelled:
            return wire.Done(job=job.job)
        except DraftwoodError as error:
            return wire.Failed(job=job.job, message=str(error))
        except Exception as error:  # noqa: BLE001 - the boundary of the process; its message may quote source text
            return wire.Failed(job=job.job, message=f"internal error: {type(error).__name__} in {_place(error)}")

    def _run(self, assistant: Assistant, job: Job) -> wire.Report:
        def cancelled() -> bool:
            self._engine_steps += 1
            return job.job in self._cancelled

        def emit(chunk: Chunk) -> None:
            self._engine_steps += 1
            self._send(wire.Emitted(job=job.job, chunk=chunk))

        if cancelled():
            raise Cancelled
        if isinstance(job, wire.Command):
            result = assistant.command(job.request, job.options, cancelled, emit, lambda: self._serve_urgent(assistant))
            return wire.Done(job=job.job, result=result)
        if isinstance(job, wire.Describe):
            return wire.Done(job=job.job, facts=dict(assistant.describe()))
        mirror = self._mirrors.get(job.uri)
        if mirror is None:
            return wire.Failed(job=job.job, message="the document is not known to the worker")
        snapshot = mirror.snapshot(job.uri, job.offset, job.patches, job.job)
        if isinstance(job, wire.Imports):
            return wire.Done(job=job.job, edits=assistant.imports(snapshot, job.start))
        if isinstance(job, wire.Warm):
            assistant.warm(snapshot, job.options, cancelled)
            return wire.Done(job=job.job)
        return wire.Done(job=job.job, completions=tuple(assistant.complete(snapshot, job.options, cancelled, emit)))


def _place(error: Exception) -> str:
    """The function and line that raised: enough to find it, and no source text."""
    frames = list(traceback.walk_tb(error.__traceback__))
    frame_, line = frames[-1]
    return f"{frame_.f_globals.get('__name__', '?')}.{frame_.f_code.co_qualname}, line {line}"


def main() -> None:
    """Entry of the child process: frames on the given stdin and stdout."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    sink = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    if hasattr(os, "nice"):
        os.nice(POLITENESS)
    worker = Worker(sys.stdin.buffer, sink)
    worker.run()


if __name__ == "__main__":
    main()
