"""Imports that a completion lacks, and where they are put."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from grammars.imports import WELL_KNOWN, import_edit, missing_imports
from grammars.scope_index import ScopeIndex


def applied(text: str, name: str) -> str:
    edit = import_edit(ScopeIndex.of(text.encode()), name)
    source = text.encode()
    return (source[: edit.offset] + edit.text.encode() + source[edit.offset :]).decode()


@pytest.mark.parametrize(
    ("before", "name", "after"),
    [
        ("x = 1\n", "json", "import json\n\nx = 1\n"),
        ("", "json", "import json\n"),
        ('"""Doc."""\n\nx = 1\n', "json", '"""Doc."""\n\nimport json\n\nx = 1\n'),
        ("# c\nx = 1\n", "json", "# c\nimport json\n\nx = 1\n"),
        ("import abc\nimport os\n\nx = 1\n", "json", "import abc\nimport json\nimport os\n\nx = 1\n"),
        ("import os\nfrom a import b\n\nx = 1\n", "abc", "import abc\nimport os\nfrom a import b\n\nx = 1\n"),
        ("import os\n\nimport numpy as np\n\nx = 1\n", "re", "import os\nimport re\n\nimport numpy as np\n\nx = 1\n"),
        ("import os\n\nx = 1\n", "np", "import os\n\nimport numpy as np\n\nx = 1\n"),
        ("import numpy as np\n\nx = 1\n", "os", "import os\n\nimport numpy as np\n\nx = 1\n"),
        (
            "from __future__ import annotations\n\nx = 1\n",
            "os",
            "from __future__ import annotations\n\nimport os\n\nx = 1\n",
        ),
        ("import os\n\nx = 1\n", "Path", "import os\nfrom pathlib import Path\n\nx = 1\n"),
        ("import os\r\n\r\nx = 1\r\n", "sys", "import os\r\nimport sys\r\n\r\nx = 1\r\n"),
    ],
)
def test_placement(before: str, name: str, after: str) -> None:
    assert applied(before, name) == after


@pytest.mark.parametrize("name", ["json", "np", "Path", "typing", "os"])
def test_ruff_finds_nothing_to_sort(name: str, tmp_path: Path) -> None:
    text = (
        "from __future__ import annotations\n\nimport os\nimport re\nfrom collections import deque\n\nimport attrs\n\n"
    )
    if f"import {name}\n" in text:
        pytest.skip("imported already")
    file = tmp_path / "module.py"
    file.write_text(applied(text + "print(os, re, deque, attrs)\n", name))
    command = [sys.executable, "-m", "ruff", "check", "--isolated", "--select", "I", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "No module named ruff" in done.stderr:
        pytest.skip("needs ruff")
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("text", "completion", "names"),
    [
        ("x = ⌖\n", "json.dumps(1)", ["json"]),
        ("import json\nx = ⌖\n", "json.dumps(1)", []),
        ("x = ⌖\n", "np.array([math.pi])", ["np", "math"]),
        ("x = ⌖\n", "Path('a')", ["Path"]),
        ("x = js⌖\n", "on.dumps(1)", ["json"]),
        ("x = ⌖\n", "time", []),
        ("x = ⌖\n", "'json.dumps'", []),
        ("x = ⌖\n", "a.json.dumps(1)", []),
        ("x = ⌖\n", "unknown.thing()", []),
        ("def f(json):\n    return ⌖\n", "json.dumps(1)", []),
        ("from a import *\nx = ⌖\n", "json.dumps(1)", []),
        ("⌖\n", "json = load()\njson.x", []),
        ("def f():\n    x = ⌖\nimport json\n", "json.dumps(1)", []),
    ],
)
def test_what_is_missing(text: str, completion: str, names: list[str]) -> None:
    offset = text.index("⌖")
    edits = missing_imports(ScopeIndex.of(text.replace("⌖", "").encode()), offset, completion)
    assert [edit.name for edit in edits] == names


def test_every_well_known_line_imports_its_name() -> None:
    for name, line in WELL_KNOWN.items():
        assert line.split()[-1] == name
