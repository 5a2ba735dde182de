"""Progress bars on stderr: for provisioning and loading a model, and for work that is counted.

Knows rich and `ModelProgress`. Without a terminal the first says each stage once, in a line.
"""

from __future__ import annotations

import sys
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from decoding.messages import ModelProgress

_VERBS = {"download": "Downloading", "convert": "Converting", "load": "Loading", "warm": "Warming up"}


class ProgressBar:
    """Call it with every `ModelProgress`; a context manager."""

    def __init__(self) -> None:
        """Nothing is drawn before the first message."""
        self._console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
        )
        self._task: TaskID | None = None
        self._stage: str | None = None

    def __enter__(self) -> ProgressBar:
        return self

    def __call__(self, news: ModelProgress) -> None:
        """Show `news`."""
        description = news.message or f"{_VERBS[news.stage]} {news.model}"
        if not self._console.is_terminal:
            if news.stage != self._stage:
                print(f"{description} …", file=sys.stderr, flush=True)
            self._stage = news.stage
            return
        if news.stage != self._stage or self._task is None:
            if self._task is not None:
                self._progress.remove_task(self._task)
            self._progress.start()
            self._task = self._progress.add_task(description, total=1.0 if news.fraction is not None else None)
            self._stage = news.stage
        total = 1.0 if news.fraction is not None else None
        self._progress.update(self._task, description=description, total=total, completed=news.fraction or 0.0)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:  # stopping what was never started would print an empty line
            self._progress.stop()


class CountBar:
    """Call it with (done, total, what is being done); a context manager."""

    def __init__(self) -> None:
        self._progress = Progress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
        )
        self._task = self._progress.add_task("starting", total=None)

    def __enter__(self) -> CountBar:
        self._progress.start()
        return self

    def __call__(self, done: int, total: int, what: str) -> None:
        """Show how far the work is."""
        self._progress.update(self._task, completed=done, total=total, description=what)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()
