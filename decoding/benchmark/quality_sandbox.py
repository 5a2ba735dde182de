"""Run a program that a model wrote, and say whether it ends well.

Knows processes and Python's audit hooks. Time, memory, file sizes and open files are limited by the operating system
(`reasoning.limited`); the network, other programs and files outside of the program's own folder are refused by an audit
hook (PEP 578), which Python code cannot remove. That keeps mistakes harmless; it is no wall against malice in C.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
from pathlib import Path

from decoding.reasoning.limited import Outcome, run_limited

SECONDS = 5.0

_GUARD = """\
import os, sys

def _guard(folder, path, decode, kinds, writing):
    forbidden = ("socket.", "subprocess.", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill",
                 "os.startfile", "ctypes.", "pty.", "signal.pthread_kill")
    changing = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.chmod", "os.chown", "os.link", "os.symlink",
                "os.truncate", "os.utime")

    def outside(name):
        return isinstance(name, kinds) and not path(decode(name)).startswith(folder)

    def hook(event, arguments):
        if event == "open":
            refused = bool(isinstance(arguments[2], int) and arguments[2] & writing) and outside(arguments[0])
        else:
            refused = event.startswith(forbidden) or (event in changing and any(map(outside, arguments)))
        if refused:
            raise PermissionError(event)

    sys.addaudithook(hook)

_guard(os.getcwd() + os.sep, os.path.abspath, os.fsdecode, (str, bytes, os.PathLike),
       os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
"""


def run_program(program: str, seconds: float = SECONDS) -> Outcome:
    """How `program` ends in an empty folder of its own, with a Python that reads no settings of the user's."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "guard.py").write_text(_GUARD, encoding="utf-8")
        (Path(folder) / "program.py").write_text(program, encoding="utf-8")
        start = "import runpy; runpy.run_path('guard.py'); runpy.run_path('program.py', run_name='__main__')"
        return run_limited([sys.executable, "-I", "-c", start], Path(folder), seconds)


def passes(program: str, seconds: float = SECONDS) -> bool:
    """Whether `program` is run to its last line in time. Leaving earlier with a good status is no success."""
    mark = secrets.token_hex(16)
    outcome = run_program(f"{program}\nprint({mark!r})\n", seconds)
    return outcome.status == 0 and outcome.output.rstrip().endswith(mark)
