"""The first command where something is missing: one line says what to do, and nothing half-made is left."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


def make(folder: Path, python: str) -> subprocess.CompletedProcess[str]:
    command = ["make", "-f", str(ROOT / "Makefile"), f"PYTHON={python}", "VENV=env", "env/bin/python"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_python_without_venv(tmp_path: Path) -> None:
    """As Debian installs it without python3-venv: a folder is made, and then it ends."""
    python = tmp_path / "python3"
    python.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "if 'venv' in sys.argv:\n"
        "    pathlib.Path('env/bin').mkdir(parents=True)\n"
        "    pathlib.Path('env/bin/python').touch()\n"
        "    sys.exit('ensurepip is not available')\n"
        "print('3.12')\n"
    )
    python.chmod(0o755)
    result = make(tmp_path, str(python))
    assert result.returncode != 0
    assert "sudo apt install python3.12-venv" in " ".join(result.stdout.split())
    assert not (tmp_path / "env").exists()


def test_no_python(tmp_path: Path) -> None:
    result = make(tmp_path, "")
    assert result.returncode != 0
    assert "needs Python 3.11 or newer" in result.stdout
