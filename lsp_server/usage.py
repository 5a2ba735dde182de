"""How suggestions fared over the days, in a file on this machine: dates and numbers, nothing else.

Knows counts and one file of JSON lines. Each server adds what happened since it last did, so that several may write;
lines of one day are joined when there are many. A file that cannot be written costs the numbers and nothing more.
"""

from __future__ import annotations

import json
import logging
import os
from dataclasses import asdict
from datetime import date
from pathlib import Path

import platformdirs

from decoding.errors import BadFile
from lsp_server.counts import Counts

log = logging.getLogger(__name__)

_MANY_LINES = 1000


class Usage:
    """The counts by day in one file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of_user(cls) -> Usage:
        """The user's own."""
        return cls(Path(platformdirs.user_state_dir("draftwood")) / "counts.jsonl")

    def add(self, counts: Counts, day: date) -> bool:
        """Adds what happened on `day`; whether that could be written down."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(_line(day, counts))
        except OSError as error:
            log.info("the counts are not kept: %s", error.strerror)
            return False
        return True

    def days(self) -> dict[date, Counts]:
        """The counts of each day, oldest first. What cannot be read does not count."""
        days: dict[date, Counts] = {}
        for line in self._lines():
            try:
                data = json.loads(line)
                day = date.fromisoformat(data.pop("day"))
                counts = Counts(**{name: int(number) for name, number in data.items()})
            except (ValueError, TypeError, KeyError, AttributeError):
                continue  # half a line of a full disk, or one of a later version
            days[day] = days.get(day, Counts()).plus(counts)
        return dict(sorted(days.items()))

    def join(self) -> None:
        """Makes one line of the many of each day."""
        if len(self._lines()) < _MANY_LINES:
            return
        fresh = self.path.with_name(f"{self.path.name}.{os.getpid()}")
        try:
            fresh.write_text("".join(_line(day, counts) for day, counts in self.days().items()), encoding="utf-8")
            fresh.replace(self.path)
        except OSError as error:
            log.info("the counts stay as they are: %s", error.strerror)
            fresh.unlink(missing_ok=True)

    def forget(self) -> None:
        """Deletes all of it. Raises BadFile where that is not possible."""
        try:
            if self.path.exists():
                self.path.unlink()
        except OSError as error:
            raise BadFile(f"{self.path} cannot be deleted: {error.strerror}") from error

    def _lines(self) -> list[str]:
        try:
            return self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return []


def _line(day: date, counts: Counts) -> str:
    numbers = {name: number for name, number in asdict(counts).items() if number}
    return json.dumps({"day": day.isoformat(), **numbers}) + "\n"
