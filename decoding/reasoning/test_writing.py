"""tests: a pytest file for a function or class, of which only what can be collected is kept.

Knows syntax trees and import names. Imports and runs nothing of the user's code.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from decoding.errors import BadInput
from decoding.reasoning import prompts
from decoding.reasoning.backend import Turn
from decoding.reasoning.checks import findings, syntax_error
from decoding.reasoning.pieces import fenced
from decoding.reasoning.related import open_sources, related_code
from decoding.reasoning.report import Report
from decoding.reasoning.requests import CommandRequest, CommandResult, NewFile
from decoding.reasoning.source import Source, shortened
from grammars.definitions import Definition

_CODE_TOKENS = 560
_RELATED_TOKENS = 120
_FIXTURES = frozenset(
    {"tmp_path", "capsys", "capfd", "caplog", "monkeypatch", "recwarn", "request", "tmp_path_factory"}
)
_Definitions = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def tests(request: CommandRequest, report: Report) -> CommandResult:
    """Write tests for the function or class at the cursor; the result is a new file."""
    source = Source.of(request.snapshot, request.end)
    definition = _tested(source)
    if definition is None:
        raise BadInput("put the cursor into a function or class at the top of the file to write tests for it")
    path = Path(unquote(urlsplit(source.uri).path))
    name = definition.name
    head = f"import pytest\n\nfrom {module_name(path)} import {name}\n\n\n"
    piece = source.piece_of(definition)
    count = report.backend.count
    related = related_code(source, piece, _RELATED_TOKENS, count, open_sources(request))
    messages = prompts.tests(shortened(piece.code, _CODE_TOKENS, count), related, name)
    for number in range(request.tries):
        report.tries += 1
        turn = Turn(messages, request.max_tokens, temperature=0.8 if number else None, seed=number if number else None)
        code, _ = report.write_code(turn, f"{head}def test_", silently=True)
        kept, left_out = collectable(code, head, name, module_name(path))
        if kept is not None:
            report.say(fenced(kept.rstrip("\n")))
            uri = source.uri.rsplit("/", 1)[0] + "/" + quote(f"test_{path.stem}_{name.lower()}.py")
            return report.result(new_file=NewFile(uri=uri, text=kept), checks=_checks(kept, left_out, name))
    return report.result(checks=("no test file is proposed: nothing that was written could be collected",))


def _tested(source: Source) -> Definition | None:
    """The top-level definition around the selection: what a test can import."""
    found = source.definition
    if found is None:
        return None
    return next(
        (each for each in source.outline.definitions if not each.depth and each.start <= found.start < each.end), None
    )


def _checks(text: str, left_out: list[str], name: str) -> tuple[str, ...]:
    count = sum(isinstance(node, ast.FunctionDef) for node in ast.parse(text).body)
    checks = [f"{count} test function{'s' if count != 1 else ''}; it parses, and every name in it is defined"]
    if left_out:
        checks.append(f"left out because pytest could not run it: {', '.join(left_out)}")
    return (*checks, f"nothing was run: whether {name} passes is for pytest to say")


def module_name(path: Path) -> str:
    """The dotted name by which a test imports the file: from the folder above the outermost package."""
    parts = [path.stem]
    folder = path.parent
    while (folder / "__init__.py").is_file():
        parts.insert(0, folder.name)
        folder = folder.parent
    if folder.name == "src" or path.stem != "__init__":
        return ".".join(parts)
    return ".".join(parts[:-1])


def collectable(code: str, head: str, name: str, module: str) -> tuple[str | None, list[str]]:
    """(a file of `head` and `code` with what pytest can collect, names left out); None where no test is left.

    Test functions with unknown names, imports of what is not there, second definitions and code that would run at
    import time are left out, and so is a copy of the tested code itself.
    """
    tree, lines = _parsed_beginning(code if code.startswith(head) else head + code)
    if tree is None:
        return None, []
    kept: list[ast.stmt] = []
    seen: set[str] = {name}
    left_out: list[str] = []
    imports = 0
    fixtures = {node.name for node in tree.body if isinstance(node, ast.FunctionDef) and _is_fixture(node)}
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            if _importable(node, module, name) and ast.dump(node) not in map(ast.dump, kept):
                kept.insert(imports, node)
                imports += 1
        elif isinstance(node, _Definitions):
            if node.name not in seen and _runs_nothing(node) and _is_runnable(node, fixtures):
                seen.add(node.name)
                kept.append(node)
            elif node.name not in seen:
                left_out.append(node.name)
        elif _runs_nothing(node):
            kept.append(node)
    while True:
        joined, owners = _joined(kept, lines)
        undefined = {owners[finding.line] for finding in findings(joined) if finding.undefined}
        if not undefined:
            break
        left_out += [node.name for index in sorted(undefined) if isinstance(node := kept[index], _Definitions)]
        kept = [node for index, node in enumerate(kept) if index not in undefined]
    has_tests = any(isinstance(node, _Definitions) and node.name.lower().startswith("test") for node in kept)
    return (joined if has_tests and syntax_error(joined) is None else None), left_out


def _parsed_beginning(text: str) -> tuple[ast.Module | None, list[str]]:
    """The longest beginning of whole top-level statements that parses: what a limit cut off is left out."""
    lines = text.split("\n")
    for end in range(len(lines), 0, -1):
        whole = end == len(lines) or (lines[end] and not lines[end][0].isspace())
        if whole:
            try:
                return ast.parse("\n".join(lines[:end])), lines[:end]
            except (SyntaxError, ValueError):
                continue
    return None, lines


def _joined(nodes: list[ast.stmt], lines: list[str]) -> tuple[str, dict[int, int]]:
    """The text of statements, and for each of its 1-based lines the statement that it belongs to."""
    parts: list[str] = []
    owners: dict[int, int] = {}
    for index, node in enumerate(nodes):
        start = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", []))])
        assert node.end_lineno is not None
        if parts:
            blank = 2 if isinstance(node, _Definitions) or isinstance(nodes[index - 1], _Definitions) else 0
            parts += [""] * blank
        for line in lines[start - 1 : node.end_lineno]:
            parts.append(line)
            owners[len(parts)] = index
    return "\n".join(parts) + "\n", owners


def _importable(node: ast.Import | ast.ImportFrom, module: str, name: str) -> bool:
    """Whether an import is of the tested name, the standard library, pytest or something that is installed."""
    if isinstance(node, ast.ImportFrom):
        if node.level or node.module == "__future__":
            return False
        if node.module == module:
            return [alias.name for alias in node.names] == [name]
        modules = [node.module or ""]
        if any(alias.name == name for alias in node.names):
            return False
    else:
        modules = [alias.name for alias in node.names]
    return all(_is_there(each.split(".")[0]) for each in modules)


def _is_there(top_level: str) -> bool:
    return top_level in sys.stdlib_module_names or top_level == "pytest" or _is_installed(top_level)


def _is_installed(top_level: str) -> bool:
    try:
        return importlib.util.find_spec(top_level) is not None
    except (ImportError, ValueError):
        return False


def _runs_nothing(node: ast.stmt) -> bool:
    """Whether importing the statement calls nothing of the tested code: plain values, functions, classes of both."""
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Name) for target in node.targets) and _is_literal(node.value)
    if isinstance(node, ast.ClassDef):
        return not node.decorator_list and all(
            isinstance(each, ast.Pass) or _is_text(each) or (isinstance(each, _Definitions) and _runs_nothing(each))
            for each in node.body
        )
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        defaults = [*node.args.defaults, *(each for each in node.args.kw_defaults if each)]
        return all(map(_is_literal, defaults)) and all(_mark_names(each) is not None for each in node.decorator_list)
    return False


def _is_runnable(node: ast.stmt, fixtures: set[str]) -> bool:
    """Whether pytest can call a test: each parameter is a fixture, or comes from a well-formed parametrize mark."""
    if not isinstance(node, ast.FunctionDef) or not node.name.startswith("test"):
        return True
    given = [names for each in node.decorator_list if (names := _mark_names(each)) is not None]
    known = fixtures.union(_FIXTURES, *given)
    own = {each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    return own <= known and all(names <= own for names in given)


def _mark_names(decorator: ast.expr) -> frozenset[str] | None:
    """The parameters that a decorator of pytest's gives to a test; None for one that may fail or is not pytest's."""
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    name = ast.unparse(called)
    if name == "pytest.fixture":
        return frozenset() if not isinstance(decorator, ast.Call) or not decorator.args else None
    if name != "pytest.mark.parametrize":
        return frozenset() if name in ("pytest.mark.skip", "pytest.mark.xfail") else None
    if not isinstance(decorator, ast.Call) or len(decorator.args) != 2 or not all(map(_is_literal, decorator.args)):
        return None
    wanted, cases = (ast.literal_eval(argument) for argument in decorator.args)
    names = [each.strip() for each in wanted.split(",")] if isinstance(wanted, str) else list(wanted)
    if not all(isinstance(each, str) and each.isidentifier() for each in names) or not isinstance(cases, list | tuple):
        return None
    fits = len(names) == 1 or all(isinstance(case, list | tuple) and len(case) == len(names) for case in cases)
    return frozenset(names) if fits else None


def _is_literal(value: ast.expr) -> bool:
    try:
        ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False
    return True


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_fixture(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and any(
        "pytest.fixture" in ast.unparse(each) for each in node.decorator_list
    )
