"""The worker process and its client: jobs, cancels, catching up, and every way to die."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path

import psutil
import pytest

from decoding.errors import ModelError, WorkerDied
from decoding.messages import Chunk, EngineOptions
from lsp_server.documents import Document
from lsp_server.wire import Complete, Emitted, Load, Patch, Ping, Sync, frame, read_report, read_request
from lsp_server.worker import Mirror
from lsp_server.worker_client import Patience, WorkerClient, WorkerStatus
from tests.lsp_server.conftest import ROOT, STUB
from tests.lsp_server.stub import continuation
from tests.lsp_server.test_documents import insert

SHORT = Patience(loading=200, hang=0.6, ping=0.1, backoff=0.05, backoff_limit=0.4, rest=0.1, healthy=30, goodbye=1)


def options(model: str = "stub", **values: object) -> EngineOptions:
    return EngineOptions.model_validate({"model": model, "max_tokens": 8, **values})


class Running:
    """A client with what it reported."""

    def __init__(self, model: str = "stub", patience: Patience = SHORT) -> None:
        self.statuses: list[WorkerStatus] = []
        self.client = WorkerClient(options(model), self.statuses.append, STUB, patience)
        self.client.start()

    async def until(self, state: str) -> WorkerStatus:
        async with asyncio.timeout(200):
            while not any(status.state == state for status in self.statuses):
                await asyncio.sleep(0.005)
        return next(status for status in self.statuses if status.state == state)

    async def text(self, document: Document, offset: int | None = None, **values: object) -> str:
        view = document.view(len(document.data) if offset is None else offset)
        return (await self.client.complete(view, options(**values)))[0].raw  # type: ignore[arg-type]


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    worker = Running()
    yield worker
    await worker.client.stop()


REVISIONS = count(1, 100)
"""As in a document store, no two documents share one; room for edits between them."""


def python(text: str) -> Document:
    return Document("file:///a.py", "python", text, next(REVISIONS))


async def test_a_job_streams_and_ends(running: Running) -> None:
    chunks: list[Chunk] = []
    document = python("x = ")
    [completion] = await running.client.complete(document.view(4), options(), chunks.append)
    assert completion.raw == continuation("x = ", "", 8) == "".join(chunk.text for chunk in chunks)


async def test_the_worker_follows_the_document(running: Running) -> None:
    document = python("x = ")
    assert await running.text(document) == continuation("x = ", "", 8)
    for revision, text in enumerate(["é", "😀", "\n", "\ud83d"], document.revision + 1):
        insert(document, 0, 4, text, revision)
    assert await running.text(document, 4) == continuation("x = ", "\ufffd\n😀é", 8)


async def test_a_view_keeps_its_revision_while_the_document_moves_on(running: Running) -> None:
    document = python("x = ")
    await running.text(document)
    insert(document, 0, 4, "a", document.revision + 1)
    view = document.view(5)
    insert(document, 0, 5, "b", document.revision + 1)
    [old] = await running.client.complete(view, options())
    assert old.raw == continuation("x = a", "", 8)
    assert await running.text(document) == continuation("x = ab", "", 8)
    [older] = await running.client.complete(view, options())
    assert older.raw == old.raw


async def test_patches_are_seen_by_their_job_only(running: Running) -> None:
    document = python("x = \n")
    view = document.view(4).what_if(4, 4, "yé")
    [what_if] = await running.client.complete(view, options())
    assert what_if.raw == continuation("x = yé", "\n", 8)
    assert await running.text(document, 4) == continuation("x = ", "\n", 8)


async def test_a_cancel_stops_the_engine() -> None:
    running = Running("stub?token=0.01")
    await running.until("ready")
    first = asyncio.create_task(running.text(python("x = "), max_tokens=4000))
    await asyncio.sleep(0.1)
    first.cancel()
    assert await running.text(python("y = ")) == continuation("y = ", "", 8)
    assert (await running.client.describe())["generated"] < 100
    assert not running.client.busy
    await running.client.stop()


async def test_a_job_cancelled_before_its_turn_is_never_begun() -> None:
    running = Running("stub?token=0.01")
    await running.until("ready")
    jobs = [asyncio.create_task(running.text(python("x = "), max_tokens=20)) for _ in range(10)]
    await asyncio.sleep(0.05)
    for job in jobs:
        job.cancel()
    assert (await running.client.describe())["asked"] == 1
    await running.client.stop()


async def test_progress_and_readiness_are_told() -> None:
    running = Running("stub?load=0.1")
    ready = await running.until("ready")
    fractions = [status.progress for status in running.statuses if status.state == "loading"]
    assert fractions == [0.25, 0.5, 0.75, 1.0]
    assert ready.facts["model"] == "stub?load=0.1"
    await running.client.stop()


async def test_warming_and_forgetting(running: Running) -> None:
    document = python("x = ")
    await running.client.warm(document.view(4), options())
    assert (await running.client.describe())["warmed"] == 1
    running.client.forget(document.uri)
    assert (await running.client.describe())["warmed"] == 0
    assert await running.text(document) == continuation("x = ", "", 8)


async def test_an_idle_worker_prepares_itself_to_the_end(running: Running) -> None:
    async with asyncio.timeout(20):
        while (await running.client.describe())["prepared"] < 3:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("word", "says"),
    [("RAISE_NOW", "RuntimeError in tests"), ("REFUSE_NOW", "close something"), ("EXHAUST_NOW", "Memory")],
)
async def test_an_engine_error_ends_the_job_only_and_quotes_nothing(running: Running, word: str, says: str) -> None:
    with pytest.raises(ModelError, match=says) as raised:
        await running.text(python(f"secret = 1  # {word}"))
    assert "secret" not in str(raised.value)
    assert await running.text(python("x = ")) == continuation("x = ", "", 8)


async def test_a_killed_worker_is_replaced_for_the_next_request(running: Running) -> None:
    await running.until("ready")
    first = running.client.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    await running.until("starting")
    while running.client.pid == first:
        await asyncio.sleep(0.005)
    assert await running.text(python("x = ")) == continuation("x = ", "", 8)
    assert running.client.pid != first


async def test_a_job_on_a_dying_worker_fails(running: Running) -> None:
    with pytest.raises(WorkerDied):
        await running.text(python("CRASH_NOW"))
    assert await running.text(python("x = ")) == continuation("x = ", "", 8)


async def test_a_worker_that_keeps_dying_rests(running: Running) -> None:
    for _ in range(7):
        with pytest.raises(WorkerDied):
            await running.text(python("CRASH_NOW"))
    assert any(status.state == "error" and "started again" in (status.message or "") for status in running.statuses)
    await asyncio.sleep(0.6)
    assert await running.text(python("x = ")) == continuation("x = ", "", 8)


async def test_a_hanging_engine_is_killed_and_replaced(running: Running) -> None:
    await running.until("ready")
    with pytest.raises(WorkerDied):
        await running.text(python("HANG_NOW"))
    assert await running.text(python("x = ")) == continuation("x = ", "", 8)


async def test_a_stopped_process_is_a_hang(running: Running) -> None:
    await running.until("ready")
    assert running.client.pid is not None
    os.kill(running.client.pid, signal.SIGSTOP)
    with pytest.raises(WorkerDied):
        await running.text(python("x = "))
    assert await running.text(python("x = ")) == continuation("x = ", "", 8)


async def test_a_model_that_cannot_be_had_is_an_honest_status() -> None:
    running = Running("stub?broken=1")
    status = await running.until("error")
    assert status.message == "there is no such stub: choose another"
    with pytest.raises(WorkerDied):
        await running.text(python("x = "))
    await running.client.stop()


async def test_who_waits_for_a_model_that_cannot_be_had_is_not_kept_waiting() -> None:
    running = Running("stub?broken=1")
    asked = asyncio.create_task(running.text(python("x = ")))  # before it is known that there will be no model
    done, _ = await asyncio.wait([asked], timeout=SHORT.loading / 4)
    assert done, "the request waits for what will never be there"
    assert isinstance(asked.exception(), WorkerDied)
    await running.client.stop()


async def test_no_process_is_left_after_stop(running: Running) -> None:
    await running.until("ready")
    pid = running.client.pid
    assert pid is not None
    await running.client.stop()
    assert not psutil.pid_exists(pid)


PARENT = """
import asyncio, sys
from decoding.messages import EngineOptions
from lsp_server.worker_client import WorkerClient
async def main():
    client = WorkerClient(EngineOptions(model="stub"), print, sys.argv[1])
    client.start()
    while client.pid is None:
        await asyncio.sleep(0.01)
    print(client.pid, flush=True)
    await asyncio.sleep(60)
