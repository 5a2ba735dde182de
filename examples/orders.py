"""Sum up a shop's orders."""

from collections.abc import Iterable


def total_by_customer(orders: Iterable[tuple[str, float]]) -> dict[str, float]:
    """What each customer spent in all."""
    totals: dict[str, float] = {}
    
    return totals
