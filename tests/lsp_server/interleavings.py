"""A client that edits, asks, cancels and moves in any order, and the proof that no answer it gets is stale.

Used by the Hypothesis state machine, by the seeded fuzzer and by nothing else. The client sees what a client sees: its
own text, and items with ranges in its own units.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import cast

from lsprotocol import types

from decoding.hole import closed_already
from lsp_server.counts import Counts
from lsp_server.documents import DocumentStore
from lsp_server.items import Asked, inline_items
from lsp_server.lines import Encoding
from lsp_server.session import Session
from lsp_server.settings import Settings
from lsp_server.worker_client import WorkerClient
from tests.lsp_server.fake_worker import FakeWorker, VirtualLoop
from tests.lsp_server.stub import continuation, one_newline
from tests.lsp_server.test_documents import Shadow

URI = "file:///a.py"
PAIRS = ["()", "[]", '""']
CLOSERS = [")", "]", '"']
TYPED = ["a", "k", "x = ", "\n", "\r\n", " ", "é", "😀", "word"]


@dataclass(eq=False)
class Request:
    task: asyncio.Task[list[types.InlineCompletionItem]]
    text: str
    before: str
    after: str
    chosen: str
    position: types.Position
    cancelled: bool = False


class Client:
    def __init__(self, encoding: Encoding, text: str, settings: Settings | None = None) -> None:
        self.loop = VirtualLoop()
        asyncio.set_event_loop(self.loop)
        self.worker = FakeWorker()
        self.counts = Counts()
        self.encoding = encoding
        self.store = DocumentStore(encoding)
        self.settings = settings or Settings.model_validate({"suggest": {"debounce_ms": 0}})
        self.session = Session(cast(WorkerClient, self.worker), self.settings, self.counts)
        self.document = self.store.open(types.TextDocumentItem(URI, "python", 1, text))
        self.shadow = Shadow(encoding, text)
        self.cursor = len(self.shadow.units)
        self.requests: list[Request] = []
        self.last_item = ""
        self.answered = 0
        self.checked = 0

    def close(self) -> None:
        """Everything comes to an end: no request is left, and none was wrong."""
        for _ in range(200):
            self.worker.finish()
            self.settle(0.1)
            if not self.requests and not self.worker.jobs:
                break
        assert not self.requests, "a request was never answered"
        assert not self.worker.jobs, "a job was never ended"
        assert self.worker.most_at_once <= 1, "two generations ran at once"
        self.session.stop()
        self.loop.settle()
        self.loop.close()

    def settle(self, seconds: float = 0.0) -> None:
        self.loop.settle(seconds)
        for request in [request for request in self.requests if request.task.done()]:
            self.requests.remove(request)
            self.check(request)

    def places(self) -> list[int]:
        """Where a cursor can be: not inside a character."""
        units = self.shadow.units
        return [
            place
            for place in self.shadow.places()
            if not ("\ud800" <= units[place - 1 : place] < "\udc00" and "\udc00" <= units[place : place + 1] < "\ue000")
        ]

    # What a client does -----------------------------------------------------------------------------------------

    def replace(self, start: int, end: int, text: str, *, whole: bool = False) -> None:
        span = types.Range(self.shadow.position(start), self.shadow.position(end))
        units = self.shadow.of(text)
        self.shadow.units = self.shadow.units[:start] + units + self.shadow.units[end:]
        event: types.TextDocumentContentChangeEvent = types.TextDocumentContentChangePartial(span, text)
        if whole:
            event = types.TextDocumentContentChangeWholeDocument(self.shadow.text())
        identifier = types.VersionedTextDocumentIdentifier(0, URI)
        document = self.store.change(types.DidChangeTextDocumentParams(identifier, [event]))
        assert document is not None
        self.session.changed(document.uri, document.data, document.revision)
        self.cursor = start + len(units)

    def type(self, text: str, *, whole: bool = False) -> None:
        self.replace(self.cursor, self.cursor, text, whole=whole)

    def type_pair(self, pair: str) -> None:
        """Types a bracket or quote that the editor closes."""
        self.type(pair)
        self.cursor -= 1

    def type_over(self) -> None:
        """Types the closer that the editor has typed before."""
        here = self.shadow.units[self.cursor : self.cursor + 1]
        self.replace(self.cursor, self.cursor + 1 if here in CLOSERS else self.cursor, here if here in CLOSERS else "q")

    def type_along(self, count: int) -> None:
        """Types what was suggested."""
        text, self.last_item = self.last_item[:count], self.last_item[count:]
        self.type(text or "q")

    def delete(self, count: int) -> None:
        places = [place for place in self.places() if place <= self.cursor]
        self.replace(places[max(0, len(places) - 1 - count)], self.cursor, "")

    def edit_at(self, fraction: float, text: str) -> None:
        places, here = self.places(), self.cursor
        place = places[int(fraction * (len(places) - 1))]
        self.replace(place, place, text)
        self.cursor = here + len(self.shadow.of(text)) if place <= here else here

    def move(self, fraction: float) -> None:
        places = self.places()
        self.cursor = places[int(fraction * (len(places) - 1))]

    def rest(self, offset: int | None = None) -> None:
        """The editor says where the cursor is."""
        document = self.store.get(URI)
        assert document is not None
        here = document.offset_at(self.shadow.position(self.cursor), self.encoding) if offset is None else offset

        async def rest() -> None:
            self.session.rest(document.view(here))

        self.loop.run_until_complete(rest())
        self.settle()

    def request(self, *, explicit: bool = False, chosen: str = "") -> None:
        units, place = self.shadow.units, self.cursor
        position = self.shadow.position(place)
        head, tail = Shadow(self.encoding, ""), Shadow(self.encoding, "")
        head.units, tail.units = units[:place], units[place:]
        selected = types.SelectedCompletionInfo(types.Range(position, position), chosen) if chosen else None
        document = self.store.get(URI)
        assert document is not None
        asked = Asked.at(document, position, self.encoding, selected)
        task = self.loop.create_task(self._ask(asked, explicit))
        before = head.text() + chosen
        self.requests.append(Request(task, self.shadow.text(), before, tail.text(), chosen, position))

    async def _ask(self, asked: Asked, explicit: bool) -> list[types.InlineCompletionItem]:
        return inline_items(asked, await self.session.suggest(asked.view, explicit=explicit))

    def cancel(self, index: int) -> None:
        if self.requests:
            request = self.requests[index % len(self.requests)]
            request.cancelled = True
            request.task.cancel()

    # What it must see -------------------------------------------------------------------------------------------

    def check(self, request: Request) -> None:
        self.answered += 1
        if request.task.cancelled():
            assert request.cancelled, "a request was cancelled that nobody cancelled"
            return
        items = request.task.result()
        if not items:
            return
        assert request.text == self.shadow.text(), "an answer for a text that is not there any more"
        assert self.document.data == request.text.encode("utf-8", "surrogatepass")
        before, after = request.before.encode("utf-8", "surrogatepass"), request.after
        closed = closed_already(before + after.encode("utf-8", "surrogatepass"), len(before))
        fresh = continuation(request.before, after[closed:], 300, multiline=True)
        for item in items:
            assert item.range is not None
            assert item.range.start == request.position
            assert item.range.end == request.position
            text = str(item.insert_text)
            assert text.startswith(request.chosen)
            written = one_newline(text[len(request.chosen) :])
            right = [f"{number}{fresh}" for number in ("", 1, 2)]
            assert any(map(str.startswith, right, [written] * 3)), f"{written!r} is not for {request.before!r}"
            assert written
            self.checked += 1
        self.last_item = str(items[0].insert_text) if not request.chosen else ""
