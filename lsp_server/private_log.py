"""Logging that cannot leak source text.

Libraries log message bodies, parameters and exceptions that quote them. So of records that are not ours only the
template is written, never its arguments, and of exceptions only their types and places.
"""

from __future__ import annotations

import logging
import sys
import traceback

OURS = ("lsp_server", "decoding", "grammars")


class PrivateFormatter(logging.Formatter):
    """One line a record; foreign records without arguments, tracebacks without texts."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line, then the places of its exception."""
        ours = record.name.split(".")[0] in OURS
        safe = logging.makeLogRecord(record.__dict__)
        safe.exc_info, safe.exc_text, safe.stack_info = None, None, None
        if not ours:
            safe.msg, safe.args = record.msg if isinstance(record.msg, str) and record.args else _kind(record), ()
        line = super().format(safe).replace("\n", " ")
        return "\n".join([line, *_places(record)])


def _kind(record: logging.LogRecord) -> str:
    """Stands for a foreign message that was formatted before it was logged, and so may quote anything."""
    return f"a message of {record.pathname.rsplit('/', 1)[-1]}:{record.lineno}"


def _places(record: logging.LogRecord) -> list[str]:
    if not record.exc_info or record.exc_info[1] is None:
        return []
    error = record.exc_info[1]
    frames = traceback.extract_tb(error.__traceback__)
    return [f"  {type(error).__name__}", *(f"    {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)]


def set_up(level: int = logging.WARNING) -> None:
    """Sends every record to stderr, privately. Replaces handlers that were there."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrivateFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level)
    logging.getLogger("pygls").setLevel(max(level, logging.ERROR))  # it warns of every cancel that came too late
