"""What is in scope but out of sight, as text for a prompt: signatures, fields and imports outside of a window.

Knows the scope index and tree-sitter. Must not know tokens (a caller says what text costs) or prompts. The choice
depends on whole lines only, and the text is in the order of the document, so that it stays the same while a line is
being typed and what a model has read of it can be kept.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from grammars.scope_index import Entry, ScopeIndex, statement_of
from grammars.scope_modules import FindModule, no_modules

_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
_COMMENT = re.compile(r"""("[^"\n]*"|'[^'\n]*')|#[^\n]*""")
_LONGEST_VALUE = 60


@dataclass(frozen=True, slots=True)
class Signature:
    """What one piece declares.

    Attributes:
        names: the names it binds.
        text: its declaration without its body, on the column it has in the document.
        entry: number of the piece.
        owner: number of the class header whose body it is in, None at module level.
        kind: "function", "class", "field", "import" or "value".
    """

    names: tuple[str, ...]
    text: str
    entry: int
    owner: int | None
    kind: str


def signatures_in_scope(
    index: ScopeIndex,
    offset: int,
    window: tuple[int, int],
    budget: int,
    measure: Callable[[str], int] = len,
    find_module: FindModule = no_modules,
) -> str:
    """Declarations that code at `offset` can use and that are outside of `window`, as Python with `...` for bodies.

    Args:
        index: the document.
        offset: the cursor, a byte offset.
        window: the bytes [start, end) that a reader sees anyway.
        budget: how much the text may cost.
        measure: what a line costs; characters unless told (pass a token counter).
        find_module: finds modules of the workspace; what is imported from them is shown too.

    Returns:
        Lines in the order of the document, what comes from other files first; "" where nothing fits.
    """
    mentioned = _mentioned(index, offset, window)
    around = index.headers_of(index.entry_at(offset))
    found = [s for s in _signatures(index) if _outside(index, s.entry, window)]
    ranked = sorted(found, key=lambda s: _rank(s, index, offset, mentioned, around))
    chosen: set[int] = set()
    foreign = _imported(index, mentioned, find_module, budget, measure)
    left = budget - sum(measure(line + "\n") for line in foreign)
    by_entry = {signature.entry: signature for signature in found}
    for signature in ranked:
        wanted = [signature.entry]
        if signature.owner is not None and signature.owner in by_entry and signature.owner not in chosen:
            wanted.append(signature.owner)
        cost = sum(measure(by_entry[entry].text + "\n") for entry in wanted if entry not in chosen)
        if signature.entry not in chosen and cost <= left:
            chosen.update(wanted)
            left -= cost
    return "".join(line + "\n" for line in [*foreign, *(by_entry[entry].text for entry in sorted(chosen))])


def _mentioned(index: ScopeIndex, offset: int, window: tuple[int, int]) -> frozenset[str]:
    """The words of the window, without those of the line that is being typed."""
    line_start = index.text.rfind(b"\n", 0, offset) + 1
    line_end = index.text.find(b"\n", offset)
    after = index.text[line_end if line_end >= 0 else len(index.text) : window[1]]
    words = _WORD.findall(index.text[window[0] : line_start]) + _WORD.findall(after)
    return frozenset(word.decode() for word in words)


def _outside(index: ScopeIndex, entry: int, window: tuple[int, int]) -> bool:
    start = index.starts[entry]
    return start + len(index.entries[entry].piece.text) <= window[0] or start >= window[1]


def _rank(
    signature: Signature, index: ScopeIndex, offset: int, mentioned: frozenset[str], around: list[int]
) -> tuple[int, int]:
    """Smaller is shown first: what the window mentions, then the class around the cursor, then what is near."""
    near = abs(index.starts[signature.entry] - offset)
    used = not mentioned.isdisjoint(signature.names)
    own = signature.owner is not None and signature.owner in around
    if signature.owner is not None and not own:
        header = index.entries[signature.owner]
        shown = not mentioned.isdisjoint(header.facts.bound)
        return (1 if used and shown else 3 if shown else 6), near
    order = {"function": 4, "class": 4, "field": 4, "value": 5, "import": 5}[signature.kind]
    return (0 if used else 2 if own else order), near


