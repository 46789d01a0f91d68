"""What the benchmark scripts share: one clock, one table."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_of(work: Callable[[], object], repeats: int = 5) -> float:
    """Shortest of several timings, in seconds: the least disturbed one."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return best


def ratio_of(work: Callable[[], object], base: Callable[[], object], repeats: int = 7) -> float:
    """Shortest time of `work` over that of `base`, timed in turns so that drift hits both."""
    times = [(best_of(work, 1), best_of(base, 1)) for _ in range(repeats)]
    return min(t for t, _ in times) / min(t for _, t in times)


def show(claim: str, ratio: float, target: float, *, at_most: bool = True) -> None:
    """One line: the claim, the ratio, the target and whether it is met."""
    met = ratio <= target if at_most else ratio >= target
    sign = "<=" if at_most else ">="
    print(f"{claim:<72} {ratio:12.5g}   target {sign} {target:g}   {'met' if met else 'MISSED'}")
