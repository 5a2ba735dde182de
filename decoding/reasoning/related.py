"""What a piece of code is related to: what it uses and who uses it, in its own file and in the other open ones.

Knows sources. Must not know commands, or models beyond a way to count tokens.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from decoding.reasoning.pieces import Piece
from decoding.reasoning.requests import CommandRequest
from decoding.reasoning.source import Count, Source
from grammars.definitions import Definition

_NAME = re.compile(r"[^\W\d]\w*")
_DEFINED = re.compile(r"(?:async[ \t]+)?(?:def|class)[ \t]+([^\W\d]\w*)")
_NO_CALL = ("def ", "async def ", "class ", "import ", "from ", "#", "@", ">>>")
_MOST_CALLERS = 3


def open_sources(request: CommandRequest) -> tuple[Source, ...]:
    """The other files of a request."""
    return tuple(Source(each.text.encode("utf-8", "surrogatepass"), 0, 0, each.uri) for each in request.open_files)


def related_code(source: Source, piece: Piece, room: int, count: Count, others: Sequence[Source] = ()) -> str:
    """Imports, the class around the piece, the interfaces of what it names, and lines that call it; as much as fits
    into `room` tokens. What stands in another file comes behind a comment with the file's name."""
    chosen: list[str] = []
    for part in _parts(source, piece, others):
        room -= count(part) + 1
        if room < 0:
            break
        chosen.append(part)
    return "\n".join(chosen)


def _parts(source: Source, piece: Piece, others: Sequence[Source]) -> Iterator[str]:
    """The parts, what matters most first."""
    used = set(_NAME.findall(piece.code))
    imports = [
        statement
        for start, end in source.outline.imports
        if used & set(_NAME.findall(statement := source.data[start:end].decode("utf-8", "replace")))
        and not piece.start <= start < piece.end
    ]
    yield from imports
    told = -1  # up to where definitions have been told with the class around them
    for each in source.outline.definitions:
        outside = (each.end <= piece.start or each.start >= piece.end) and each.start >= told
        around = each.kind == "class" and each.start <= piece.start and piece.end <= each.end
        if around and each.start != piece.start:
            yield source.signature(each)
        elif outside and each.name in used:
            told = each.end if each.kind == "class" else told
            yield source.interface(each)
    for other in others:
        for each in _imported(imports, other, used):
            yield f"# {other.name}\n{other.interface(each)}"
    name = _DEFINED.search(piece.code)
    if name is not None:
        for file in (source, *others):
            lines = list(_calls(file, name[1], piece if file is source else None))[:_MOST_CALLERS]
            if lines:
                yield "\n".join([f"# calls in {file.name}", *lines])


def _imported(imports: Sequence[str], other: Source, used: set[str]) -> Iterator[Definition]:
    """The definitions of another file that are used here, by its imports."""
    module = other.name.removesuffix(".py")
    named = {word for statement in imports if module in (words := _NAME.findall(statement)) for word in words}
    for each in other.outline.definitions if named else ():
        if not each.depth and each.name in used and (each.name in named or (module in named and module in used)):
            yield each


def _calls(source: Source, name: str, piece: Piece | None) -> Iterator[str]:
    """The lines of a file that call `name`, those of the piece itself left out."""
    call = re.compile(rf"(?<![\w]){re.escape(name)}\(".encode())
    for found in call.finditer(source.data):
        if piece is not None and piece.start <= found.start() < piece.end:
            continue
        begin = source.data.rfind(b"\n", 0, found.start()) + 1
        end = source.data.find(b"\n", found.start())
        line = source.data[begin : end if end >= 0 else len(source.data)].decode("utf-8", "replace").strip()
        if not line.startswith(_NO_CALL):
            yield line
