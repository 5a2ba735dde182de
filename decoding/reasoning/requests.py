"""What a command is asked and what it answers, as values that cross the process border.

Knows pydantic only. Offsets are UTF-8 bytes of the snapshot's text.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from decoding.messages import Message, Snapshot, Stats, StopReason

CommandName = Literal["explain", "fix", "docstring", "tests", "edit", "reason"]
DocstringStyle = Literal["auto", "google", "numpy", "sphinx"]
Thoughts = Literal["folded", "hidden"]


class Problem(Message):
    """A diagnostic of any checker, at the bytes [start, end)."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    message: str
    source: str = ""


class OpenFile(Message):
    """Another file that the user works with: where callers and types may be."""

    uri: str
    text: str


class CommandRequest(Message):
    """One command.

    Attributes:
        snapshot: the document; its offset is where the selection begins. `reason` may have an empty one.
        end: where the selection ends; the offset itself where nothing is selected.
        text: the instruction of `edit`, the question of `reason`, the error message or traceback of `fix` and
            `explain`.
        problems: what `fix` is to make go away.
        thinking_tokens: the budget of the thought before the answer, 0 for none.
        thoughts: how a thought is shown.
        style: of docstrings; auto takes the file's own.
        tries: how many candidates a command may make until one passes its checks.
        max_tokens: of each text, thought included.
        open_files: the other open files, those that matter most first.
        test_command: a command line that `fix` may run on a copy, on the user's explicit request only.
    """

    command: CommandName
    snapshot: Snapshot
    end: int = Field(ge=0)
    text: str = ""
    problems: tuple[Problem, ...] = ()
    thinking_tokens: int = Field(0, ge=0, le=4096)
    thoughts: Thoughts = "folded"
    style: DocstringStyle = "auto"
    tries: int = Field(3, ge=1, le=16)
    max_tokens: int = Field(512, ge=1, le=4096)
    open_files: tuple[OpenFile, ...] = ()
    test_command: str | None = None


class Replacement(Message):
    """`text` takes the place of the bytes [start, end) of the snapshot's text."""

    start: int = Field(ge=0)
    end: int = Field(ge=0)
    text: str


class NewFile(Message):
    """A file that does not exist yet."""

    uri: str
    text: str


class CommandResult(Message):
    """The answer to a command.

    Attributes:
        text: Markdown for the reader; what was streamed is its beginning.
        thought: what the model thought, "" where it did not.
        replacements: the proposed change of the document, in ascending order.
        new_file: a proposed new file.
        checks: what was checked and what came of it, one line each.
        tries: how many candidates were made.
        stop_reason: why the last text ended.
        stats: sums over all texts of the command.
    """

    text: str
    thought: str = ""
    replacements: tuple[Replacement, ...] = ()
    new_file: NewFile | None = None
    checks: tuple[str, ...] = ()
    tries: int = 1
    stop_reason: StopReason = "end"
    model: str = ""
    runtime: str = ""
    drafter: str = ""
    stats: Stats = Stats()
