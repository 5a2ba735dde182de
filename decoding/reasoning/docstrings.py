"""Docstrings whose structure is ours and whose words are the model's.

Knows the syntax of functions and the three usual styles. Must not know a model. Because the parameter list is taken
from the signature and the literal is written here, a docstring is valid and complete whatever the words are.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from decoding.reasoning.pieces import applied
from decoding.reasoning.requests import DocstringStyle, Replacement
from grammars.definitions import Definition

Style = Literal["google", "numpy", "sphinx"]
SUMMARY, RESULT = "summary", "returns"

_WIDTH = 88
_GOOGLE = re.compile(r"^\s*(Args|Arguments|Returns|Raises|Yields):\s*$", re.MULTILINE)
_NUMPY = re.compile(r"^\s*(Parameters|Returns|Raises|Yields)\n\s*-{4,}\s*$", re.MULTILINE)
_SPHINX = re.compile(r"^\s*:(param|returns?|raises|rtype)\b", re.MULTILINE)
_SENTENCE_END = (".", "!", "?", "…", ":")
_SENTENCE = re.compile(r".+?[.!?…](?=\s)")
_CLAUSE = re.compile(
    r"[,;:–—](?=\s)|\s(?=(?:and|or|which|that|by|with|using|so|when|where|if|for|from|into|to|while|based|as)\s)"
)
_SHORTEST_SUMMARY = 20
_DANGLING = re.compile(
    r"(?:[\s,;:–—]+(?:a|an|and|are|as|at|by|for|from|if|in|into|is|it|of|on|or|so|that|the|their|to|when|which|while"
    r"|with))*[\s,;:–—]*$",
    re.IGNORECASE,
)
"""Words that end no sentence."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a docstring has to speak of.

    Attributes:
        parameters: (name as it is documented, annotation or "") in the order of the signature, without `self`.
        result: "returns", "yields" or None.
        annotation: of the result, "" where there is none.
        exceptions: what the body raises by name.
    """

    parameters: tuple[tuple[str, str], ...] = ()
    result: Literal["returns", "yields"] | None = None
    annotation: str = ""
    exceptions: tuple[str, ...] = ()

    @property
    def slots(self) -> tuple[str, ...]:
        """What the model is asked to describe, in order: the summary, each parameter, the result, each exception."""
        result = (RESULT,) if self.result else ()
        return (SUMMARY, *(name for name, _ in self.parameters), *result, *self.exceptions)


def shape_of(code: str, *, method: bool) -> Shape | None:
    """The shape for a function or class at column 0; None where `code` does not parse as one."""
    try:
        node = ast.parse(code).body[0]
    except (SyntaxError, ValueError, IndexError):
        return None
    if isinstance(node, ast.ClassDef):
        return Shape()
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in node.decorator_list)
    own = list(_own_nodes(node))
    yields = any(isinstance(each, ast.Yield | ast.YieldFrom) for each in own)
    returns = any(isinstance(each, ast.Return) and not _is_none(each.value) for each in own)
    return Shape(
        parameters=tuple(_parameters(node.args, bound=method and not static)),
        result="yields" if yields else "returns" if returns else None,
        annotation=ast.unparse(node.returns) if node.returns else "",
        exceptions=tuple(dict.fromkeys(name for each in own if (name := _raised(each)))),
    )


def _parameters(arguments: ast.arguments, *, bound: bool) -> Iterator[tuple[str, str]]:
    plain = [*arguments.posonlyargs, *arguments.args][1 if bound else 0 :]
    starred = [("*", arguments.vararg)] if arguments.vararg else []
    starred_twice = [("**", arguments.kwarg)] if arguments.kwarg else []
    for stars, each in [
        *(("", argument) for argument in plain),
        *starred,
        *(("", argument) for argument in arguments.kwonlyargs),
        *starred_twice,
    ]:
        yield stars + each.arg, ast.unparse(each.annotation) if each.annotation else ""


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a function's body that are not those of a function or class inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            yield child
            yield from _own_nodes(child)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _raised(node: ast.AST) -> str | None:
    if not isinstance(node, ast.Raise) or node.exc is None:
        return None
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    return (
        ast.unparse(raised) if isinstance(raised, ast.Name | ast.Attribute) and ast.unparse(raised)[0] != "_" else None
    )


def style_of(text: str) -> Style:
    """The style that most docstrings of a file keep to; Google's where none says."""
    counts: dict[Style, int] = {
        "google": len(_GOOGLE.findall(text)),
        "numpy": len(_NUMPY.findall(text)),
        "sphinx": len(_SPHINX.findall(text)),
    }
    return max(counts, key=lambda style: counts[style])


