"""What may come next in a Python file: syntax, scope and token healing as constraints over tokens.

Knows tree-sitter; never imports torch. Offsets are UTF-8 bytes, except that the two pure
functions exported here take `str` with code-point offsets as well.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from grammars.python_syntax import PrefixVerdict, check_prefix
    from grammars.scopes import ScopeView, visible_names

_EXPORTS = {
    "check_prefix": "grammars.python_syntax",
    "PrefixVerdict": "grammars.python_syntax",
    "visible_names": "grammars.scopes",
    "ScopeView": "grammars.scopes",
}

__all__ = ["PrefixVerdict", "ScopeView", "check_prefix", "visible_names"]


def __getattr__(name: str) -> Any:
    """Import what is exported on first use, so that importing the package costs nothing."""
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_EXPORTS[name]), name)
