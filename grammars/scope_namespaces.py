"""What is done with a namespace that a program asks for by `globals()`, `locals()` or `vars()`.

Knows the uses of such a call in a tree without errors. Must not know scopes.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from grammars.scope_nodes import field

_NAME = re.compile(rb"""(['"])[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*\1""")
_READERS = frozenset(
    b"__import__ eval dict list set sorted len iter id print repr frozenset tuple".split()
    + b"get_type_hints FunctionType timeit repeat Timer getline getlines lazycache updatecache".split()
    + b"assertEqual assertIn assertIs assertIsNot assertNotIn".split()
)
"""Functions of the language, of the standard library and of its tests that read the namespace they are given."""
_READING_USES = frozenset(["comparison_operator", "for_in_clause", "for_statement", "list_splat", "binary_operator"])
_PARTS = ["call", "argument_list", "keyword_argument", "attribute", "subscript", "list", "tuple"]
_CONDITIONS = ["comparison_operator", "not_operator", "boolean_operator", "parenthesized_expression", "if_statement"]
_READING_ITEM_USES = frozenset([*_PARTS, *_CONDITIONS, "binary_operator", "return_statement", "delete_statement"])


def may_write(call: Node) -> bool:
    """Whether names may be bound through the namespace that `call` returns: not where it is only read."""
    user = call.parent
    if user is None:
        return True
    if user.type == "attribute":
        return field(user, "attribute").text in (b"update", b"setdefault", b"__setitem__")
    if user.type == "subscript":
        outer = user.parent
        return outer is not None and outer.type not in _READING_ITEM_USES and outer.child_by_field_name("right") != user
    arguments = user.parent if user.type == "keyword_argument" else user
    if arguments is not None and arguments.type == "argument_list" and arguments.parent is not None:
        function = arguments.parent.child_by_field_name("function")
        return function is None or (function.text or b"").rpartition(b".")[2].strip() not in _READERS
    return user.type not in _READING_USES


def written_key(call: Node) -> Node | None:
    """The string in `globals()["name"] = value`, where `call` is that call and the string could be a name."""
    item = call.parent
    assignment = item.parent if item is not None else None
    if item is None or item.type != "subscript" or assignment is None or assignment.type != "assignment":
        return None
    key = field(item, "subscript")
    is_target = assignment.child_by_field_name("left") == item
    return key if is_target and _NAME.fullmatch(key.text or b"") else None
