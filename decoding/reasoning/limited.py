"""Run a program with limits on time, memory, processes and files. For code that nobody has read yet.

Knows processes. Where the system has no such limits (Windows), only the time is limited.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_MEMORY_BYTES = 4 << 30
_FILE_BYTES = 64 << 20
_OPEN_FILES = 512
_OUTPUT_BYTES = 64_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended: its exit status (negative for a signal, None where the time was over) and the end of
    what it wrote."""

    status: int | None
    output: str


def run_limited(
    command: Sequence[str] | str, folder: Path, seconds: float, environment: Mapping[str, str] | None = None
) -> Outcome:
    """Run a command (a string goes through the shell) in `folder`, with nothing on its input.

    It gets a process group of its own, which is killed when the time is over or its leader has ended.
    """
    process = subprocess.Popen(
        command,
        shell=isinstance(command, str),
        cwd=folder,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=_limit(seconds) if sys.platform != "win32" else None,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
        status: int | None = process.returncode
    except subprocess.TimeoutExpired:
        _kill_group(process)
        output, _ = process.communicate()
        status = None
    _kill_group(process)
    return Outcome(status, output[-_OUTPUT_BYTES:].decode("utf-8", "replace"))


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return  # all of it has ended already


def _limit(seconds: float):  # type: ignore[no-untyped-def]
    """What the child does before it becomes the program."""
    import resource

    limits = [
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_CORE, 0),
    ]

    def apply() -> None:
        for kind, value in limits:
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))

    return apply
