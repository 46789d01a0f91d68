"""From a plan that shows a fault to the simplest one that still does."""

from __future__ import annotations

import time
import traceback

from calling import Report, run
from findings import Finding
from plans import Plan, simpler

__all__ = ["guarded", "simplest"]

MINIMISING = 20.0  # seconds that are spent on making one fault simpler


def guarded(plan: Plan) -> Report:
    """Run a plan; an error in the fuzzer itself is a fault too, and must not end the process."""
    try:
        return run(plan)
    except Finding:
        raise
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        name = f"{type(error).__name__} in the fuzzer, {place.name}:{place.lineno}"
        raise Finding("raw", name, str(error)) from error


def simplest(plan: Plan, finding: Finding) -> tuple[Plan, Finding]:
    """The simplest plan found in some seconds that shows the same kind of fault."""
    until, going = time.monotonic() + MINIMISING, True
    while going:
        going = False
        for other in simpler(plan):
            if time.monotonic() > until:
                return plan, finding
            try:
                guarded(other)
            except Finding as found:
                if (found.outcome, found.name) == (finding.outcome, finding.name):
                    plan, finding, going = other, found, True
                    break
    return plan, finding
