"""Counts on disk: added up by day and server, harmless when broken, and nothing but numbers."""

from __future__ import annotations

import json
import os
from datetime import date, timedelta
from pathlib import Path

import pytest

from lsp_server.cli import run
from lsp_server.counts import Counts
from lsp_server.usage import Usage
from tests.lsp_server.editor import Editor

DAY = date(2030, 1, 2)


@pytest.fixture
def usage(tmp_path: Path) -> Usage:
    return Usage(tmp_path / "deep" / "counts.jsonl")


def test_days_add_up(usage: Usage) -> None:
    usage.add(Counts(shown=2, accepted=1), DAY)
    usage.add(Counts(shown=3), DAY)
    usage.add(Counts(shown=1), DAY - timedelta(days=1))
    assert usage.days() == {DAY - timedelta(days=1): Counts(shown=1), DAY: Counts(shown=5, accepted=1)}


def test_what_is_no_line_of_ours_does_not_count(usage: Usage) -> None:
    usage.add(Counts(shown=2), DAY)
    with usage.path.open("a") as file:
        file.write(
            '{"day": "2030-01-02", "shown": 1\n[]\n{"shown": 1}\n{"day": "never"}\n{"day": "2030-01-02", "x": 1}\n'
        )
    usage.add(Counts(shown=4), DAY)
    assert usage.days() == {DAY: Counts(shown=6)}


def test_many_lines_are_joined(usage: Usage) -> None:
    for _ in range(1000):
        usage.add(Counts(shown=1, accepted=1), DAY)
    before = usage.days()
    usage.join()
    assert usage.days() == before
    assert usage.path.read_text().count("\n") == 1
    assert os.listdir(usage.path.parent) == [usage.path.name]


def test_a_file_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    usage = Usage(tmp_path / "file" / "counts.jsonl")
    assert not usage.add(Counts(shown=1), DAY)
    usage.join()
    usage.forget()
    assert usage.days() == {}


async def test_what_a_server_counts_is_shown_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        editor = await Editor().start()
        editor.open("secret_name = ")
        [item] = await editor.items(0, 14)
        assert item.command is not None
        await editor.command(item.command.command, item.command.arguments[0])
        await editor.stop()
    assert run(["stats", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["total"]["shown"] == data["total"]["accepted"] == 2
    assert data["total"]["acceptance_rate"] == 1
    assert set(data["days"]) == {date.today().isoformat()}
    written = [json.loads(line) for line in Path(data["file"]).read_text().splitlines()]
    assert all(isinstance(number, int) for line in written for name, number in line.items() if name != "day")
    assert run(["stats"]) == 0
    assert "100%" in capsys.readouterr().out
    assert run(["stats", "--forget"]) == 0
    assert "Nothing is counted yet" in capsys.readouterr().out
