"""What tree-sitter's nodes of Python hold: fields, the names that targets and parameters bind, the order of evaluation.

Knows the shapes of nodes in trees without errors. Must not know scopes.
"""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from grammars.scope_position import TARGET_CONTAINERS

COMPREHENSION_NAMES = {
    "list_comprehension": "listcomp",
    "set_comprehension": "setcomp",
    "dictionary_comprehension": "dictcomp",
    "generator_expression": "genexpr",
}


def field(node: Node, name: str) -> Node:
    """A field that the grammar guarantees in a tree without errors."""
    child = node.child_by_field_name(name)
    if child is None:
        raise ValueError(f"{node.type} without {name}")
    return child


def targets(node: Node) -> Iterator[Node]:
    """The identifiers that an assignment to `node` binds (none for attributes and subscripts)."""
    if node.type == "identifier":
        yield node
    elif node.type in TARGET_CONTAINERS:
        for child in node.named_children:
            yield from targets(child)


def parameters_of(node: Node) -> Iterator[Node]:
    """The names of the parameters in a `parameters` or `lambda_parameters` node."""
    for parameter in node.named_children:
        name: Node | None = parameter
        if parameter.type in ("default_parameter", "typed_default_parameter"):
            name = parameter.child_by_field_name("name")
        elif parameter.type in ("typed_parameter", "list_splat_pattern", "dictionary_splat_pattern"):
            name = parameter.named_children[0]
            if name.type in ("list_splat_pattern", "dictionary_splat_pattern"):
                name = name.named_children[0]
        if name is not None and name.type == "identifier":
            yield name


def evaluated_before(walrus: Node) -> int:
    """From where on code may run after `walrus`: what stands before `if` in a conditional expression, and the element
    of a comprehension, are evaluated after what stands behind them."""
    effective, node = walrus.end_byte, walrus
    while (parent := node.parent) is not None and not parent.type.endswith(("_statement", "block", "lambda")):
        is_condition = parent.type == "conditional_expression" and parent.named_children[1:2] == [node]
        if is_condition or parent.type in COMPREHENSION_NAMES:
            effective = parent.start_byte
        node = parent
    return effective
