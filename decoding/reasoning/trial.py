"""Run the user's own test command on a copy of the project with one file changed.

Knows folders. Used only where the user asked for it; the copy is deleted afterwards.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import TracebackType

from decoding.errors import BadInput
from decoding.reasoning.failures import essence
from decoding.reasoning.limited import run_limited

_SECONDS = 120.0
_MOST_BYTES = 200 << 20
_ROOT_FILES = ("pyproject.toml", "setup.py", "setup.cfg", "tox.ini", ".git")
_NOT_COPIED = shutil.ignore_patterns(
    ".git", ".hg", "__pycache__", "node_modules", ".venv", "venv", ".tox", ".mypy_cache", ".pytest_cache"
)


class ProjectTrial:
    """A context manager; call it with a text of the file: what failed first, None where the command succeeds."""

    def __init__(self, file: Path, command: str, seconds: float = _SECONDS) -> None:
        self._file = file.resolve()
        self._root = project_root(self._file)
        self._command = command
        self._seconds = seconds
        self._folder = Path()

    def __enter__(self) -> ProjectTrial:
        size = sum(path.stat().st_size for path in _copied_files(self._root))
        if size > _MOST_BYTES:
            raise BadInput(f"the project has {size >> 20} MB, at most {_MOST_BYTES >> 20} are copied for a test run")
        self._folder = Path(tempfile.mkdtemp(prefix="draftwood-trial-"))
        shutil.copytree(self._root, self._folder / self._root.name, ignore=_NOT_COPIED, symlinks=True)
        return self

    def __call__(self, text: str) -> str | None:
        """Run the command with `text` in place of the file."""
        copy = self._folder / self._root.name
        (copy / self._file.relative_to(self._root)).write_text(text, encoding="utf-8", newline="")
        outcome = run_limited(self._command, copy, self._seconds)
        if outcome.status == 0:
            return None
        if outcome.status is None:
            return f"The tests did not end within {self._seconds:.0f} seconds."
        return f"A test fails:\n{essence(outcome.output)}"

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def project_root(file: Path) -> Path:
    """The folder of the project that a file belongs to; its own folder where nothing says more."""
    for folder in file.parents:
        if any((folder / name).exists() for name in _ROOT_FILES):
            return folder
    return file.parent


def _copied_files(root: Path) -> list[Path]:
    files: list[Path] = []
    folders = [root]
    while folders:
        folder = folders.pop()
        names = [path.name for path in folder.iterdir()]
        left_out = _NOT_COPIED(str(folder), names)
        for path in folder.iterdir():
            if path.name in left_out or path.is_symlink():
                continue
            if path.is_dir():
                folders.append(path)
            elif path.is_file():
                files.append(path)
    return files
