"""Run the user's own test command on a copy of the project with one file changed.

Knows folders. Used only where the user asked for it; the copy is deleted afterwards.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
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
        files = list(_copied_files(self._root))
        size = sum(path.lstat().st_size for path in files)
        if size > _MOST_BYTES:
            raise BadInput(f"the project has {size >> 20} MB, at most {_MOST_BYTES >> 20} are copied for a test run")
        self._folder = Path(tempfile.mkdtemp(prefix="draftwood-trial-"))
        self._copy.mkdir()
        try:
            for path in files:
                copied = self._copy / path.relative_to(self._root)
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, copied, follow_symlinks=False)
        except OSError as error:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise BadInput(f"the project cannot be copied for a test run: {error.strerror}") from error
        return self

    @property
    def _copy(self) -> Path:
        return self._folder / (self._root.name or "project")

    def __call__(self, text: str) -> str | None:
        """Run the command with `text` in place of the file."""
        file = self._copy / self._file.relative_to(self._root)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="", errors="surrogatepass")
        outcome = run_limited(self._command, self._copy, self._seconds, _imports_from(self._copy))
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


def _imports_from(copy: Path) -> dict[str, str]:
    """Lets tests import the copy also where the project itself is installed in place, which would come first."""
    folders = [str(folder) for folder in (copy / "src", copy) if folder.is_dir()]
    return {"PYTHONPATH": os.pathsep.join(filter(None, (*folders, os.environ.get("PYTHONPATH", ""))))}


def _copied_files(root: Path) -> Iterator[Path]:
    """Files and links; no pipes, sockets or devices, nor what may not be read."""
    for folder, folders, names in os.walk(root):
        left_out = _NOT_COPIED(folder, [*folders, *names])
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name not in left_out and name not in linked]
        for name in (*names, *linked):
            path = Path(folder, name)
            if name not in left_out and (path.is_symlink() or (path.is_file() and os.access(path, os.R_OK))):
                yield path