def chosen_style(style: DocstringStyle, text: str) -> Style:
    """The style asked for, or the file's own."""
    return style_of(text) if style == "auto" else style


def cleaned(words: str) -> str:
    """One slot's words as a sentence that can stand in a docstring: one line, no quotes that end it."""
    printable = "".join(character if character.isprintable() else " " for character in words)
    text = " ".join(printable.replace('"""', "'''").split()).strip(" -–*#:").strip()
    text = text.removesuffix('"').strip() if text.count('"') % 2 else text
    if not text:
        return ""
    text = text[0].upper() + text[1:]
    return text if text.endswith(_SENTENCE_END) else text + "."


def summary_line(words: str, room: int) -> tuple[str, str]:
    """(one sentence of at most `room` characters, the sentences behind it): PEP 257 wants the summary on one line.

    A sentence that is longer ends at its last clause that fits, else at its last word.
    """
    text = cleaned(words)
    if len(text) <= room:
        return text, ""
    first = _SENTENCE.match(text)
    if first and len(first[0]) <= room:
        return first[0], text[first.end() :].strip()
    clauses = [each.start() for each in _CLAUSE.finditer(text) if _SHORTEST_SUMMARY <= each.start() < room]
    kept = text[: clauses[-1]] if clauses else text[:room].rpartition(" ")[0]
    return cleaned(_DANGLING.sub("", kept) or text[: room - 1])[:room], text[first.end() :].strip() if first else ""


def written(shape: Shape, words: Mapping[str, str], style: Style, indentation: str) -> str:
    """The docstring's text without quotes, its lines after the first in `indentation`."""
    width = max(40, _WIDTH - len(indentation))
    summary, rest = summary_line(words.get(SUMMARY, ""), width - 6)
    paragraphs = [summary or "…"]
    if rest:
        paragraphs.append("\n".join(textwrap.wrap(rest, width)))
    sections = {"google": _google, "numpy": _numpy, "sphinx": _sphinx}[style](shape, words, width)
    paragraphs += ["\n".join(section) for section in sections]
    lines = "\n\n".join(paragraphs).split("\n")
    text = "\n".join([lines[0], *(indentation + line if line else "" for line in lines[1:])])
    return text if len(lines) == 1 else f"{text}\n{indentation}"


def _google(shape: Shape, words: Mapping[str, str], width: int) -> list[list[str]]:
    def entries(names: Iterable[str]) -> list[str]:
        return [line for name in names for line in _hanging(f"    {name}: ", words.get(name, ""), 8, width)]

    sections = []
    if shape.parameters:
        sections.append(["Args:", *entries(name for name, _ in shape.parameters)])
    if shape.result:
        sections.append([f"{shape.result.title()}:", *_hanging("    ", words.get(RESULT, ""), 4, width)])
    if shape.exceptions:
        sections.append(["Raises:", *entries(shape.exceptions)])
    return sections


def _numpy(shape: Shape, words: Mapping[str, str], width: int) -> list[list[str]]:
    def section(title: str, entries: list[tuple[str, str]]) -> list[str]:
        lines = [title, "-" * len(title)]
        for head, slot in entries:
            lines += [head, *_hanging("    ", words.get(slot, ""), 4, width)]
        return lines

    sections = []
    if shape.parameters:
        entries = [(f"{name} : {kind}" if kind else name, name) for name, kind in shape.parameters]
        sections.append(section("Parameters", entries))
    if shape.result:
        sections.append(section(shape.result.title(), [(shape.annotation or "object", RESULT)]))
    if shape.exceptions:
        sections.append(section("Raises", [(name, name) for name in shape.exceptions]))
    return sections


