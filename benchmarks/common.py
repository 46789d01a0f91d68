"""What the benchmark scripts share: two clocks, one table, the name of the machine."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path


def machine() -> str:
    """The processor's name and how many cores this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    except OSError:
        named = []
    wide = any("avx512f" in line for line in lines) if named else False
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    name = named[0] if named else platform.processor() or platform.machine()
    return f"{name}{', AVX-512' * wide}, {cores} cores, load {os.getloadavg()[0]:.1f}"


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


def both_ratios_of(
    work: Callable[[], object], base: Callable[[], object], repeats: int = 7
) -> tuple[float, float]:
    """The same by the clock on the wall and in processor seconds, which other work disturbs less.

    Work in two threads spends both their processor seconds: on two idle cores its time on the wall
    is half of them.
    """
    times = []
    for _ in range(repeats):
        pair = []
        for run in (work, base):
            wall, processor = time.perf_counter(), time.process_time()
            run()
            pair.append((time.perf_counter() - wall, time.process_time() - processor))
        times.append(pair)
    walls, processors = (
        [min(pair[which][clock] for pair in times) for which in (0, 1)] for clock in (0, 1)
    )
    return walls[0] / walls[1], processors[0] / processors[1]


def show(claim: str, ratio: float, target: float, *, at_most: bool = True) -> None:
    """One line: the claim, the ratio, the target and whether it is met."""
    met = ratio <= target if at_most else ratio >= target
    sign = "<=" if at_most else ">="
    print(f"{claim:<72} {ratio:12.5g}   target {sign} {target:g}   {'met' if met else 'MISSED'}")
