"""Read one piece of Python text into facts: what its tree binds, and where.

Knows tree-sitter nodes and Python's binding rules; the results are those of `grammars.scope_facts`. A piece that the
grammar cannot read is never interpreted through an error-recovering tree, whose shape depends on the history of
edits: then every word of it counts as bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from heapq import heappop, heappush

from tree_sitter import Node, QueryCursor

from grammars.scope_facts import (
    NEVER,
    Binding,
    BindingKind,
    Hatch,
    ParsedPiece,
    PieceFacts,
    Scope,
    ScopeKind,
    identifier,
    load_query,
    mangled,
    visible,
)
from grammars.scope_namespaces import may_write, written_key
from grammars.scope_nodes import COMPREHENSION_NAMES, evaluated_before, field, parameters_of, targets
from grammars.scope_pieces import Piece

_WORD = re.compile(rb"[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*")
_TRANSLATING = ("_", "gettext", "ngettext", "npgettext", "pgettext")
_EXPECTED = re.compile(rb"[Rr]aises\w*[ \t\r\n]*\([^)]*\b(?:NameError|UnboundLocalError)\b")


def facts_of(piece: Piece, parsed: ParsedPiece) -> PieceFacts:
    """The facts of a piece from its tree."""
    return _damaged(piece) if is_damaged(piece, parsed) else _Collector(piece, parsed).collect()


def is_damaged(piece: Piece, parsed: ParsedPiece) -> bool:
    """Whether the grammar cannot read the piece."""
    return piece.misindented or parsed.tree.root_node.has_error


def _damaged(piece: Piece) -> PieceFacts:
    """Facts of a piece that cannot be parsed: any word of it may be bound, in the body around it or as a global."""
    words = frozenset(identifier(word) for word in set(_WORD.findall(piece.text)))
    binding = [Binding(BindingKind.WORD, 0, 0)]
    root = Scope(ScopeKind.MODULE, "", -1, 0, len(piece.text), bindings=dict.fromkeys(words, binding))
    scopes, body = [root], 0
    if piece.opens_class:
        scopes.append(Scope(ScopeKind.CLASS, "", 0, len(piece.text), len(piece.text)))
        body = 1
    hatches = (Hatch("star import"),) if re.search(rb"\bimport\s*\(?\s*\*", piece.text) else ()
    return PieceFacts(tuple(scopes), (), root.bindings, hatches, body, False, words, words, words, frozenset())


class _Collector:
    """Visits the captured nodes of one tree in document order, knowing the scope that each stands in."""

    def __init__(self, piece: Piece, parsed: ParsedPiece) -> None:
        self._source = parsed.source
        self._shift = parsed.shift
        self._in_class = bool(piece.parents)
        self._root = parsed.tree.root_node
        self._end = len(parsed.source)
        self._scopes = [Scope(ScopeKind.CLASS if self._in_class else ScopeKind.MODULE, "", -1, 0, self._end)]
        self._regions: list[tuple[int, int, int]] = []
        self._ahead: list[tuple[int, int, int]] = []  # heap of (start, -end, scope): regions not reached yet
        self._stack: list[tuple[int, int]] = [(NEVER, 0)]  # (end, scope) of the regions around the current node
        self._except_patterns: set[int] = set()
        self._hatches: list[Hatch] = []
        self._attributes: set[tuple[str, str]] = set()
        self._module_bindings: dict[str, list[Binding]] = {}
        self._body = 0
        self._opens_class = piece.opens_class
        self._future = False

    def collect(self) -> PieceFacts:
        """Visit every capture, then move what `global` and `nonlocal` declare to where it belongs."""
        handlers: dict[str, Callable[[Node], None]] = {
            "function": self._function,
            "class": self._class,
            "lambda": self._lambda,
            "comprehension": self._comprehension,
            "type_alias": self._type_alias,
            "assignment": self._assignment,
            "augmented": self._augmented,
            "walrus": self._walrus,
            "for": self._for,
            "while": self._while,
            "as": self._as,
            "except": self._except,
            "import": self._import,
            "future": self._import,
            "delete": self._delete,
            "global": self._declare_global,
            "nonlocal": self._declare_nonlocal,
            "capture": self._capture,
            "hatch.star_import": self._star_import,
            "hatch.call": self._call,
            "hatch.export": self._export,
            "hatch.module": self._module,
            "expected": self._expects_name_error,
            "try": self._try,
            "with": self._with,
            "attribute_target": self._attribute,
            "install": self._install,
        }
        events: list[tuple[int, int, Callable[[Node], None], Node]] = []
        for kind, nodes in QueryCursor(load_query("scopes")).captures(self._root).items():
            if kind.startswith("_"):  # only there for a predicate of the query
                continue
            handler = handlers[kind]
            events.extend((node.start_byte, -node.end_byte, handler, node) for node in nodes)
        events.sort(key=lambda event: event[:2])
        for start, _, handler, node in events:
            self._move_to(start)
            handler(node)
        return self._facts()

    def _move_to(self, position: int) -> None:
        """Leave the regions that end before `position` and enter those that begin there."""
        while self._ahead and self._ahead[0][0] <= position:
            start, negative_end, scope = heappop(self._ahead)
            while self._stack[-1][0] <= start:
                self._stack.pop()
            self._stack.append((-negative_end, scope))
        while self._stack[-1][0] <= position:
            self._stack.pop()

    @property
    def _scope(self) -> int:
        return self._stack[-1][1]

    def _open(self, kind: ScopeKind, name: str, node: Node, parent: int) -> int:
        self._scopes.append(Scope(kind, name, parent, node.start_byte - self._shift, node.end_byte - self._shift))
        return len(self._scopes) - 1

    def _region(self, start: int, end: int, scope: int) -> None:
        """Code between two offsets, not before the current node, is evaluated in `scope`."""
        heappush(self._ahead, (start, -end, scope))
        self._regions.append((start - self._shift, end - self._shift, scope))

    def _bind(
        self,
        scope: int,
        kind: BindingKind,
        name: Node,
        effective: int,
        expires: int = NEVER,
        block: tuple[int, int] = (0, NEVER),
    ) -> None:
        text = self._text(name)
        binding = Binding(
            kind,
            name.start_byte - self._shift,
            effective - self._shift,
            expires if expires == NEVER else expires - self._shift,
            block,
        )
        self._scopes[scope].bindings.setdefault(text, []).append(binding)

    def _text(self, node: Node) -> str:
        return identifier(self._source[node.start_byte : node.end_byte])

    # Scopes.

    def _function(self, node: Node) -> None:
        name = field(node, "name")
        self._bind(self._scope, BindingKind.FUNCTION, name, node.end_byte)
        parent = self._type_parameters(node, name)
        scope = self._open(ScopeKind.FUNCTION, self._text(name), node, parent)
        parameters = field(node, "parameters")
        for parameter in parameters_of(parameters):
            self._bind(scope, BindingKind.PARAMETER, parameter, node.start_byte)
        head = node.child_by_field_name("return_type") or parameters
        self._region(head.end_byte, node.end_byte, scope)

    def _class(self, node: Node) -> None:
        name = field(node, "name")
        self._bind(self._scope, BindingKind.CLASS, name, node.end_byte)
        parent = self._type_parameters(node, name)
        scope = self._open(ScopeKind.CLASS, self._text(name), node, parent)
        self._region(field(node, "body").start_byte, node.end_byte, scope)
        if self._opens_class:
            self._body, self._opens_class = scope, False

    def _type_parameters(self, node: Node, name: Node) -> int:
        """The scope of the type parameters of a definition, or the current one where it has none (PEP 695)."""
        parameters = node.child_by_field_name("type_parameters")
        if parameters is None:
            return self._scope
        scope = self._open(ScopeKind.TYPE_PARAMETERS, self._text(name), node, self._scope)
        self._bind_type_parameters(scope, parameters)
        self._region(name.end_byte, node.end_byte, scope)
        return scope

    def _bind_type_parameters(self, scope: int, parameters: Node) -> None:
        for parameter in parameters.named_children:
            name = parameter
            while name.type != "identifier" and name.named_children:
                name = name.named_children[0]
            if name.type == "identifier":
                self._bind(scope, BindingKind.TYPE_PARAMETER, name, parameters.start_byte)

    def _lambda(self, node: Node) -> None:
        scope = self._open(ScopeKind.LAMBDA, "lambda", node, self._scope)
        parameters = node.child_by_field_name("parameters")
        for parameter in parameters_of(parameters) if parameters else ():
            self._bind(scope, BindingKind.PARAMETER, parameter, node.start_byte)
        body = field(node, "body")
        self._region(body.start_byte, body.end_byte, scope)

    def _comprehension(self, node: Node) -> None:
        outer = self._scope
        kind = ScopeKind.GENERATOR if node.type == "generator_expression" else ScopeKind.COMPREHENSION
        scope = self._open(kind, COMPREHENSION_NAMES[node.type], node, outer)
        self._region(node.start_byte, node.end_byte, scope)
        clauses = [child for child in node.named_children if child.type == "for_in_clause"]
        for clause in clauses:
            for target in targets(field(clause, "left")):
                self._bind(scope, BindingKind.LOOP, target, node.start_byte)
        first = field(clauses[0], "right")
        self._region(first.start_byte, first.end_byte, outer)

    def _type_alias(self, node: Node) -> None:
        left = field(node, "left").named_children[0]
        name = left.named_children[0] if left.type == "generic_type" else left
        if name.type != "identifier":
            return  # `type(x).y = z`, which the grammar takes for an alias
        self._bind(self._scope, BindingKind.ASSIGNMENT, name, node.end_byte)
        parent = self._scope
        if left.type == "generic_type":
            parent = self._open(ScopeKind.TYPE_PARAMETERS, self._text(name), node, parent)
            self._bind_type_parameters(parent, left.named_children[1])
            self._region(name.end_byte, node.end_byte, parent)
        scope = self._open(ScopeKind.TYPE_ALIAS, self._text(name), node, parent)
        value = field(node, "right")
        self._region(value.start_byte, value.end_byte, scope)

    # Bindings.

    def _assignment(self, node: Node) -> None:
        left = field(node, "left")
        if node.child_by_field_name("right") is None:
            if left.type == "identifier":
                self._bind(self._scope, BindingKind.DECLARATION, left, node.end_byte)
            return
        for target in targets(left):
            self._bind(self._scope, BindingKind.ASSIGNMENT, target, node.end_byte)

    def _augmented(self, node: Node) -> None:
        for target in targets(field(node, "left")):
            self._bind(self._scope, BindingKind.ASSIGNMENT, target, node.end_byte)

    def _walrus(self, node: Node) -> None:
        scope = self._scope
        while self._scopes[scope].kind in (ScopeKind.COMPREHENSION, ScopeKind.GENERATOR):
            scope = self._scopes[scope].parent
        self._bind(scope, BindingKind.ASSIGNMENT, field(node, "name"), evaluated_before(node))

    def _for(self, node: Node) -> None:
        iterable = field(node, "right")
        self._scopes[self._scope].loops.append((iterable.end_byte - self._shift, node.end_byte - self._shift))
        for target in targets(field(node, "left")):
            self._bind(self._scope, BindingKind.LOOP, target, iterable.end_byte)

    def _while(self, node: Node) -> None:
        self._scopes[self._scope].loops.append((node.start_byte - self._shift, node.end_byte - self._shift))

    def _as(self, node: Node) -> None:
        alias = node.child_by_field_name("alias")
        if alias is None or node.id in self._except_patterns:
            return
        for target in targets(alias):
            self._bind(self._scope, BindingKind.ASSIGNMENT, target, node.end_byte)

    def _except(self, node: Node) -> None:
        pattern = node.child_by_field_name("value")
        if pattern is None or pattern.type != "as_pattern":
            return
        self._except_patterns.add(pattern.id)
        for target in targets(field(pattern, "alias")):
            self._bind(self._scope, BindingKind.EXCEPT, target, pattern.end_byte, expires=node.end_byte)

    def _import(self, node: Node) -> None:
        for name in node.children_by_field_name("name"):
            bound = name.child_by_field_name("alias") or name.named_children[0]
            self._bind(self._scope, BindingKind.IMPORT, bound, node.end_byte)
            if node.type == "future_import_statement" and b"annotations" in (name.text or b""):
                self._future = True

    def _delete(self, node: Node) -> None:
        block = node.parent
        span = (0, NEVER)
        if block is not None and block.parent is not None and not (self._shift and block.parent.start_byte == 0):
            span = (block.start_byte - self._shift, block.end_byte - self._shift)
        for target in targets(node.named_children[0]):
            self._bind(self._scope, BindingKind.DELETE, target, node.end_byte, block=span)

    def _declare_global(self, node: Node) -> None:
        self._scopes[self._scope].globals.update(self._text(name) for name in node.named_children)

    def _declare_nonlocal(self, node: Node) -> None:
        self._scopes[self._scope].nonlocals.update(self._text(name) for name in node.named_children)

    def _capture(self, node: Node) -> None:
        end = node.end_byte
        while node.type != "identifier":
            node = node.named_children[0]
        if self._text(node) != "_":
            self._bind(self._scope, BindingKind.CAPTURE, node, end)

    def _attribute(self, node: Node) -> None:
        owner = field(node, "object")
        if owner.type == "identifier":
            attribute = field(node, "attribute")
            self._attributes.add((self._text(owner), self._text(attribute)))
            if owner.text == b"builtins":
                self._bind_global(self._text(attribute), attribute)

    def _install(self, node: Node) -> None:
        """`install` of the `gettext` module, or of its translations, which makes builtins of its functions."""
        for name in _TRANSLATING:
            self._bind_global(name, node)

    def _bind_global(self, name: str, node: Node) -> None:
        """Bind `name` in the module, by what is written in `node`."""
        binding = Binding(BindingKind.ASSIGNMENT, node.start_byte - self._shift, node.end_byte - self._shift)
        self._module_bindings.setdefault(name, []).append(binding)

    # Where names may come from nowhere.

    def _star_import(self, node: Node) -> None:
        self._hatches.append(Hatch("star import"))

    def _export(self, node: Node) -> None:
        self._hatches.append(Hatch(f"{self._text(node)}()"))

    def _module(self, node: Node) -> None:
        self._hatches.append(Hatch("sys.modules[__name__]"))

    def _call(self, node: Node) -> None:
        name = self._text(node)
        call = node.parent
        arguments = call.child_by_field_name("arguments") if call else None
        if call is None or arguments is None:
            return
        count = arguments.named_child_count
        if name == "globals":
            unknowable = not self._writes_key(call) and may_write(call)
        elif name == "exec":
            unknowable = count < 2
        else:  # `locals()` and `vars()` are the namespace itself only outside of functions
            kind = self._scopes[self._scope].kind
            unknowable = kind in (ScopeKind.MODULE, ScopeKind.CLASS) and count == 0 and may_write(call)
            if kind is ScopeKind.CLASS and unknowable:  # methods do not see what the class body gains
                start, end = self._scopes[self._scope].start, self._scopes[self._scope].end
                self._hatches.append(Hatch(f"{name}()", start, end))
                return
        if unknowable:
            self._hatches.append(Hatch(f"{name}()"))

    def _writes_key(self, call: Node) -> bool:
        """Whether the call is that of `globals()["name"] = value`, which binds the name that it says."""
        key = written_key(call)
        if key is not None:
            self._bind_global(identifier(self._source[key.start_byte + 1 : key.end_byte - 1]), key)
        return key is not None

    def _try(self, node: Node) -> None:
        for clause in node.named_children:
            if clause.type != "except_clause":
                continue
            caught = clause.child_by_field_name("value")
            if caught is None or b"NameError" in self._source[caught.start_byte : caught.end_byte]:
                body = field(node, "body")
                start, end = body.start_byte - self._shift, body.end_byte - self._shift
                self._hatches.append(Hatch("except NameError", start, end))
                if caught is not None:
                    self._expects_name_error(caught)

    def _expects_name_error(self, node: Node) -> None:
        """A function that expects such an error may define in itself what raises it."""
        scope = self._scopes[self._scope]
        if scope.kind is ScopeKind.FUNCTION:
            self._hatches.append(Hatch("expected NameError", scope.start, scope.end))

    def _with(self, clause: Node) -> None:
        """A test may expect that a name does not exist: `with pytest.raises(NameError):`."""
        body = clause.parent.child_by_field_name("body") if clause.parent is not None else None
        if body is not None and _EXPECTED.search(self._source, clause.start_byte, clause.end_byte):
            start, end = body.start_byte - self._shift, body.end_byte - self._shift
            self._hatches.append(Hatch("expected NameError", start, end))

    # The result.

    def _facts(self) -> PieceFacts:
        module_bindings = self._module_bindings
        for index, scope in enumerate(self._scopes):
            if index or self._in_class:
                for name in scope.globals & scope.bindings.keys():
                    bindings = scope.bindings.pop(name)
                    for spelled in {name, mangled(name, self._class_around(index))}:
                        module_bindings.setdefault(spelled, []).extend(bindings)
            for name in scope.nonlocals & scope.bindings.keys():
                bindings = scope.bindings.pop(name)
                owner = self._owner(scope.parent, name)
                if owner is not None:
                    owner.bindings[name].extend(bindings)
        root = self._scopes[0].bindings
        after = frozenset(name for name in root if visible(self._scopes[0], name, self._end))
        deleted = (
            name
            for name, found in root.items()
            if any(b.block[1] == NEVER and not b.binds and b.kind is BindingKind.DELETE for b in found)
        )
        return PieceFacts(
            scopes=tuple(self._scopes),
            regions=tuple(sorted(self._regions, key=lambda region: (region[0], -region[1]))),
            module_bindings=module_bindings,
            hatches=tuple(self._hatches),
            body=self._body,
            future_annotations=self._future,
            bound=frozenset(name for name, found in root.items() if any(b.binds for b in found)),
            module_bound=frozenset(name for name, found in module_bindings.items() if any(b.binds for b in found)),
            bound_after=after,
            deleted_after=frozenset(deleted) - after,
            attributes=frozenset(self._attributes),
        )

    def _class_around(self, index: int) -> str:
        """The name of the class around scope `index`; empty where the piece has none."""
        while index > 0 and self._scopes[index].kind is not ScopeKind.CLASS:
            index = self._scopes[index].parent
        return self._scopes[index].name

    def _owner(self, index: int, name: str) -> Scope | None:
        """The function whose variable a `nonlocal` declaration in a scope below `index` means."""
        while index >= 0:
            scope = self._scopes[index]
            if scope.kind is not ScopeKind.CLASS and name in scope.bindings:
                return scope
            index = scope.parent
        return None
