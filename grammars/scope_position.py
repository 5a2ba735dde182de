"""What kind of position an offset in Python code is: may a name stand here, and is it read, bound or neither?

Knows tree-sitter nodes around one leaf. Must not know scopes or names.
"""

from __future__ import annotations

import keyword
import re
from enum import StrEnum

from tree_sitter import Node

PLACEHOLDER = b"draftwood_cursor_"
"""The name that stands for what is about to be typed at the cursor."""

_WORD_AT = re.compile(rb"[0-9A-Za-z_\x80-\xff]+")
_KEYWORDS = frozenset(word.encode() for word in keyword.kwlist)
_STRING_LEAVES = frozenset({"string_start", "string_content", "string_end", "escape_sequence", "string"})
TARGET_CONTAINERS = frozenset(
    [
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "tuple",
        "list",
        "expression_list",
        "list_splat",
        "parenthesized_expression",
        "as_pattern_target",
    ]
)
"""Kinds of nodes between a statement and the names that it binds."""
_STORES = {
    "assignment": "left",
    "augmented_assignment": "left",
    "named_expression": "name",
    "for_statement": "left",
    "for_in_clause": "left",
    "as_pattern": "alias",
    "type_alias_statement": "left",
}


class PositionKind(StrEnum):
    """What may stand at a position."""

    LOAD = "load"
    ARGUMENT = "argument"  # a load, or the name of a keyword argument
    STATEMENT = "statement"  # the first word of a statement: a load, a new target or a keyword
    ANNOTATION = "annotation"  # a load
    DECORATOR = "decorator"  # a load
    STORE = "store"
    DEFINITION = "definition"
    PARAMETER = "parameter"
    TYPE_PARAMETER = "type parameter"
    ATTRIBUTE = "attribute"
    KEYWORD_ARGUMENT = "keyword argument"
    IMPORT = "import"
    DECLARATION = "declaration"  # in `global` and `nonlocal`
    PATTERN = "pattern"  # of a `case`: a capture or the name of a class
    STRING = "string"
    COMMENT = "comment"
    NUMBER = "number"
    OTHER = "other"  # no name can stand here: an operator or a keyword is due
    UNKNOWN = "unknown"  # the code cannot be read

    @property
    def reads_a_name(self) -> bool:
        """Whether a name here can only be one that exists."""
        return self in (PositionKind.LOAD, PositionKind.ANNOTATION, PositionKind.DECORATOR)


def is_word_byte(byte: int) -> bool:
    """Whether a byte may be part of an identifier (all of UTF-8 beyond ASCII counts)."""
    return byte >= 0x80 or byte == 0x5F or 0x30 <= byte <= 0x39 or 0x41 <= (byte & 0xDF) <= 0x5A


def placeholder_for(text: bytes, offset: int) -> bytes:
    """What to insert at `offset` so that a name stands there; empty where the name would join a number.

    In an identifier the placeholder becomes part of it; from a keyword that follows it is kept apart.
    """
    start = offset
    while start and is_word_byte(text[start - 1]):
        start -= 1
    if start < offset and text[start : start + 1].isdigit():
        return b""
    following = _WORD_AT.match(text, offset)
    apart = following is not None and following[0] in _KEYWORDS
    return PLACEHOLDER + (b" " if apart else b"")


def classify(leaf: Node) -> PositionKind:
    """The kind of position of a leaf of a tree without errors."""
    if leaf.type == "comment":
        return PositionKind.COMMENT
    if leaf.type in _STRING_LEAVES:
        return PositionKind.ANNOTATION if _is_forward_reference(leaf) else PositionKind.STRING
    if leaf.type in ("integer", "float"):
        return PositionKind.NUMBER
    parent = leaf.parent
    if leaf.type != "identifier" or parent is None:
        return PositionKind.OTHER
    return _of_identifier(leaf, parent)


def reads_name(leaf: Node) -> bool:
    """Whether a leaf of finished code is an identifier that is read, and nothing else: no target, no keyword."""
    if leaf.type != "identifier":
        return False
    kind = classify(leaf)
    return (
        kind.reads_a_name or kind is PositionKind.ARGUMENT or (kind is PositionKind.STATEMENT and not is_target(leaf))
    )


def is_target(leaf: Node) -> bool:
    """Whether an assignment of any form binds an identifier."""
    return _of_target(leaf) not in (None, PositionKind.LOAD)


def _of_identifier(leaf: Node, parent: Node) -> PositionKind:
    kind = parent.type
    if kind == "attribute" and _is_field(parent, "attribute", leaf):
        return PositionKind.ATTRIBUTE
    if kind == "keyword_argument" and _is_field(parent, "name", leaf):
        return PositionKind.KEYWORD_ARGUMENT
    if kind in ("function_definition", "class_definition") and _is_field(parent, "name", leaf):
        return PositionKind.DEFINITION
    if kind in ("global_statement", "nonlocal_statement"):
        return PositionKind.DECLARATION
    if kind in ("dotted_name", "aliased_import", "keyword_pattern", "splat_pattern") or (
        kind == "as_pattern" and parent.child_by_field_name("alias") is None
    ):
        return _of_dotted_name(leaf)
    if _is_parameter(leaf, parent):
        return PositionKind.PARAMETER
    store = _of_target(leaf)
    if store is not None:
        return store
    return _of_load(leaf, parent)


