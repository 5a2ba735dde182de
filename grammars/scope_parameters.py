"""Which keyword arguments a call takes, where the document says it: of its own functions, and of builtins.

Only complete answers are given: a function that is defined twice, decorated or takes `**` may take anything. Knows
scopes and the trees of definitions; must not know tokens.
"""

from __future__ import annotations

import builtins
import inspect

from tree_sitter import Node

from grammars.scope_facts import BindingKind
from grammars.scope_frames import Frame

_NAMED = frozenset({"default_parameter", "typed_default_parameter"})


class KnownParameters:
    """The parameters of the functions that can be called at a position, looked up when they are asked for.

    Args:
        frames: the scopes around the position, innermost first (`ScopeView.frames`).
    """

    def __init__(self, frames: tuple[Frame, ...]) -> None:
        self._frames = frames

    def of(self, name: str) -> frozenset[str] | None:
        """The keyword arguments of the function that `name` stands for, None where they cannot be known."""
        for frame in self._frames:
            if name in frame.local_names:
                return _defined_in(frame, name)
        return _of_builtin(name)


def _defined_in(frame: Frame, name: str) -> frozenset[str] | None:
    """The parameters of the one `def` that binds a name in a scope."""
    bindings = [(binding, offset) for bound, binding, offset in frame.all_bindings() if bound == name]
    if len(bindings) != 1 or bindings[0][0].kind is not BindingKind.FUNCTION:
        return None
    index, offset = frame.index, bindings[0][1]
    number = index.entry_at(offset)
    entry = index.entries[number]
    if entry.damaged:
        return None
    at = offset - index.starts[number] + entry.parsed.shift
    node = entry.parsed.tree.root_node.descendant_for_byte_range(at, at + 1)
    while node is not None and node.type != "function_definition":
        node = node.parent
    decorated = node is not None and node.parent is not None and node.parent.type == "decorated_definition"
    return _parameters(node) if node is not None and not decorated else None


def _parameters(definition: Node) -> frozenset[str] | None:
    """The names of a definition's parameters, None where it takes any."""
    found: set[str] = set()
    parameters = definition.child_by_field_name("parameters")
    for parameter in parameters.named_children if parameters is not None else ():
        name = parameter
        if parameter.type in _NAMED:
            name = parameter.child_by_field_name("name") or parameter
        elif parameter.type == "typed_parameter":
            name = parameter.named_children[0]
        if name.type == "dictionary_splat_pattern":
            return None
        if name.type == "identifier":
            found.add((name.text or b"").decode("utf-8", "replace"))
    return frozenset(found)


def _of_builtin(name: str) -> frozenset[str] | None:
    try:
        signature = inspect.signature(getattr(builtins, name))
    except (AttributeError, TypeError, ValueError):
        return None  # no builtin, or one that does not say what it takes
    parameters = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return frozenset(parameter.name for parameter in parameters if parameter.kind in by_name)
