"""Imports that a completion lacks, and where they are put."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grammars.imports import MissingImports, import_edit, missing_imports
from grammars.scope_index import ScopeIndex
from grammars.well_known_imports import WELL_KNOWN


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
    ("marked", "names"),
    [
        ("x = |json.dumps(1)|\n", ["json"]),
        ("x = |js|on.dumps(1)\n", ["json"]),
        ("import json\nx = |json.dumps(1)|\n", []),
        ("x = |np.array([math.pi])|\n", ["np", "math"]),
        ("x = |Path('a')|\n", ["Path"]),
        ("|def f(x: Any): return x|\n", ["Any"]),
        ("x = |time|\n", []),
        ("x = |string.words|\n", []),  # no attribute of the module: a variable is missing
        ("x = |string.digits|\n", ["string"]),
        ("x = |os.path.join('a')|\n", ["os"]),
        ("x = |importlib.metadata.version('a')|\n", ["importlib"]),
        ("x = |'json.dumps'|\n", []),
        ("x = |a.json.dumps(1)|\n", []),
        ("x = |unknown.thing()|\n", []),
        ("def f(json):\n    return |json.dumps(1)|\n", []),
        ("from a import *\nx = |json.dumps(1)|\n", []),
        ("|json = load()\njson.dumps|\n", []),
        ("def f():\n    x = |json.dumps(1)|\nimport json\n", []),
        ("try:\n    import json\nexcept ImportError:\n    json = None\nx = |json.dumps(1)|\n", []),
        ("x = |json.dumps(|\n", []),  # cannot be read yet
    ],
)
def test_what_is_missing(marked: str, names: list[str]) -> None:
    before, text, after = marked.split("|")
    found = missing_imports(ScopeIndex.of((before + text + after).encode()), len(before), len(before) + len(text))
    assert list(found.names if found else ()) == names


def test_several_imports_are_one_edit() -> None:
    text = "import os\n\nimport attrs\n\nx = np.pi + math.pi + json.x + abc.ABC\n"
    found = missing_imports(ScopeIndex.of(text.encode()), text.index("x ="), len(text))
    assert found is not None
    assert found.names == ("np", "math", "abc")
    assert filled(text, found) == (
        "import abc\nimport math\nimport os\n\nimport attrs\nimport numpy as np\n\n" + text[text.index("x =") :]
    )


def filled(text: str, found: MissingImports) -> str:
    data = text.encode()
    return (data[: found.start] + found.text.encode() + data[found.end :]).decode()


_LINES = st.sampled_from(
    [
        "import os",
        "import re, sys",
        "from a import (\n    b,\n    c,\n)",
        "from . import d",
        "from __future__ import annotations",
        "import numpy as np  # ä",
        "# comment",
        '"""Doc."""',
        "",
        "é = 1",
        "if é:\n    import json",
        "def f():\n    return 1",
        "class A:\n    x: int = 1",
    ]
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(_LINES, max_size=6), st.lists(st.sampled_from(sorted(WELL_KNOWN)), min_size=1, max_size=3), st.booleans()
)
def test_an_import_adds_its_line_and_nothing_else(lines: list[str], names: list[str], crlf: bool) -> None:
    uses = {"json": "json.dumps", "np": "np.pi"}
    last = "print(" + ", ".join(uses.get(name, f"{name}.x") for name in names) + ")"
    text = "\n".join([*lines, last]) + "\n"
    text = text.replace("\n", "\r\n") if crlf else text
    start = len(text.encode()) - len(last) - len("\r\n" if crlf else "\n")
    found = missing_imports(ScopeIndex.of(text.encode()), start, start + len(last))
    if found is None:
        return
    after = filled(text, found)
    added = [line for line in after.splitlines() if line.strip()]
    for line in [line for line in text.splitlines() if line.strip()]:
        added.remove(line)
    assert sorted(added) == sorted(WELL_KNOWN[name] for name in found.names)
    assert ("\n" in after.replace("\r\n", "")) is ("\n" in text.replace("\r\n", ""))
    try:
        compile(text, "t", "exec", dont_inherit=True)
    except SyntaxError:
        return
    compile(after, "t", "exec", dont_inherit=True)
    end = len(after.encode()) - (len(text.encode()) - start)
    assert missing_imports(ScopeIndex.of(after.encode()), end, end + len(last)) is None, "once is enough"


def test_every_well_known_line_imports_its_name() -> None:
    for name, line in WELL_KNOWN.items():
        assert line.split()[-1] == name
