"""The oracle interpreter: CPython 3.13, whose `symtable` and `ast` say what is true of a file."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

_SCRIPT = Path(__file__).with_name("symtable_script.py")


@cache
def oracle_python() -> str | None:
    """Path of a working Python 3.13, from DRAFTWOOD_PYTHON313 or PATH."""
    for candidate in (os.environ.get("DRAFTWOOD_PYTHON313"), shutil.which("python3.13")):
        if candidate:
            command = [candidate, "-c", "import sys; print(sys.version_info[:2] == (3, 13), sys.executable)"]
            # A version manager's shim answers only when it is told which version is wanted.
            environment = os.environ | {"PYENV_VERSION": "3.13"}
            done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            answer, _, executable = done.stdout.strip().partition(" ")
            if answer == "True":
                return executable
    return None


def require_oracle() -> str:
    """The oracle interpreter; skips the test where there is none."""
    python = oracle_python()
    if python is None:
        pytest.skip("needs Python 3.13 as `python3.13` on PATH or in DRAFTWOOD_PYTHON313")
    return python


def stdlib_files(python: str) -> list[Path]:
    """The .py files of the interpreter's standard library, its tests included, in a fixed order."""
    command = [python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]
    root = Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
    return sorted(path for path in root.rglob("*.py") if "site-packages" not in path.parts)


def symbol_tables(python: str, paths: list[Path]) -> list[Any]:
    """What `symtable` says of each file; {"error": …} for a file that the interpreter cannot read."""
    listing = "".join(f"{path}\n" for path in paths)
    done = subprocess.run([python, str(_SCRIPT)], input=listing, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def name_loads(python: str, paths: list[Path]) -> list[list[tuple[int, int, str]] | None]:
    """Per file (byte offset, byte length, name) of every name that is read; None for unreadable files."""
    listing = "".join(f"{path}\n" for path in paths)
    script = _SCRIPT.with_name("loads_script.py")
    done = subprocess.run([python, str(script)], input=listing, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
