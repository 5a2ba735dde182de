"""A set of names that can be asked for a whole name, and for the names that begin with some bytes.

Immutable, as bytes of UTF-8. What every module has (builtins, keywords) is a base that sets share.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property
from typing import Any


class Names:
    """An immutable set of names: its own and those of `base`.

    Attributes:
        memo: for whoever derives something from the set: it lives as long as the set does.
    """

    def __init__(self, names: Iterable[bytes], base: Names | None = None, smaller: Names | None = None) -> None:
        self.base = base
        self._smaller = smaller  # a set that has most of these names: what was derived from it is not made again
        inherited: frozenset[bytes] = base.all if base is not None else frozenset()
        self.own: frozenset[bytes] = frozenset(names) - inherited
        self.memo: dict[Any, Any] = {}
        self._larger: dict[frozenset[bytes], Names] = {}

    @cached_property
    def _sorted(self) -> list[bytes]:
        return sorted(self.own)

    @cached_property
    def all(self) -> frozenset[bytes]:
        """Every name."""
        if self._smaller is not None:
            return self._smaller.all | self.own
        return self.own | self.base.all if self.base is not None else self.own

    @cached_property
    def beginnings(self) -> frozenset[bytes]:
        """Everything that a name begins with, whole names included."""
        known = self._smaller or self.base
        new = self.own - self._smaller.own if self._smaller is not None else self.own
        own = frozenset(name[:size] for name in new for size in range(1, len(name) + 1))
        return known.beginnings | own if known is not None else own

    def __contains__(self, name: bytes) -> bool:
        return name in self.own or (self.base is not None and name in self.base)

    def beginning_with(self, prefix: bytes) -> list[bytes]:
        """The names that begin with `prefix`."""
        found = self.base.beginning_with(prefix) if self.base is not None else []
        order = self._sorted
        at = bisect_left(order, prefix)
        while at < len(order) and order[at].startswith(prefix):
            found.append(order[at])
            at += 1
        return found

    def any_begins_with(self, prefix: bytes) -> bool:
        """Whether a name begins with `prefix`."""
        order = self._sorted
        at = bisect_left(order, prefix)
        if at < len(order) and order[at].startswith(prefix):
            return True
        return self.base is not None and self.base.any_begins_with(prefix)

    def joined(self, names: frozenset[bytes]) -> Names:
        """This set with further names: the same object for the same names, so that its memo counts."""
        found = self._larger.get(names)
        if found is None:
            new = frozenset(name for name in names if name not in self)
            found = self._larger[names] = Names(self.own | new, self.base, self) if new else self
        return found
