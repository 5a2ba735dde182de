"""The stub assistant, which also answers commands: counted words at a set pace, and a change where one is due."""

from __future__ import annotations

import time
from collections.abc import Callable

from decoding.errors import BadInput, Cancelled
from decoding.messages import Chunk, EngineOptions
from decoding.reasoning.requests import CommandRequest, CommandResult, NewFile, Replacement
from tests.lsp_server.stub import StubAssistant

WORDS = 20


def words(request: CommandRequest) -> str:
    """What the stub says."""
    about = (
        f"{request.command} {request.text!r} {request.snapshot.text.encode()[request.snapshot.offset : request.end]!r}"
    )
    return about + "".join(f" {number}" for number in range(WORDS))


class AnsweringStub(StubAssistant):
    def command(
        self,
        request: CommandRequest,
        options: EngineOptions,
        cancelled: Callable[[], bool],
        emit: Callable[[Chunk], None],
        pause: Callable[[], bool],
    ) -> CommandResult:
        if request.text == "REFUSE":
            raise BadInput("select some code first")
        text = words(request)
        if request.text == "OPEN":
            text = " ".join(f"{each.uri}:{each.text!r}" for each in request.open_files)
        said = ""
        while len(said) < len(text):
            time.sleep(self.token_seconds)
            if cancelled():
                raise Cancelled
            piece = text[len(said) : len(said) + 8]
            emit(Chunk(text=piece, token_ids=()))
            said += piece
            self.generated += 1
            pause()
        if request.command == "tests":
            return CommandResult(text=text, new_file=NewFile(uri="file:///test_a.py", text="def test():\n    pass\n"))
        if request.command in ("explain", "reason"):
            return CommandResult(text=text, thought=f"{request.thinking_tokens}")
        start, end = request.snapshot.offset, request.end
        new = f"{request.text}{len(request.problems)}"
        return CommandResult(text=text, replacements=(Replacement(start=start, end=end, text=new),))
