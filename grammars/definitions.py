"""Functions, classes and whole statements of a Python file, finished or not, by byte ranges.

Knows tree-sitter. Must not know scopes, tokens or what a range is wanted for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import tree_sitter_python
from tree_sitter import Language, Node, Parser

_DEFINITIONS = {"function_definition": "function", "class_definition": "class"}


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class with its decorators.

    Attributes:
        kind: what it is.
        name: its own name.
        qualified_name: with the names of the definitions around it.
        start: its first byte, decorators included; what stands before it on the line is indentation.
        end: behind its last byte.
        header_end: behind the colon of its header.
        body_start: the first byte of its body's first statement.
        docstring: the bytes of its docstring's literal, None where it has none.
        depth: how many definitions are around it.
        in_class: whether the innermost of those is a class.
    """

    kind: Literal["function", "class"]
    name: str
    qualified_name: str
    start: int
    end: int
    header_end: int
    body_start: int
    docstring: tuple[int, int] | None
    depth: int
    in_class: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """The definitions of a file in the order of their beginnings, and its top-level import statements."""

    definitions: tuple[Definition, ...]
    imports: tuple[tuple[int, int], ...]

    def around(self, start: int, end: int) -> Definition | None:
        """The innermost definition that holds the bytes [start, end)."""
        found = [each for each in self.definitions if each.start <= start and end <= each.end]
        return max(found, key=lambda each: each.depth, default=None)

    def named(self, name: str) -> Definition | None:
        """The first definition with this name."""
        return next((each for each in self.definitions if each.name == name), None)


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(Language(tree_sitter_python.language()))


def outline(text: bytes) -> Outline:
    """The outline of a file. Never raises: where the file is broken, what can be read is found."""
    root = _parser().parse(text).root_node
    imports = tuple(
        (node.start_byte, node.end_byte)
        for node in root.children
        if node.type in ("import_statement", "import_from_statement", "future_import_statement")
    )
    return Outline(tuple(_definitions(root, text, "", 0, False)), imports)


def _definitions(node: Node, text: bytes, prefix: str, depth: int, in_class: bool) -> Iterator[Definition]:
    for child in node.children:
        inner = child
        if child.type == "decorated_definition":
            inner = child.child_by_field_name("definition") or child
        kind = _DEFINITIONS.get(inner.type)
        name, body = inner.child_by_field_name("name"), inner.child_by_field_name("body")
        if kind is None or name is None or body is None or not body.children:
            yield from _definitions(child, text, prefix, depth, in_class)
            continue
        own = text[name.start_byte : name.end_byte].decode("utf-8", "replace")
        colon = next(part for part in reversed(inner.children) if part.type == ":")
        first = next((part for part in body.children if part.type != "comment"), body)
        yield Definition(
            kind="class" if kind == "class" else "function",
            name=own,
            qualified_name=prefix + own,
            start=child.start_byte,
            end=child.end_byte,
            header_end=colon.end_byte,
            body_start=first.start_byte,
            docstring=_docstring(first),
            depth=depth,
            in_class=in_class,
        )
        yield from _definitions(body, text, f"{prefix}{own}.", depth + 1, kind == "class")


def _docstring(statement: Node) -> tuple[int, int] | None:
    literal = statement.children[0] if statement.type == "expression_statement" and statement.children else None
    if literal is None or literal.type not in ("string", "concatenated_string"):
        return None
    prefix = (literal.text or b"").split(b"'")[0].split(b'"')[0].lower()
    return None if b"f" in prefix or b"b" in prefix else (literal.start_byte, literal.end_byte)


def statements_around(text: bytes, start: int, end: int) -> tuple[int, int]:
    """The bytes of the whole statements of one block that hold [start, end), without white space around them.

    Where only blank lines are selected, the empty range at `start`.
    """
    if start < end and not text[start:end].strip():
        return start, start
    while start < end and text[start : start + 1].isspace():
        start += 1
    while end > start and text[end - 1 : end].isspace():
        end -= 1
    block = _block_around(_parser().parse(text).root_node, start, end)
    touched = [node for node in block.children if node.end_byte > start and node.start_byte < max(end, start + 1)]
    if not touched:
        return start, start
    start, end = touched[0].start_byte, touched[-1].end_byte
    while end > start and text[end - 1 : end].isspace():  # what cannot be read may have a line end inside
        end -= 1
    while start < end and text[start : start + 1].isspace():
        start += 1
    return start, end


def _block_around(root: Node, start: int, end: int) -> Node:
    """The smallest module or block that holds the range."""
    node: Node | None = root.descendant_for_byte_range(start, max(start, end - 1))
    while node is not None and not (
        node.type in ("module", "block") and node.start_byte <= start and end <= node.end_byte
    ):
        node = node.parent
    return node or root
