"""Modules of the workspace: where they lie, what is read of them, and when."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from decoding.workspace import Workspace
from grammars.scope_documents import ScopeDocuments


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for file, source in {
        "pyproject.toml": "",
        "main.py": "",
        "helpers.py": "at_root = 1\n",
        "src/installed.py": "in_src = 1\n",
        "pkg/__init__.py": "in_package = 1\n",
        "pkg/mod.py": "in_module = 1\n",
        "pkg/sub/__init__.py": "",
        "pkg/sub/deep.py": "deep = 1\n",
        "../outside.py": "secret = 1\n",
    }.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(source)
    return root


def names(workspace: Workspace, document: Path, module: str) -> frozenset[str]:
    found = workspace.around(document.as_uri())(module)
    own = (found.attributes() or frozenset()) if found is not None else frozenset()
    return frozenset(name for name in own if not name.startswith("__"))


@pytest.mark.parametrize(
    ("document", "module", "expected"),
    [
        ("main.py", "helpers", {"at_root"}),
        ("pkg/mod.py", "helpers", {"at_root"}),
        ("main.py", "installed", {"in_src"}),
        ("main.py", "pkg", {"in_package", "mod", "sub"}),
        ("main.py", "pkg.mod", {"in_module"}),
        ("pkg/mod.py", "mod", {"in_module"}),
        ("pkg/mod.py", ".sub", {"deep"}),
        ("pkg/mod.py", ".sub.deep", {"deep"}),
        ("pkg/sub/deep.py", "..mod", {"in_module"}),
        ("main.py", "nothing", set()),
        ("main.py", "..outside", set()),
        ("main.py", "os", set()),
    ],
)
def test_where_modules_lie(project: Path, document: str, module: str, expected: set[str]) -> None:
    assert names(Workspace(ScopeDocuments()), project / document, module) == expected


def test_what_is_open_is_not_read_from_the_disk(project: Path) -> None:
    documents = ScopeDocuments()
    documents.index((project / "helpers.py").as_uri(), b"typed = 1\n")
    assert names(Workspace(documents), project / "main.py", "helpers") == {"typed"}


def test_a_file_is_read_again_once_it_has_changed(project: Path) -> None:
    workspace, file = Workspace(ScopeDocuments()), project / "helpers.py"
    assert names(workspace, project / "main.py", "helpers") == {"at_root"}
    file.write_text("new = 1\n")
    os.utime(file, ns=(1, 1))
    assert names(workspace, project / "main.py", "helpers") == {"new"}


def test_neither_large_nor_unreadable_files_matter(project: Path) -> None:
    workspace = Workspace(ScopeDocuments())
    (project / "large.py").write_text("x = 1\n" * 50_000)
    (project / "bytes.py").write_bytes(b"\xff\xfe = 1\n")
    (project / "link.py").symlink_to(project.parent / "outside.py")
    assert not names(workspace, project / "main.py", "large")
    assert not names(workspace, project / "main.py", "link")
    names(workspace, project / "main.py", "bytes")
    assert not names(workspace, project / "main.py", "nul\0")
    assert workspace.around("untitled:a")("helpers") is None


def test_without_a_project_only_the_documents_folder_counts(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "up.py").write_text("up = 1\n")
    (tmp_path / "a" / "b" / "near.py").write_text("near = 1\n")
    workspace, document = Workspace(ScopeDocuments()), tmp_path / "a" / "b" / "main.py"
    assert names(workspace, document, "near") == {"near"}
    assert not names(workspace, document, "up")
    assert not names(workspace, document, "..up")