def _of_dotted_name(leaf: Node) -> PositionKind:
    """Names in imports and in patterns."""
    node: Node | None = leaf
    while node is not None:
        if node.type.startswith(("import_", "future_import")):
            return PositionKind.IMPORT
        if node.type in ("case_pattern", "case_clause", "union_pattern", "class_pattern"):
            first = leaf.prev_sibling is None or leaf.parent is None or leaf.parent.type != "dotted_name"
            return PositionKind.PATTERN if first else PositionKind.ATTRIBUTE
        node = node.parent
    return PositionKind.LOAD


def _is_parameter(leaf: Node, parent: Node) -> bool:
    node = leaf
    if parent.type in ("list_splat_pattern", "dictionary_splat_pattern"):
        node, outer = parent, parent.parent
        if outer is None:
            return False
        parent = outer
    if parent.type in ("default_parameter", "typed_default_parameter"):
        return _is_field(parent, "name", node)
    if parent.type == "typed_parameter":
        return parent.named_child(0) == node
    return parent.type in ("parameters", "lambda_parameters")


def _of_target(leaf: Node) -> PositionKind | None:
    """STORE where an assignment of any form binds the leaf, LOAD where `del` unbinds it."""
    node = leaf
    while (parent := node.parent) is not None:
        if parent.type == "delete_statement":
            return PositionKind.LOAD
        if parent.type in _STORES and _is_field(parent, _STORES[parent.type], node):
            statement = parent.type in ("assignment", "augmented_assignment") and _begins_statement(leaf)
            return PositionKind.STATEMENT if statement else PositionKind.STORE
        if parent.type not in TARGET_CONTAINERS:
            return None
        node = parent
    return None


def _of_load(leaf: Node, parent: Node) -> PositionKind:
    if parent.type == "argument_list":
        return PositionKind.ARGUMENT
    if parent.type == "decorator":
        return PositionKind.DECORATOR
    node: Node | None = parent
    while node is not None:
        if node.type == "type":
            outer = node.parent
            if outer is not None and outer.type == "type_parameter" and _declares(outer, leaf):
                return PositionKind.TYPE_PARAMETER
            if outer is not None and outer.type == "type_alias_statement" and _is_field(outer, "left", node):
                return PositionKind.STORE
            return PositionKind.ANNOTATION
        if node.type.endswith("_statement") or node.type in ("block", "module", "lambda"):
            break
        node = node.parent
    return PositionKind.STATEMENT if _begins_statement(leaf) else PositionKind.LOAD


def _declares(parameters: Node, leaf: Node) -> bool:
    """Whether `leaf` is a name that the type parameters of a definition declare, and not a bound or an argument."""
    owner = parameters.parent
    if owner is not None and owner.type == "generic_type":
        left = owner.parent
        alias = left.parent if left is not None else None
        if left is None or alias is None or alias.type != "type_alias_statement" or not _is_field(alias, "left", left):
            return False
    elif owner is None or not _is_field(owner, "type_parameters", parameters):
        return False
    node = leaf
    while node.parent is not None and node.parent.type != "type_parameter":
        if node.parent.start_byte != node.start_byte and node.parent.type != "splat_type":
            return False
        node = node.parent
    return True


def _begins_statement(leaf: Node) -> bool:
    node: Node | None = leaf
    while node is not None and node.start_byte == leaf.start_byte:
        if node.type == "expression_statement":
            return True
        node = node.parent
    return False


def _is_field(parent: Node, name: str, child: Node) -> bool:
    return parent.child_by_field_name(name) == child


def _is_forward_reference(leaf: Node) -> bool:
    """Whether a string leaf is (part of) an annotation that is written as a string."""
    node: Node | None = leaf
    while node is not None and node.type != "type":
        parent = node.parent
        if parent is None or parent.type in ("interpolation", "block", "module", "call"):
            return False
        if parent.type in ("subscript", "generic_type") and not _holds_type(parent, node):
            return False
        node = parent
    while (
        node is not None and node.parent is not None and node.parent.type in ("type", "type_parameter", "generic_type")
    ):
        if node.parent.type == "generic_type" and not _holds_type(node.parent, node):
            return False
        if node.parent.type == "type_parameter" and not _is_type_argument(node.parent, node):
            return False
        node = node.parent
    return node is not None


def _holds_type(generic: Node, argument: Node) -> bool:
    """Whether an argument of `X[…]` is itself a type: not for Literal, and only the first one of Annotated."""
    head = generic.named_child(0)
    name = (head.text or b"").rpartition(b".")[2] if head else b""
    if name == b"Annotated":
        return argument == generic.named_child(1)
    return name != b"Literal"


def _is_type_argument(parameters: Node, argument: Node) -> bool:
    generic = parameters.parent
    head = generic.named_child(0) if generic is not None and generic.type == "generic_type" else None
    name = (head.text or b"").rpartition(b".")[2] if head else b""
    return name != b"Annotated" or argument == parameters.named_child(0)
