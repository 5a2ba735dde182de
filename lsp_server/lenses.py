"""Code lenses: what the commands offer above functions and classes.

Knows the bytes of a document and the protocol's shapes. Looks for headers in one pass over the bytes, not with a
parser: it runs in the process that has to answer keystrokes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lsprotocol import types

from lsp_server.documents import Document
from lsp_server.lines import Encoding

CODE_LENSES = types.CodeLensOptions()

_MOST_BYTES = 400_000
"""Longer documents get none; this many are looked through in about 5 ms."""
_HEADER = re.compile(
    rb"""
    (?P<quotes>\"{3}|'{3})(?:[^\\]|\\.)*?(?:(?P=quotes)|\Z)             # a text may hold what looks like a header
    | \"(?:[^\"\\\r\n]|\\.)*\"? | '(?:[^'\\\r\n]|\\.)*'? | \#[^\r\n]*    # or like the quotes of one
    | (?m:^)(?P<indent>[ \t]*)(?:async[ \t]+)?(?P<word>def|class)[ \t]+[A-Za-z_\x80-\xff]
    | (?m:^)[A-Za-z_]                                                   # any other statement at the top
    """,
    re.DOTALL | re.VERBOSE,
)
_OFFERED = (("explain", "Explain"), ("docstring", "Docstring"), ("tests", "Tests"))


def code_lenses(document: Document, encoding: Encoding) -> list[types.CodeLens]:
    """One lens a command above each function and class that is not inside of a function."""
    if document.language != "python" or len(document.data) > _MOST_BYTES:
        return []
    lenses = []
    for offset, at_top in _headers(document.data):
        position = document.position_at(offset, encoding)
        place = types.Range(position, position)
        plain = {"line": position.line, "character": position.character}
        target = {"textDocument": {"uri": document.uri}, "range": {"start": plain, "end": plain}}
        lenses += [
            types.CodeLens(place, types.Command(title, f"draftwood.{name}", arguments=[target]))
            for name, title in _OFFERED
            if at_top or name != "tests"  # a test can import only what is at the top
        ]
    return lenses


def _headers(data: bytes) -> Iterator[tuple[int, bool]]:
    """(the byte at which a header's line begins to have text, whether it is at the top of the file)."""
    around: list[tuple[int, bool]] = []
    for found in _HEADER.finditer(data):
        if found["word"] is None:
            if found[0].isalpha() or found[0] == b"_":
                around.clear()
            continue
        width = len(found["indent"].expandtabs())
        while around and around[-1][0] >= width:
            around.pop()
        if all(is_class for _, is_class in around):
            yield found.end("indent"), not around
        around.append((width, found["word"] == b"class"))
