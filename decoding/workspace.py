"""Modules of the workspace, for the names in them: open documents as they are, other files from the disk.

Knows where the modules of a project lie. A file is read when somebody writes the name of its module and a dot, never
ahead, and only below the folder that the project begins in. Must not know what the names are for.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from grammars.scope_documents import ScopeDocuments
from grammars.scope_index import ScopeIndex
from grammars.scope_modules import FindModule, Module, no_modules

_MARKS = ("pyproject.toml", "setup.py", "setup.cfg", ".git", ".hg")
_MOST_LEVELS = 8
"""So far above a document its project is looked for."""
_MOST_BYTES = 200_000
"""Of a file; 60 ms to look through."""
_MOST_FILES = 64


class Workspace:
    """The modules that documents import."""

    def __init__(self, documents: ScopeDocuments) -> None:
        """`documents` that are open are not read from the disk."""
        self._documents = documents
        self._read: OrderedDict[Path, tuple[int, ScopeIndex]] = OrderedDict()

    def around(self, uri: str) -> FindModule:
        """What finds the modules that a document imports."""
        parts = urlsplit(uri)
        if parts.scheme != "file":
            return no_modules
        folder = Path(url2pathname(parts.path)).parent

        def find(module: str) -> Module | None:
            try:
                return self._find(module, folder, _root_of(folder))  # up to 45 looks at the disk: not at every key
            except (OSError, ValueError):  # not readable, or no name of a file
                return None

        return find

    def _find(self, module: str, folder: Path, root: Path) -> Module | None:
        names = module.lstrip(".")
        level = len(module) - len(names)
        base = folder
        for _ in range(level - 1):
            base = base.parent
        for start in (base,) if level else (folder, root, root / "src"):
            place = start.joinpath(*names.split("."))
            package = place / "__init__.py"
            file = package if package.is_file() else place.with_name(f"{place.name}.py")
            if file.is_file() and file.resolve().is_relative_to(root.resolve()):
                index = self._index(file)
                inside = _modules_in(place) if file is package else frozenset[str]()
                return Module(index, inside) if index is not None else None
        return None

    def _index(self, file: Path) -> ScopeIndex | None:
        opened = self._documents.latest(file.as_uri())
        if opened is not None:
            return opened
        status = file.stat()
        known = self._read.pop(file, None)
        if known is None or known[0] != status.st_mtime_ns:
            if status.st_size > _MOST_BYTES:
                return None
            known = status.st_mtime_ns, ScopeIndex.of(file.read_bytes())
        self._read[file] = known
        while len(self._read) > _MOST_FILES:
            self._read.popitem(last=False)
        return known[1]


def _root_of(folder: Path) -> Path:
    """The nearest folder that looks like a project's, else the document's own."""
    for each in (folder, *list(folder.parents)[:_MOST_LEVELS]):
        if any((each / mark).exists() for mark in _MARKS):
            return each
    return folder


def _modules_in(package: Path) -> frozenset[str]:
    found = (each for each in package.iterdir() if each.suffix == ".py" or each.is_dir())
    return frozenset(each.stem for each in found if each.stem.isidentifier())
