"""A worker client without a process: the stub's language, one character whenever the test says so.

And an event loop whose time passes when the test says so.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from dataclasses import dataclass, field

from decoding.errors import WorkerDied
from decoding.messages import Chunk, Completion, EngineOptions, Snapshot
from lsp_server.documents import View
from lsp_server.lines import decode
from tests.lsp_server.stub import completion, next_character

WARMING = 0.5
"""Seconds that reading a window takes."""


class VirtualLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def settle(self, seconds: float = 0.0) -> None:
        """Runs what is ready after so much time."""
        self.now += seconds
        self.run_until_complete(_yield())


async def _yield() -> None:
    for _ in range(12):
        await asyncio.sleep(0)


@dataclass(eq=False)
class Job:
    view: View
    options: EngineOptions
    on_chunk: Callable[[Chunk], None]
    done: asyncio.Future[str]
    raw: str = ""

    def step(self) -> None:
        """One more character, or the end."""
        data = self.view.data
        before, after = decode(data[: self.view.offset]), decode(data[self.view.follows :])
        if self.done.done():
            return
        character = next_character(before + self.raw, after)
        self.raw += character
        self.on_chunk(Chunk(text=character, token_ids=(0,)))
        if self.done.done():
            return
        if character == "\n" and self.options.multiline != "always":
            self.done.set_result("line")
        elif len(self.raw) >= self.options.max_tokens:
            self.done.set_result("length")

    def finish(self) -> None:
        while not self.done.done():
            self.step()


@dataclass
class FakeWorker:
    """Stands for WorkerClient: one engine, and jobs in the order they came."""

    jobs: list[Job] = field(default_factory=list)
    begun: int = 0
    generated: int = 0
    most_at_once: int = 0
    windows: list[int] = field(default_factory=list)
    warming: list[View] = field(default_factory=list)
    warmed: list[View] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        return bool(self.jobs or self.warming)

    async def complete(
        self, view: View, options: EngineOptions, on_chunk: Callable[[Chunk], None]
    ) -> tuple[Completion, ...]:
        job = Job(view, options, on_chunk, asyncio.get_running_loop().create_future())
        self.jobs.append(job)
        self.begun += 1
        self.windows.append(options.prefix_tokens)
        self.most_at_once = max(self.most_at_once, len(self.jobs))
        try:
            stop = await job.done
        finally:
            self.jobs.remove(job)
            self.generated += len(job.raw)
        snapshot = Snapshot(uri=view.uri, text="", offset=0)
        first = completion(job.raw, snapshot, stop, "fake")
        others = [completion(f"{n}{job.raw}", snapshot, stop, "fake") for n in range(1, options.alternatives)]
        return (first, *others)

    async def warm(self, view: View, options: EngineOptions) -> None:
        self.warming.append(view)
        try:
            await asyncio.sleep(WARMING)
            self.warmed.append(view)
        finally:
            self.warming.remove(view)

    def forget(self, uri: str) -> None:
        pass

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            if self.jobs:
                self.jobs[0].step()

    def finish(self) -> None:
        for job in list(self.jobs):
            job.finish()

    def die(self, error: Exception | None = None) -> None:
        for job in list(self.jobs):
            if not job.done.done():
                job.done.set_exception(error or WorkerDied("killed"))