def _signatures(index: ScopeIndex) -> Iterator[Signature]:
    for number, entry in enumerate(index.entries):
        if entry.damaged:
            continue
        headers = index.headers_of(number) if entry.piece.parents else []
        names = tuple(sorted(entry.facts.bound))
        for kind, text in _declarations(entry):
            yield Signature(names, text, number, headers[-1] if headers else None, kind)
            break


def _declarations(entry: Entry) -> Iterator[tuple[str, str]]:
    """(kind, text) of the statement that a piece is, if it declares something that can be shown."""
    node = statement_of(entry)
    if node is None:
        return
    source, indent = entry.parsed.source, " " * entry.piece.column
    definition = node.child_by_field_name("definition") if node.type == "decorated_definition" else node
    if definition is None:
        return
    body = definition.child_by_field_name("body")
    if definition.type in ("function_definition", "class_definition") and body is not None:
        kind = "class" if definition.type == "class_definition" else "function"
        end = " ..." if kind == "function" or not entry.piece.opens_class else ""
        decorators = [_joined(source, c.start_byte, c.end_byte) for c in node.named_children if c.type == "decorator"]
        lines = [*decorators, _joined(source, definition.start_byte, body.start_byte) + end]
        yield kind, "\n".join(indent + line for line in lines)
    elif node.type in ("import_statement", "import_from_statement"):
        yield "import", indent + _joined(source, node.start_byte, node.end_byte)
    elif node.type == "expression_statement" and node.named_children and node.named_children[0].type == "assignment":
        text = _assignment(source, node.named_children[0])
        if text:
            yield ("field" if entry.piece.parents else "value"), indent + text


def _assignment(source: bytes, node: Node) -> str:
    """`name: type = value`, a long value left out; "" where the target is no name."""
    left, value = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or left.type != "identifier":
        return ""
    head = _joined(source, node.start_byte, value.start_byte if value is not None else node.end_byte)
    if value is None:
        return head
    text = _joined(source, value.start_byte, value.end_byte)
    return f"{head} {text if len(text) <= _LONGEST_VALUE else '...'}"


def _joined(source: bytes, start: int, end: int) -> str:
    """Source on one line, without comments."""
    text = source[start:end].decode("utf-8", "replace")
    text = " ".join(_COMMENT.sub(lambda match: match[1] or "", text).split())
    return re.sub(r"(?<=[(\[{]) | (?=[)\]}])|,(?= ?[)\]}])", "", text)


def _imported(
    index: ScopeIndex,
    mentioned: frozenset[str],
    find_module: FindModule,
    budget: int,
    measure: Callable[[str], int],
) -> list[str]:
    """Declarations from other files of the names that are imported here and mentioned in the window."""
    lines: list[str] = []
    for entry in index.entries:
        node = statement_of(entry) if not entry.damaged else None
        if node is None or node.type != "import_from_statement":
            continue
        module = node.child_by_field_name("module_name")
        wanted = entry.facts.bound & mentioned
        found = find_module((module.text or b"").decode("utf-8", "replace")) if module is not None and wanted else None
        if found is None:
            continue
        other = found.index
        for signature in _signatures(other):
            if signature.owner is None and not wanted.isdisjoint(signature.names):
                lines += signature.text.split("\n")
                lines += [s.text for s in _signatures(other) if s.owner == signature.entry and s.kind != "value"]
    kept: list[str] = []
    for line in lines:
        if sum(measure(each + "\n") for each in [*kept, line]) > budget // 2:
            break  # at most half of the budget goes to other files
        kept.append(line)
    return kept