asyncio.run(main())
"""


def test_the_worker_dies_with_a_killed_parent() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, STUB], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert parent.stdout is not None
    pid = next(int(line) for line in parent.stdout if line.strip().isdigit())
    worker = psutil.Process(pid)
    parent.kill()
    parent.wait()
    parent.stdout.close()
    worker.wait(timeout=60)


def test_the_worker_imports_no_pygls() -> None:
    check = "import sys, lsp_server.worker; sys.exit(any(m in sys.modules for m in ('pygls', 'lsprotocol', 'torch')))"
    assert subprocess.run([sys.executable, "-c", check], cwd=ROOT, check=False).returncode == 0


def test_a_hostile_folder_is_not_imported_from(tmp_path: Path) -> None:
    (tmp_path / "pydantic.py").write_text("raise SystemExit(99)")
    result = subprocess.run(
        [sys.executable, "-P", "-m", "lsp_server.worker"], cwd=tmp_path, stdin=subprocess.DEVNULL, check=False
    )
    assert result.returncode == 0


def test_garbage_on_the_pipe_is_survived() -> None:
    command = [sys.executable, "-P", "-m", "lsp_server.worker"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    load = frame(Load(factory=STUB, options=options()))
    garbage = b'\0\0\0\x07{"a":1}'
    output, errors = worker.communicate(garbage + load + frame(Ping()), timeout=30)
    assert b"none of ours" in errors
    assert b"libraries print" not in output


def test_a_mirror_out_of_step_says_so() -> None:
    mirror = Mirror()
    with pytest.raises(LookupError):
        mirror.sync(Sync(uri="a", language="python", base=3, revision=4, patches=()))


def test_a_snapshot_says_what_changed_since_the_last_one() -> None:
    mirror = Mirror()
    mirror.sync(
        Sync(uri="a", language="python", base=None, revision=1, patches=(Patch(start=0, old_end=0, text="ab"),))
    )
    first = mirror.snapshot("a", 0, (), 1)
    mirror.sync(Sync(uri="a", language="python", base=1, revision=2, patches=(Patch(start=1, old_end=2, text="é"),)))
    what_if = mirror.snapshot("a", 0, (Patch(start=0, old_end=1, text=""),), 2)
    second = mirror.snapshot("a", 0, (), 3)
    assert (first.version, first.base_version, first.edits) == (1, None, ())
    assert (what_if.version, what_if.text, what_if.base_version) == (-2, "é", None)
    assert (second.version, second.base_version, second.text) == (2, 1, "aé")
    assert [(edit.start, edit.old_end, edit.new_end) for edit in second.edits] == [(1, 2, 3)]


def test_messages_survive_the_wire() -> None:
    message = Complete(job=1, uri="file:///é.py", offset=3, options=options())
    assert read_request(frame(message)[4:]) == message


def test_half_a_surrogate_pair_crosses_the_wire_as_a_replacement() -> None:
    patch = Patch(start=0, old_end=0, text="a\ud800")
    message = Sync(uri="file:///\udc00.py", language="\ud83d", base=None, revision=1, patches=(patch, patch))
    arrived = read_request(frame(message)[4:])
    assert arrived == message.model_copy(
        update={
            "uri": "file:///\ufffd.py",
            "language": "\ufffd",
            "patches": (patch.model_copy(update={"text": "a\ufffd"}),) * 2,
        }
    )


def test_what_was_read_is_not_kept() -> None:
    sent = [frame(Emitted(job=n, chunk=Chunk(text=f"text {n}", token_ids=(n,))))[4:] for n in range(1000)]
    read_report(sent[0])
    before = sys.getallocatedblocks()
    for each in sent:
        read_report(each)
    assert sys.getallocatedblocks() - before < 100


def test_a_document_that_is_only_seen_with_patches_keeps_no_edits() -> None:
    """A notebook's cell is always seen behind the cells above it."""
    mirror = Mirror()
    mirror.sync(Sync(uri="a", language="python", base=None, revision=1, patches=()))
    context = (Patch(start=0, old_end=0, text="import os\n"),)
    mirror.snapshot("a", 0, context, 1)
    before = sys.getallocatedblocks()
    for number in range(1000):
        patch = Patch(start=0, old_end=min(number, 1), text="x")
        mirror.sync(Sync(uri="a", language="python", base=number + 1, revision=number + 2, patches=(patch,)))
        mirror.snapshot("a", 0, context, number + 2)
    assert sys.getallocatedblocks() - before < 1000


