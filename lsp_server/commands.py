"""The reasoning commands as the protocol has them: `draftwood/answer`, executeCommand, code actions.

Knows the protocol's shapes, documents and the worker. What a command does is not its business. An answer proposes an
edit; only the client, asked by the user, applies it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, get_args

from lsprotocol import types
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pygls.exceptions import JsonRpcException

from decoding.errors import BadInput, DraftwoodError
from decoding.messages import Chunk, EngineOptions, Snapshot
from decoding.reasoning.requests import CommandName, CommandRequest, CommandResult, DocstringStyle, OpenFile, Problem
from lsp_server.documents import Document, DocumentStore
from lsp_server.lines import decode
from lsp_server.settings import AnswerSettings
from lsp_server.worker_client import WorkerClient

log = logging.getLogger(__name__)

ANSWER = "draftwood/answer"
COMMANDS: tuple[CommandName, ...] = get_args(CommandName)
PREFIX = "draftwood."
_REQUEST_FAILED = -32803
_NOTHING = "untitled:nothing"
_OPEN_FILES, _OPEN_BYTES = 8, 400_000
"""Of other files, for callers and types: what the worker gets with each command."""


class _Shape(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="ignore")


class _Place(_Shape):
    line: int = Field(ge=0)
    character: int = Field(ge=0)


class _Span(_Shape):
    start: _Place
    end: _Place


class _Diagnostic(_Shape):
    range: _Span
    message: str
    source: str | None = None


class _Uri(_Shape):
    uri: str


class Target(_Shape):
    """The one argument object of every command."""

    text_document: _Uri | None = None
    range: _Span | None = None
    instruction: str = ""
    question: str = ""
    message: str = ""
    diagnostics: list[_Diagnostic] = []
    style: DocstringStyle | None = None
    thinking_tokens: int | None = Field(None, ge=0, le=4096)

    @property
    def text(self) -> str:
        """What the user said, under whatever name."""
        return self.instruction or self.question or self.message


class AnswerParams(_Shape):
    """The parameters of `draftwood/answer`."""

    command: str
    text_document: _Uri | None = None
    range: _Span | None = None
    arguments: dict[str, Any] | None = None
    token: str | int | None = None

    def target(self) -> Target:
        """What the command is about."""
        own = {"textDocument": self.text_document, "range": self.range}
        given = {name: value for name, value in own.items() if value is not None}
        return Target.model_validate({**(self.arguments or {}), **given})


class Commands:
    """Runs commands for one connection."""

    def __init__(
        self,
        documents: DocumentStore,
        notify: Callable[[str, Any], None],
        capabilities: types.ClientCapabilities,
        on_activity: Callable[[bool], None],
    ) -> None:
        self._documents = documents
        self._notify = notify
        edits = capabilities.workspace.workspace_edit if capabilities.workspace else None
        self._versioned = bool(edits and edits.document_changes)
        self._creates = bool(edits and types.ResourceOperationKind.Create in (edits.resource_operations or ()))
        self._on_activity = on_activity

    async def answer(
        self, params: AnswerParams, worker: WorkerClient, options: EngineOptions, settings: AnswerSettings
    ) -> dict[str, Any]:
        """The answer to `draftwood/answer`: streamed on the token, then whole. Raises JsonRpcException."""

        def stream(chunk: Chunk) -> None:
            if params.token is not None and chunk.text:
                self._notify(types.PROGRESS, types.ProgressParams(params.token, {"text": chunk.text}))

        try:
            name = _name_of(params.command)
            return await self._run(name, params.target(), worker, options, settings, stream)
        except ValidationError as error:
            raise _failed(_first_line(error)) from error
        except DraftwoodError as error:
            raise _failed(str(error)) from error

    async def _run(
        self,
        name: CommandName,
        target: Target,
        worker: WorkerClient,
        options: EngineOptions,
        settings: AnswerSettings,
        stream: Callable[[Chunk], None],
    ) -> dict[str, Any]:
        document = self._documents.get(target.text_document.uri) if target.text_document else None
        if document is None and name != "reason":
            raise BadInput("the document is not open")
        revision = document.revision if document is not None else None
        request = self._request(name, target, document, settings)
        self._on_activity(True)
        try:
            result = await worker.command(request, options, stream)
        finally:
            self._on_activity(False)
        if document is not None and document.revision != revision and (result.replacements or result.new_file):
            note = "\n- the document has changed meanwhile: ask again for a change that fits it\n"
            return {"text": result.text + note, "edit": None}
        return {"text": result.text, "edit": self._edit(document, result) if document is not None else None}

    def _request(
        self, name: CommandName, target: Target, document: Document | None, settings: AnswerSettings
    ) -> CommandRequest:
        start = end = 0
        if document is not None and target.range is not None:
            start, end = self._bytes(document, target.range)
        thinking = settings.thinking_tokens if name == "reason" else 0
        if target.thinking_tokens is not None:
            thinking = target.thinking_tokens
        return CommandRequest(
            command=name,
            snapshot=Snapshot(
                uri=document.uri if document is not None else _NOTHING,
                text=decode(document.data) if document is not None else "",
                offset=start,
                language=document.language if document is not None else "python",
            ),
            end=end,
            text=target.text,
            problems=tuple(self._problems(document, target)),
            thinking_tokens=thinking,
            thoughts=settings.thoughts,
            style=target.style or settings.docstring_style,
            tries=settings.tries,
            max_tokens=settings.max_tokens + thinking,
            open_files=tuple(self._others(document)) if document is not None else (),
        )

    def _others(self, document: Document) -> Iterator[OpenFile]:
        """The other open Python files, the latest edited first."""
        others = [each for each in self._documents if each is not document and each.language == "python"]
        room = _OPEN_BYTES
        for each in sorted(others, key=lambda other: other.revision, reverse=True)[:_OPEN_FILES]:
            if len(each.data) <= room:
                room -= len(each.data)
                yield OpenFile(uri=each.uri, text=decode(each.data))

    def _problems(self, document: Document | None, target: Target) -> list[Problem]:
        if document is None:
            return []
        problems = []
        for each in target.diagnostics:
            start, end = self._bytes(document, each.range)
            problems.append(Problem(start=start, end=end, message=each.message, source=each.source or ""))
        return problems

    def _bytes(self, document: Document, span: _Span) -> tuple[int, int]:
        places = [
            document.offset_at(types.Position(each.line, each.character), self._documents.encoding)
            for each in (span.start, span.end)
        ]
        return min(places), max(places)

    def _edit(self, document: Document, result: CommandResult) -> dict[str, Any] | None:
        """The proposed change in the form that the client can apply; None where there is none, or it cannot."""
        if result.new_file is not None:
            return _new_file(result.new_file.uri, result.new_file.text) if self._creates else None
        if not result.replacements:
            return None
        encoding = self._documents.encoding
        edits = [
            {
                "range": {
                    "start": _position(document.position_at(each.start, encoding)),
                    "end": _position(document.position_at(each.end, encoding)),
                },
                "newText": each.text,
            }
            for each in result.replacements
        ]
        if not self._versioned:
            return {"changes": {document.uri: edits}}
        identity = {"uri": document.uri, "version": document.version}
        return {"documentChanges": [{"textDocument": identity, "edits": edits}]}


def code_actions(params: types.CodeActionParams) -> list[types.CodeAction]:
    """What the commands offer for a selection."""
    target = {
        "textDocument": {"uri": params.text_document.uri},
        "range": _plain_range(params.range),
    }
    offered: list[tuple[str, str, types.CodeActionKind | str, dict[str, Any]]] = []
    if params.context.diagnostics:
        problems = [
            {"range": _plain_range(each.range), "message": each.message, "source": each.source}
            for each in params.context.diagnostics
        ]
        offered.append(("fix", "Fix", types.CodeActionKind.QuickFix, {"diagnostics": problems}))
    offered += [
        ("explain", "Explain", "draftwood.explain", {}),
        ("docstring", "Write the docstring", types.CodeActionKind.RefactorRewrite, {}),
        ("tests", "Write tests", "draftwood.tests", {}),
    ]
    wanted = params.context.only
    return [
        types.CodeAction(
            title=f"{title} with Draftwood",
            kind=kind,
            command=types.Command(title, PREFIX + name, arguments=[{**target, **more}]),
            diagnostics=params.context.diagnostics if name == "fix" else None,
        )
        for name, title, kind, more in offered
        if not wanted or any(_kind(kind).startswith(_kind(each)) for each in wanted)
    ]


CODE_ACTIONS = types.CodeActionOptions(
    code_action_kinds=[types.CodeActionKind.QuickFix, types.CodeActionKind.RefactorRewrite]
)


def answer_params(command: str, arguments: tuple[Any, ...]) -> AnswerParams:
    """The parameters for executeCommand, which has one argument object and no token. Raises JsonRpcException."""
    given = plain(arguments[0]) if arguments else {}
    return read_params({**given, "command": command, "arguments": given} if isinstance(given, dict) else given)


def read_params(values: Any) -> AnswerParams:
    """The parameters of a client. Raises JsonRpcException, in one line, where they are none."""
    try:
        return AnswerParams.model_validate(plain(values))
    except ValidationError as error:
        raise _failed(_first_line(error)) from error


def plain(value: Any) -> Any:
    """What pygls made named tuples of, as the JSON that it was."""
    if hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def _name_of(command: str) -> CommandName:
    for name in COMMANDS:
        if command in (PREFIX + name, name):
            return name
    raise BadInput(f"{command} is no command of ours")


def _failed(message: str) -> JsonRpcException:
    return JsonRpcException(message=message, code=_REQUEST_FAILED)


def _first_line(error: ValidationError) -> str:
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"


def _kind(kind: types.CodeActionKind | str) -> str:
    return str(getattr(kind, "value", kind))


def _position(position: types.Position) -> dict[str, int]:
    return {"line": position.line, "character": position.character}


def _plain_range(span: types.Range) -> dict[str, dict[str, int]]:
    return {"start": _position(span.start), "end": _position(span.end)}


def _new_file(uri: str, text: str) -> dict[str, Any]:
    nowhere = {"line": 0, "character": 0}
    return {
        "documentChanges": [
            {"kind": "create", "uri": uri, "options": {"ignoreIfExists": False, "overwrite": False}},
            {
                "textDocument": {"uri": uri, "version": None},
                "edits": [{"range": {"start": nowhere, "end": nowhere}, "newText": text}],
            },
        ]
    }