def _sphinx(shape: Shape, words: Mapping[str, str], width: int) -> list[list[str]]:
    lines = [
        line
        for name, _ in shape.parameters
        for line in _hanging(f":param {name.replace('*', chr(92) + '*')}: ", words.get(name, ""), 4, width)
    ]
    if shape.result:
        lines += _hanging(f":{shape.result}: ", words.get(RESULT, ""), 4, width)
    for name in shape.exceptions:
        lines += _hanging(f":raises {name}: ", words.get(name, ""), 4, width)
    return [lines] if lines else []


def _hanging(head: str, words: str, indent: int, width: int) -> list[str]:
    """`head` and the words, wrapped; the head alone where there are none."""
    text = cleaned(words)
    if not text:
        return [head.rstrip()] if head.strip() else []
    return textwrap.wrap(text, width, initial_indent=head, subsequent_indent=" " * indent)


def literal(text: str) -> str:
    """The literal of a docstring's text."""
    escaped = text.replace("\\", "\\\\")
    if escaped.endswith('"'):
        escaped += " "
    return f'"""{escaped}"""'


def insertion(data: bytes, definition: Definition, words: Callable[[str], str]) -> Replacement | None:
    """The change that gives a definition the docstring `words(indentation)`, in place of one that it has.

    None where the result would not be the same code with that docstring.
    """
    start, end = definition.docstring or (definition.body_start, definition.body_start)
    before = data[data.rfind(b"\n", 0, definition.body_start) + 1 : definition.body_start]
    own_line = not before.strip()
    indentation = before.decode("utf-8") if own_line else _inner_indentation(data, definition)
    newline = "\r\n" if b"\r\n" in data else "\n"
    text = literal(words(indentation)).replace("\n", newline)
    if definition.docstring is None and own_line:
        line_end = data.find(b"\n", definition.header_end)
        start = end = line_end - 1 if data[line_end - 1 : line_end] == b"\r" else line_end
        text = newline + indentation + text
    elif not own_line:
        start = definition.header_end
        text = newline + indentation + text + ("" if definition.docstring else newline + indentation)
    change = Replacement(start=start, end=end, text=text)
    return change if _only_documented(data, applied(data, (change,))) else None


def _inner_indentation(data: bytes, definition: Definition) -> str:
    """Of a body that stands on the line of its header, once it gets lines of its own."""
    line = data[data.rfind(b"\n", 0, definition.header_end) + 1 :]
    outer = line[: len(line) - len(line.lstrip(b" \t"))].decode("utf-8")
    return outer + ("\t" if outer.startswith("\t") else "    ")


def _only_documented(data: bytes, after: str) -> bool:
    """Whether `after` is the same code, docstrings left aside. Where the file did not parse, nothing can be said."""
    try:
        before_tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return True
    try:
        return _without_docstrings(before_tree) == _without_docstrings(ast.parse(after))
    except (SyntaxError, ValueError):
        return False


def _without_docstrings(tree: ast.Module) -> str:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            del node.body[0]
    return ast.dump(tree)


def parameters_in(docstring: str, style: Style) -> tuple[str, ...]:
    """The parameter names that a docstring lists, stars included."""
    if style == "sphinx":
        return tuple(name.replace("\\", "") for name in re.findall(r"^\s*:param ([^\s:]+):", docstring, re.MULTILINE))
    lines = textwrap.dedent(docstring.split("\n", 1)[-1]).split("\n")
    title = "Args:" if style == "google" else "Parameters"
    if title not in lines:
        return ()
    section = lines[lines.index(title) + (1 if style == "google" else 2) :]
    names = []
    for line in section:
        if style == "google":
            if line and not line.startswith(" "):
                break
            found = re.match(r" {4}([^\s:]+):", line)
        else:
            if not line:
                break
            found = re.match(r"([^\s:]+)", line)
        if found:
            names.append(found[1])
    return tuple(names)
