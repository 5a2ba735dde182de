"""Where the tests and benchmarks of the syntax get text from, and what judges it.

Valid text: the standard library of the running interpreter and, where one is found, of Python 3.13. Judged text: the
`py_syntax` data set. Invalid text: token-level mutants, judged by a Python 3.13 interpreter.
"""

from __future__ import annotations

import ast
import gzip
import io
import json
import os
import random
import shutil
import subprocess
import sysconfig
import tokenize
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
NO_ORACLE = "no Python 3.13 interpreter on PATH or among pyenv's versions"
NO_DATA = "the public data sets are absent: set DRAFTWOOD_DATA"

_JUDGE = """
import ast, json, sys, warnings
warnings.simplefilter("ignore")
for line in sys.stdin:
    source, verdict = json.loads(line), {"valid": True}
    try:
        compile(source, "text", "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        verdict = {"valid": False, "message": str(getattr(error, "msg", error)),
                   "line": getattr(error, "lineno", None), "column": getattr(error, "offset", None),
                   "end_line": getattr(error, "end_lineno", None), "end_column": getattr(error, "end_offset", None)}
        try:
            ast.parse(source)
            verdict["parses"] = True
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            verdict["parses"] = False
    print(json.dumps(verdict), flush=True)
"""
_POOL = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    ".",
    "=",
    "==",
    "+",
    "*",
    "**",
    "if",
    "else",
    "for",
    "in",
    "def",
    "class",
    "return",
    "import",
    "as",
    "x",
    "1",
    "'s'",
    "lambda",
    "not",
    "->",
    ":=",
    "@",
    "await",
    "yield",
    "except",
    "try",
    "with",
    "f'{x}'",
    "async",
    "match",
    "case",
    "type",
]


@cache
def oracle() -> tuple[Path, Path] | None:
    """A Python 3.13 interpreter and its standard library."""
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for candidate in [shutil.which("python3.13"), *sorted(versions.glob("3.13.*/bin/python3.13"), reverse=True)]:
        if candidate:
            asked = [str(candidate), "-I", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]
            answer = subprocess.run(asked, capture_output=True, text=True, check=False)
            if answer.returncode == 0:  # a pyenv shim is on PATH even where its version is not selected
                return Path(candidate), Path(answer.stdout.strip())
    return None


class Judge:
    """A Python 3.13 process that compiles what it is given. Use as a context manager."""

    def __enter__(self) -> Judge:
        found = oracle()
        if found is None:
            raise FileNotFoundError(NO_ORACLE)
        command = [str(found[0]), "-I", "-c", _JUDGE]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.stdin.close()
        self._process.wait(timeout=10)
        self._process.stdout.close()

    def verdict(self, source: str) -> dict[str, Any]:
        """`valid`, and for invalid text `message`, `parses` (only compile refuses it) and the place."""
        self._process.stdin.write(json.dumps(source) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def data_folder(name: str) -> Path | None:
    """One of the public data sets."""
    folder = Path(os.environ.get("DRAFTWOOD_DATA", ROOT.parent / "shared" / "data")) / name
    return folder if folder.is_dir() else None


def records(folder: Path, pattern: str = "*") -> Iterator[dict[str, Any]]:
    """The records of every `.jsonl.gz` file of a data set."""
    for path in sorted(folder.glob(f"{pattern}.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)


@cache
def library_files() -> list[Path]:
    """Valid files: the standard library of Python 3.13 where there is one, else of this interpreter."""
    found = oracle()
    root = found[1] if found else Path(sysconfig.get_path("stdlib"))
    return [
        path
        for path in sorted(root.rglob("*.py"))
        if not {"site-packages", "lib2to3"} & set(path.parts) and "bad" not in path.name and is_utf8(path)
    ]


def is_utf8(path: Path) -> bool:
    """Whether a file is UTF-8 text; a few test files of CPython declare something else."""
    try:
        path.read_bytes().decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


@dataclass(frozen=True)
class Mutant:
    """A file with one token or one indentation changed; `start` is where."""

    kind: str
    text: str
    start: int


def mutants(count: int, seed: int) -> Iterator[Mutant]:
    """Changed files of moderate size: most of them are invalid."""
    chance = random.Random(seed)
    files = [path for path in library_files() if 500 < path.stat().st_size < 15_000]
    while count:
        path = chance.choice(files)
        text = path.read_text(encoding="utf-8")
        places = _tokens(text)
        if len(places) < 10:
            continue
        for _ in range(min(count, 10)):
            count -= 1
            yield _mutate(text, places, chance)


def _tokens(text: str) -> list[tuple[int, int]]:
    starts = [0]
    for line in io.StringIO(text, newline=""):
        starts.append(starts[-1] + len(line))
    kinds = (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP)
    try:
        return [
            (starts[token.start[0] - 1] + token.start[1], starts[token.end[0] - 1] + token.end[1])
            for token in tokenize.generate_tokens(io.StringIO(text, newline="").readline)
            if token.type in kinds
        ]
    except (tokenize.TokenError, SyntaxError, IndexError):
        return []


def _mutate(text: str, places: list[tuple[int, int]], chance: random.Random) -> Mutant:
    kind = chance.choice(["delete", "insert", "repeat", "swap", "indent"])
    number = chance.randrange(len(places) - 1)
    (start, end), (next_start, next_end) = places[number], places[number + 1]
    if kind == "delete":
        changed = text[:start] + text[end:]
    elif kind == "insert":
        changed = text[:start] + chance.choice(_POOL) + " " + text[start:]
    elif kind == "repeat":
        changed = text[:end] + " " + text[start:end] + text[end:]
    elif kind == "swap":
        changed = text[:start] + text[next_start:next_end] + text[end:next_start] + text[start:end] + text[next_end:]
    else:
        start = text.rfind("\n", 0, start) + 1
        grown = chance.random() < 0.5
        changed = text[:start] + (chance.choice([" ", "  ", "    "]) + text[start:] if grown else text[start + 1 :])
    return Mutant(kind, changed, start)


def parses(text: str) -> bool:
    """Whether this interpreter's parser accepts `text`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True
