"""The README cannot rot: its code blocks run, its generated tables are up to date, its links lead somewhere.

`python -m tests.test_readme` writes the generated tables anew.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from decoding.models.registry import REGISTRY
from lsp_server import settings

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)#]+)\)")


def models_table() -> str:
    """The registry as a table."""
    rows = [f"| `{e.name}` | {e.title} | {e.license} | {e.purpose} |" for e in REGISTRY.values()]
    return "\n".join(["| name | model | licence | for |", "| --- | --- | --- | --- |", *rows])


def with_tables(text: str) -> str:
    """`text` with its generated parts made anew."""
    parts = {"models": models_table(), "settings": settings.markdown_table()}
    for name, table in parts.items():
        pattern = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
        assert pattern.search(text), f"the README has no place for {name}"
        text = pattern.sub(lambda match, table=table: match[1] + table.strip() + "\n" + match[2], text)
    return text


def blocks(language: str) -> list[str]:
    return [body for kind, body in _BLOCK.findall(README.read_text(encoding="utf-8")) if kind == language]


def test_generated_tables_are_up_to_date() -> None:
    text = README.read_text(encoding="utf-8")
    assert text == with_tables(text), "run python -m tests.test_readme"


def test_links_lead_somewhere() -> None:
    missing = [
        link
        for link in _LINK.findall(README.read_text(encoding="utf-8"))
        if "://" not in link and not (ROOT / link).exists()
    ]
    assert not missing


@pytest.mark.parametrize("block", blocks("sh"))
def test_make_commands_exist(block: str) -> None:
    for line in block.strip().splitlines():
        command = shlex.split(line, comments=True)
        assert command[0] == "make"
        # -n: say what would be done (running `make test` inside the tests would never end).
        done = subprocess.run([*command, "-n"], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.model
@pytest.mark.parametrize("line", "".join(blocks("console")).strip().splitlines())
def test_commands_run(line: str) -> None:
    assert line.startswith("$ draftwood ")
    command = [sys.executable, "-m", "lsp_server.cli", *shlex.split(line.removeprefix("$ draftwood "))]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def python_blocks() -> list[Any]:
    """Those that load a model are for the slow run."""
    return [pytest.param(block, marks=pytest.mark.model) if "Engine(" in block else block for block in blocks("python")]


@pytest.mark.parametrize("block", python_blocks())
def test_python_runs(block: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr


if __name__ == "__main__":
    README.write_text(with_tables(README.read_text(encoding="utf-8")), encoding="utf-8")