async def test_a_machine_that_slept_is_no_hang() -> None:
    """Server and worker are stopped together for longer than a worker may be silent, with a job under way."""
    code = SLEEPER.replace("PATIENCE", repr(SHORT))
    server = subprocess.Popen([sys.executable, "-c", code, STUB], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert server.stdout is not None
    assert server.stdout.readline().strip() == "ready"
    processes = [psutil.Process(server.pid), *psutil.Process(server.pid).children()]
    for process in processes:
        process.suspend()
    await asyncio.sleep(3 * SHORT.hang)
    for process in reversed(processes):
        process.resume()
    output, _ = server.communicate(timeout=60)
    assert output.strip() == "answered"


SLEEPER = """
import asyncio, sys
from decoding.messages import EngineOptions
from lsp_server.documents import Document
from lsp_server.worker_client import Patience, WorkerClient
async def main():
    ready = asyncio.Event()
    tell = lambda status: ready.set() if status.state == "ready" else None
    options = EngineOptions(model="stub?token=0.05", max_tokens=24, multiline="always")
    client = WorkerClient(options, tell, sys.argv[1], PATIENCE)
    client.start()
    await ready.wait()
    job = asyncio.create_task(client.complete(Document("file:///a.py", "python", "x = ", 1).view(4), options))
    await asyncio.sleep(0.2)
    print("ready", flush=True)
    await job
    print("answered", flush=True)
    await client.stop()
asyncio.run(main())
"""
