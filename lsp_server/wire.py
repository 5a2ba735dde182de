"""What the server and its worker say to each other: typed messages in length-prefixed frames.

Knows pydantic and bytes only; both processes import it, so it must know neither pygls nor torch. A frame is a 4-byte
big-endian length and that many bytes of JSON.
"""

from __future__ import annotations

import json
import struct
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic_core import PydanticSerializationError

from decoding.messages import Chunk, Completion, EngineOptions, Message, ModelProgress
from decoding.reasoning.requests import CommandRequest, CommandResult, Replacement
from lsp_server.lines import decode, encode

_HEADER = struct.Struct(">I")
HEADER_BYTES = _HEADER.size


class Patch(Message):
    """`text` takes the place of the UTF-8 bytes [start, old_end)."""

    start: int
    old_end: int
    text: str


class Load(Message):
    """The first message: which assistant to make ("module:callable") and how."""

    kind: Literal["load"] = "load"
    factory: str
    options: EngineOptions


class Sync(Message):
    """A document as it is at `revision`: `patches` on revision `base`, or one patch of nothing where that is None."""

    kind: Literal["sync"] = "sync"
    uri: str
    language: str
    base: int | None
    revision: int
    patches: tuple[Patch, ...]


class Complete(Message):
    """Complete at `offset` of a document that was synchronised, after `patches` that only this job sees."""

    kind: Literal["complete"] = "complete"
    job: int
    uri: str
    offset: int
    patches: tuple[Patch, ...] = ()
    options: EngineOptions


class Warm(Message):
    """Prefill for a completion at `offset` after `patches` that only this job sees; generate nothing."""

    kind: Literal["warm"] = "warm"
    job: int
    uri: str
    offset: int
    patches: tuple[Patch, ...] = ()
    options: EngineOptions


class Imports(Message):
    """Which imports does the text from `start` to `offset` of a document that was synchronised lack?"""

    kind: Literal["imports"] = "imports"
    job: int
    uri: str
    start: int
    offset: int
    patches: tuple[Patch, ...] = ()


class Describe(Message):
    """Ask for the facts that the assistant knows of itself."""

    kind: Literal["describe"] = "describe"
    job: int


class Command(Message):
    """Explain, fix, document, test, edit or reason. The request carries its own text; jobs of other kinds go first."""

    kind: Literal["command"] = "command"
    job: int
    request: CommandRequest
    options: EngineOptions


class Cancel(Message):
    """A job has become useless."""

    kind: Literal["cancel"] = "cancel"
    job: int


class Forget(Message):
    """A document was closed."""

    kind: Literal["forget"] = "forget"
    uri: str


class Ping(Message):
    """Answered at once, whatever the engine does."""

    kind: Literal["ping"] = "ping"


Request = Load | Sync | Complete | Warm | Imports | Describe | Command | Cancel | Forget | Ping


class Loading(Message):
    """Provisioning and loading go on."""

    kind: Literal["loading"] = "loading"
    progress: ModelProgress


class Ready(Message):
    """The assistant stands."""

    kind: Literal["ready"] = "ready"
    facts: dict[str, Any]


class LoadFailed(Message):
    """There will be no assistant with these options; the worker ends."""

    kind: Literal["load_failed"] = "load_failed"
    message: str


class Emitted(Message):
    """Text that a round added to a job."""

    kind: Literal["emitted"] = "emitted"
    job: int
    chunk: Chunk


class Done(Message):
    """A job ended; a cancelled one with what it had."""

    kind: Literal["done"] = "done"
    job: int
    completions: tuple[Completion, ...] = ()
    facts: dict[str, Any] = Field(default_factory=dict)
    result: CommandResult | None = None
    edits: tuple[Replacement, ...] = ()


class Failed(Message):
    """A job ended with an error, of which one line is told."""

    kind: Literal["failed"] = "failed"
    job: int
    message: str


class Pong(Message):
    """The worker's reader lives; the engine has come by so often."""

    kind: Literal["pong"] = "pong"
    engine_steps: int


Report = Loading | Ready | LoadFailed | Emitted | Done | Failed | Pong

_KEEP_NO_TEXT = ConfigDict(cache_strings="keys")
"""By default pydantic keeps the last 16,384 short strings that it read: a megabyte of what the user wrote."""
_REQUEST: TypeAdapter[Request] = TypeAdapter(Annotated[Request, Field(discriminator="kind")], config=_KEEP_NO_TEXT)
_REPORT: TypeAdapter[Report] = TypeAdapter(Annotated[Report, Field(discriminator="kind")], config=_KEEP_NO_TEXT)


def frame(message: Request | Report) -> bytes:
    """The bytes of a message on the pipe. Half a surrogate pair, which a client may put anywhere, becomes U+FFFD."""
    try:
        body = message.model_dump_json().encode("utf-8")
    except PydanticSerializationError:
        body = json.dumps(_whole(message.model_dump())).encode("ascii")
    return _HEADER.pack(len(body)) + body


def _whole(value: Any) -> Any:
    if isinstance(value, str):
        return decode(encode(value))
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return [_whole(each) for each in value] if isinstance(value, list | tuple) else value


def body_length(header: bytes) -> int:
    """How many bytes follow a frame's header."""
    (length,) = _HEADER.unpack(header)
    return int(length)


def read_request(body: bytes) -> Request:
    """A message of the server. Raises pydantic's ValidationError for anything else."""
    return _REQUEST.validate_json(body)


def read_report(body: bytes) -> Report:
    """A message of the worker. Raises pydantic's ValidationError for anything else."""
    return _REPORT.validate_json(body)
