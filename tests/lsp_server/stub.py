"""An assistant without a model: a deterministic little language whose next character depends on what stands around.

Continuing a text, or typing what was suggested and asking again, gives the same answer, closers that an editor typed
make no difference, and text for one document is never right for another: what a test sees is what was computed for it.
Some words in a document make it misbehave.
The model's name sets the pace: `stub?token=0.01&load=0.5` (seconds).
"""

from __future__ import annotations

import os
import resource
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from urllib.parse import parse_qsl, urlsplit

import psutil

from decoding.errors import ModelError
from decoding.hole import closed_already
from decoding.messages import Chunk, Completion, EngineOptions, ModelProgress, Snapshot, Stats
from decoding.names import imports_for
from decoding.reasoning.requests import Replacement
from grammars.scope_documents import ScopeDocuments

ALPHABET = "abcdefghijklmnopqrstuvwxyz"
LINE = 24
"""A line ends after about so many characters."""


def next_character(before: str, after: str) -> str:
    """Depends on the last line's beginning, on its last characters and on what follows."""
    before, after = one_newline(before[-200:]), one_newline(after[:200])
    line = before.rsplit("\n", 1)[-1]
    key = zlib.crc32(f"{line[:40]}\0{before[-12:]}\0{after[:40]}".encode("utf-8", "replace"))
    if len(line) >= LINE and key % 4 == 0:
        return "\n"
    return ALPHABET[key % 26]


def one_newline(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def continuation(before: str, after: str, length: int, *, multiline: bool = False) -> str:
    """What the stub writes at a cursor."""
    text = ""
    for _ in range(length):
        text += next_character(before + text, after)
        if text.endswith("\n") and not multiline:
            return text
    return text


class StubAssistant:
    def __init__(self, options: EngineOptions, progress: Callable[[ModelProgress], None]) -> None:
        settings = dict(parse_qsl(urlsplit(options.model).query))
        self.model = options.model
        self.token_seconds = float(settings.get("token", 0))
        self.warmed: list[str] = []
        self.prepared = 0
        self.asked = 0
        self.generated = 0
        if settings.get("broken"):
            raise ModelError("there is no such stub: choose another")
        for step in range(1, 5):
            time.sleep(float(settings.get("load", 0)) / 4)
            progress(ModelProgress(model=self.model, stage="load", fraction=step / 4, message="loading the stub"))
        print("libraries print to standard output")

    def complete(
        self,
        snapshot: Snapshot,
        options: EngineOptions,
        cancelled: Callable[[], bool],
        emit: Callable[[Chunk], None],
    ) -> list[Completion]:
        self.asked += 1
        data = snapshot.text.encode()
        offset = snapshot.offset  # what the language looks at is near: a large file must not cost the stub more
        before = data[max(0, offset - 1000) : offset].decode("utf-8", "ignore")
        follows = offset + closed_already(data, offset)
        after = data[follows : follows + 1000].decode("utf-8", "ignore")
        misbehave(before + after)
        multiline = options.multiline == "always"
        text, stop = "", "length"
        for _ in range(options.max_tokens):
            time.sleep(self.token_seconds)
            if cancelled():
                stop = "cancelled"
                break
            character = next_character(before + text, after)
            text += character
            self.generated += 1
            emit(Chunk(text=character, token_ids=(ord(character),)))
            if character == "\n" and not multiline:
                stop = "line"
                break
        first = completion(text, snapshot, stop, self.model)
        others = [
            completion(f"{other}{text}", snapshot, stop, self.model) for other in "123"[: options.alternatives - 1]
        ]
        return [first, *others]

    def prepare(self) -> Iterator[None]:
        for _ in range(3):
            self.prepared += 1
            yield

    def warm(self, snapshot: Snapshot, options: EngineOptions, cancelled: Callable[[], bool]) -> None:
        cancelled()
        self.warmed.append(snapshot.uri)

    def imports(self, snapshot: Snapshot, start: int) -> tuple[Replacement, ...]:
        return imports_for(ScopeDocuments(), snapshot, start)

    def forget(self, uri: str) -> None:
        self.warmed = [warmed for warmed in self.warmed if warmed != uri]

    def describe(self) -> dict[str, object]:
        return {
            "model": self.model,
            "prepared": self.prepared,
            "warmed": len(self.warmed),
            "asked": self.asked,
            "generated": self.generated,
            "pid": os.getpid(),
        }


def misbehave(text: str) -> None:
    if "CRASH_NOW" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if "HANG_NOW" in text:
        time.sleep(600)
    if "RAISE_NOW" in text:
        raise RuntimeError(f"quoting {text}")
    if "REFUSE_NOW" in text:
        raise ModelError("not enough memory: close something")
    if "EXHAUST_NOW" in text:
        exhaust_memory()


def exhaust_memory() -> None:
    """Asks for more than the process may have."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (psutil.Process().memory_info().vms + 2**26, before[1]))
    try:
        bytearray(2**30)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def completion(text: str, snapshot: Snapshot, stop: str, model: str) -> Completion:
    return Completion.model_validate(
        {
            "text": text.rstrip("\n"),
            "start": snapshot.offset,
            "end": snapshot.offset,
            "raw": text,
            "token_ids": tuple(map(ord, text)),
            "stop_reason": stop,
            "model": model,
            "runtime": "stub",
            "drafter": "none",
            "constraint": "off",
            "stats": Stats(tokens=len(text)),
        }
    )
