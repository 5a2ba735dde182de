"""What the stub server has seen, read from its log, and waiting for things to become true."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
STUB = Path(__file__).with_name("stub_server.py")


def stub_command(log: Path, *options: str) -> list[str]:
    """The command line of a stub server that logs to `log`."""
    return [sys.executable, str(STUB), "--log", str(log), *options]


def events(log: Path, name: str) -> list[dict[str, Any]]:
    """The events called `name`, oldest first."""
    if not log.exists():
        return []
    lines = log.read_text(encoding="utf-8").splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == name]


def until(probe: Callable[[], T], what: str, seconds: float = 15.0) -> T:
    """Asks `probe` until it says something true, and returns that; the limit is generous because machines are busy."""
    end = time.monotonic() + seconds
    while not (seen := probe()):
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:.0f} s for {what}; last seen: {seen!r}")
        time.sleep(0.05)
    return seen
