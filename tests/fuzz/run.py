"""Fuzz the library for some minutes and print what happened.

    python tests/fuzz/run.py --minutes 30
    python tests/fuzz/run.py --minutes 1 --only RLACE --seed 7
    python tests/fuzz/run.py --replay 12345          one seed again, with its plan

Every seed is one plan: an eraser (or another entry) with data, a concept, weights and parameters,
called and checked. The exit code is 1 if there was a fault. The first of each kind is named on
stderr when it comes; at the end every kind is printed with how often it came, its first seed, and
the simplest plan that still shows it.
"""
# ruff: noqa: T201

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

import scipy.linalg  # noqa: F401  # loads SciPy's BLAS, so that it is limited too
from drawing import draw_plan
from findings import OUTCOMES, Finding
from plans import Plan, RandomSource
from simplifying import guarded, simplest
from threadpoolctl import threadpool_limits


@dataclass
class Tally:
    """What was seen: outcomes by entry, faults by kind, refusals by message."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    calls: int = 0
    faults: dict[tuple[str, str, str], tuple[int, int, str]] = field(default_factory=dict)
    refusals: Counter[str] = field(default_factory=Counter)

    def note(self, seed: int, plan: Plan) -> None:
        """Run a plan and count it."""
        try:
            report = guarded(plan)
        except Finding as finding:
            self.outcomes[plan.entry, finding.outcome] += 1
            self.calls += 1
            kind = (finding.outcome, plan.entry, finding.name)
            if kind not in self.faults:
                print(f"{': '.join(kind)}: seed {seed}", file=sys.stderr, flush=True)
            self._fault(kind, 1, seed, finding.details)
        else:
            self.outcomes[plan.entry, "refused" if report.refusal else "ok"] += 1
            self.calls += report.calls
            if report.refusal and plan.is_valid:
                self.refusals[report.refusal] += 1

    def _fault(self, kind: tuple[str, str, str], times: int, seed: int, details: str) -> None:
        before = self.faults.get(kind, (0, seed, details))
        self.faults[kind] = (before[0] + times, *before[1:])

    def add(self, other: Tally) -> None:
        """Take over what another process has seen."""
        self.outcomes += other.outcomes
        self.refusals += other.refusals
        self.calls += other.calls
        for kind, (times, seed, details) in other.faults.items():
            self._fault(kind, times, seed, details)


def work(queue: multiprocessing.Queue[Tally], seeds: range, until: float, options: Options) -> None:
    """Run seed after seed until the time is up."""
    threadpool_limits(1, user_api="blas")
    tally = Tally()
    for seed in seeds:
        if time.monotonic() > until:
            break
        tally.note(seed, draw_plan(RandomSource(seed), options.only))
    queue.put(tally)


@dataclass(frozen=True)
class Options:
    """What was asked for on the command line."""

    only: str | None


def show(tally: Tally, seconds: float) -> None:
    """The table: entries by outcome."""
    entries = sorted({entry for entry, _ in tally.outcomes})
    width = max(map(len, [*entries, "all"]), default=3)
    print("\n" + " " * width + "".join(f"{outcome:>9}" for outcome in OUTCOMES) + f"{'all':>9}")
    for entry in [*entries, "all"]:
        counts = [
            sum(n for (e, o), n in tally.outcomes.items() if o == outcome and entry in (e, "all"))
            for outcome in OUTCOMES
        ]
        print(f"{entry:{width}}" + "".join(f"{n:9,}" for n in [*counts, sum(counts)]))
    total = tally.outcomes.total()
    print(
        f"\n{total:,} plans, {tally.calls:,} calls in {seconds:,.0f} s ({total / seconds:.0f} plans"
        " a second)"
    )
    if tally.refusals:
        print("\nValid plans that were refused, by message:")
        for message, times in tally.refusals.most_common(15):
            print(f"{times:9,}  {message[:110]}")


def explain(tally: Tally, options: Options) -> None:
    """Every kind of fault with its simplest plan."""
    order = sorted(tally.faults.items(), key=lambda item: (item[0][0] != "unsound", item[0]))
    for (outcome, entry, name), (times, seed, details) in order:
        print(f"\n{outcome}: {entry}: {name} ({times} times)\n  seed {seed}: {details[:300]}")
        plan = draw_plan(RandomSource(seed), options.only)
        plan, finding = simplest(plan, Finding(outcome, name, details))
        print(f"  {plan}\n  {finding.details[:300]}", flush=True)


def replay(seed: int, options: Options) -> int:
    """One seed, with its plan and the outcome."""
    plan = draw_plan(RandomSource(seed), options.only)
    print(plan)
    try:
        report = guarded(plan)
    except Finding as finding:
        print(finding)
        return 1
    print(f"refused: {report.refusal}" if report.refusal else "ok")
    return 0


def main() -> int:
    """Read the command line and fuzz."""
    parser = argparse.ArgumentParser(description="Fuzz expunge.")
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=None, help="first seed; the clock by default")
    parser.add_argument("--only", default=None, help="one entry, e.g. RLACE or certify")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument("--replay", type=int, default=None, help="run this seed alone")
    given = parser.parse_args()
    options = Options(given.only)
    threadpool_limits(1, user_api="blas")
    if given.replay is not None:
        return replay(given.replay, options)
    first = given.seed if given.seed is not None else int(time.time()) % 10**6 * 10**6
    print(f"seeds from {first}", flush=True)
    start = time.monotonic()
    until = start + 60 * given.minutes
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[Tally] = context.Queue()
    workers = [
        context.Process(
            target=work,
            args=(queue, range(first + k, first + 10**9, given.processes), until, options),
        )
        for k in range(given.processes)
    ]
    for worker in workers:
        worker.start()
    tally, crashed = Tally(), 0
    for _ in workers:
        tally.add(queue.get())
    for worker in workers:
        worker.join()
        crashed += worker.exitcode != 0
    show(tally, time.monotonic() - start)
    explain(tally, options)
    if crashed:
        print(f"\n{crashed} processes ended by themselves")
    return 1 if tally.faults or crashed else 0


if __name__ == "__main__":
    sys.exit(main())
