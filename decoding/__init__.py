"""The engine: guided speculative decoding with dynamic draft trees.

Knows torch and transformers; never imports pygls. Importing this package is cheap: nothing heavy is loaded
until a name that needs it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decoding.library import SpeculativeReasoningEngine

__all__ = ["SpeculativeReasoningEngine"]

_HOMES = {"SpeculativeReasoningEngine": "decoding.library"}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
