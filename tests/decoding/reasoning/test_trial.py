"""A run of the user's tests on a copy: what is copied, what is imported, and that the project stays as it is."""

import os
import sys
from pathlib import Path

import pytest

from decoding.errors import BadInput
from decoding.reasoning import trial as module
from decoding.reasoning.trial import ProjectTrial, project_root

RUN = f'"{sys.executable}" -c'


def project(folder: Path) -> Path:
    (folder / "pyproject.toml").write_text("[project]\n")
    (folder / "src" / "pack").mkdir(parents=True)
    (folder / "src" / "pack" / "__init__.py").touch()
    file = folder / "src" / "pack" / "module.py"
    file.write_text("VALUE = 1\n")
    return file


def test_tests_import_the_copy_even_where_the_project_is_installed_in_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = project(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "src"))
    with ProjectTrial(file, f'{RUN} "import pack.module; assert pack.module.VALUE == 2"') as trial:
        assert trial("VALUE = 2\n") is None
        assert "AssertionError" in (trial("VALUE = 1\n") or "")
    assert file.read_text() == "VALUE = 1\n"


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes in folders")
def test_pipes_and_links_that_lead_nowhere_are_no_obstacle(tmp_path: Path) -> None:
    file = project(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "gone").symlink_to(tmp_path / "nothing")
    (tmp_path / "loop").symlink_to(tmp_path)
    with ProjectTrial(
        file, f"{RUN} \"import os; assert not os.path.exists('pipe') and os.path.islink('gone')\""
    ) as run:
        assert run("") is None


def test_a_file_in_a_folder_that_is_not_copied_is_there_all_the_same(tmp_path: Path) -> None:
    project(tmp_path)
    file = tmp_path / "venv" / "tool.py"
    file.parent.mkdir()
    file.write_text("")
    with ProjectTrial(file, f"{RUN} \"assert open('venv/tool.py').read() == 'x = 1'\"") as trial:
        assert trial("x = 1") is None


def test_a_project_that_is_too_large_is_refused_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = project(tmp_path)
    monkeypatch.setattr(module, "_MOST_BYTES", 3)
    with pytest.raises(BadInput, match="at most"), ProjectTrial(file, "true"):
        raise AssertionError


def test_a_command_that_hangs_says_so(tmp_path: Path) -> None:
    with ProjectTrial(project(tmp_path), f'{RUN} "import time; time.sleep(600)"', seconds=0.3) as trial:
        assert "did not end" in (trial("") or "")


def test_the_copy_is_deleted_also_where_the_command_is_interrupted(tmp_path: Path) -> None:
    trial = ProjectTrial(project(tmp_path), "true")

    def interrupted() -> None:
        with trial:
            assert trial._folder.is_dir()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not trial._folder.exists()


def test_root_of_a_file_without_a_project_is_its_folder(tmp_path: Path) -> None:
    assert project_root(project(tmp_path)) == tmp_path
