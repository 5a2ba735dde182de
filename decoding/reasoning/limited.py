"""Run a program with limits on time, memory, processes, files and output. For code that nobody has read yet.

Knows processes. Where the system has no such limits (Windows), only time and output are limited.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_MEMORY_BYTES = 4 << 30
_FILE_BYTES = 64 << 20
"""Of one file, its output among them: a program that writes more is ended by the system."""
_OPEN_FILES = 512
_MORE_TASKS = 512
"""Processes and threads beside those that the user has already."""
_OUTPUT_BYTES = 64_000
_POLL_SECONDS = 0.02
_MARK = "DRAFTWOOD_RUN"
"""Every process of a run inherits this variable, and is known by it wherever it hid."""
_PROCESSES = Path("/proc")
_SWEEPS = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a program ended: its exit status (negative for a signal, None where the time was over) and the end of
    what it wrote."""

    status: int | None
    output: str


def _never() -> bool:
    return False


def run_limited(
    command: Sequence[str] | str,
    folder: Path,
    seconds: float,
    environment: Mapping[str, str] | None = None,
    cancelled: Callable[[], bool] = _never,
) -> Outcome:
    """Run a command (a string goes through the shell) in `folder`, with nothing on its input.

    It gets a process group of its own. When the time is over, its leader has ended or nobody wants it any more, that
    group is killed and, on Linux, every process that left it. Output goes to a file without a name, so that a
    process that stays behind can neither fill the memory nor keep anybody waiting.
    """
    mark = uuid.uuid4().hex
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            command,
            shell=isinstance(command, str),
            cwd=folder,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **(environment or {}), _MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_limit(seconds) if sys.platform != "win32" else None,
        )
        try:
            status = _status(process, seconds, cancelled)
        finally:
            _kill_group(process)
            process.wait()
            _kill_marked(mark)
        return Outcome(status, _end_of(output))


def _status(process: subprocess.Popen[bytes], seconds: float, cancelled: Callable[[], bool]) -> int | None:
    """The exit status, None where it did not end in time."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends and not cancelled():
        try:
            return process.wait(_POLL_SECONDS)
        except subprocess.TimeoutExpired:
            continue
    return process.poll()  # while this process slept, with its machine or by a signal, the other may have ended


def _end_of(output: IO[bytes]) -> str:
    size = output.seek(0, os.SEEK_END)
    output.seek(max(0, size - _OUTPUT_BYTES))
    return output.read(_OUTPUT_BYTES).decode("utf-8", "replace")


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    if sys.platform == "win32":
        process.kill()
        return
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # macOS says the second of a group that has ended
        return


def _kill_marked(mark: str) -> None:
    """Kill what left the group; again while there is any, since it may start others meanwhile."""
    for _ in range(_SWEEPS):
        found = list(_marked(mark))
        if not found:
            return
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(_POLL_SECONDS)


def _marked(mark: str) -> Iterator[int]:
    """The living processes with this mark; none where the system does not show them."""
    wanted = f"{_MARK}={mark}".encode()
    for entry in _PROCESSES.glob("[0-9]*") if sys.platform == "linux" else ():
        try:
            if entry.stat().st_uid == os.getuid() and wanted in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
        except OSError:
            continue  # it has ended meanwhile, or is not ours


def _tasks_of_user() -> int | None:
    """Processes and threads of this user; None where the system does not show them."""
    if sys.platform != "linux":
        return None
    tasks = 0
    for entry in _PROCESSES.glob("[0-9]*"):
        try:
            if entry.stat().st_uid == os.getuid():
                tasks += len(os.listdir(entry / "task"))
        except OSError:
            continue
    return tasks


def _limit(seconds: float) -> Callable[[], None]:
    """What the child does before it becomes the program."""
    import resource

    limits = [
        (resource.RLIMIT_AS, _MEMORY_BYTES),
        (resource.RLIMIT_FSIZE, _FILE_BYTES),
        (resource.RLIMIT_NOFILE, _OPEN_FILES),
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_CORE, 0),
    ]
    tasks = _tasks_of_user()
    if tasks is not None:
        limits.append((resource.RLIMIT_NPROC, tasks + _MORE_TASKS))

    def apply() -> None:
        for kind, value in limits:
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (value if hard < 0 else min(value, hard), hard))

    return apply
