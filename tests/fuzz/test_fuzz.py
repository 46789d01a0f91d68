"""A minute of fuzzing: every entry on plans drawn by Hypothesis, the same ones every time.

`make fuzz` runs as many more as there is time for, see `run.py`.
"""

import pytest
from calling import run
from drawing import ENTRIES, FIXED, draw_plan, parameter_names
from findings import Finding
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from plans import Plan, RandomSource, Rows, Target, Weights, simpler  # noqa: F401  # for eval
from simplifying import simplest

import expunge as ex

EXAMPLES = {"RLACE": 100, "certify": 100, "INLP": 50}


class HypothesisSource:
    """Choices drawn by Hypothesis."""

    def __init__(self, draw):
        self.draw = draw

    def integer(self, low, high):
        return self.draw(st.integers(low, high))

    def number(self, low, high):
        return self.draw(st.floats(low, high))

    def choice(self, options):
        return self.draw(st.sampled_from(list(options)))

    def chance(self, probability):
        return self.draw(st.integers(0, 99)) >= 100 - round(100 * probability)


@st.composite
def plans(draw, entry):
    return draw_plan(HypothesisSource(draw), entry)


def check(plan):
    """Run a plan; a fault is shown by the simplest plan that has it."""
    try:
        run(plan)
    except Finding as found:
        plan, found = simplest(plan, found)
        raise AssertionError(f"{found}\nrun({plan})") from found


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_fault_is_found(entry):
    @settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=EXAMPLES.get(entry, 70),
        phases=(Phase.generate,),  # a plan has simpler ones of its own
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(plans(entry))
    def search(plan):
        check(plan)

    search()


@pytest.mark.parametrize("entry", ["rank_path", "compare", "audit"])
def test_no_fault_is_found_in_what_trains_probes(entry):
    for seed in range(2):
        check(draw_plan(RandomSource(seed), entry))


@pytest.mark.parametrize("name", ex.ERASERS)
def test_every_parameter_is_drawn(name):
    """A parameter that is added has to be drawn too, or named as one that changes nothing."""
    drawn = set()
    for seed in range(1500):
        drawn |= draw_plan(RandomSource(seed), name).parameters.keys()
    assert drawn - {""} >= parameter_names(name) - FIXED


def test_plans_have_everything_they_should():
    """The sizes, types, units, concepts and weights that break careless numerics are drawn."""
    drawn = [draw_plan(RandomSource(seed)) for seed in range(4000)]
    rows = [plan.rows for plan in drawn]
    assert {row.dtype for row in rows} >= {"float64", "float32", "float16", "int64", "bool"}
    assert {row.n for row in rows} >= set(range(2, 60))
    assert {row.d for row in rows} == set(range(1, 13))
    assert any(row.d > row.n for row in rows)
    assert {row.tails for row in rows} == {0.0, 0.5, 1.0, 2.0, 3.0}
    assert {row.empty for row in rows} == {0.0, 0.5, 0.9, 0.98}
    assert {plan.target.kind for plan in drawn} == {
        *("binary", "classes", "labels", "number", "vector", "several", "sets")
    }
    assert max(plan.weights.ratio for plan in drawn) == 1e8
    assert {plan.entry for plan in drawn} >= ENTRIES.keys()
    alphas = [plan.parameters["alpha"] for plan in drawn if "alpha" in plan.parameters]
    numbers = [alpha for alpha in alphas if isinstance(alpha, float) and alpha > 0]
    assert min(numbers) < 1e-11
    assert {plan.bad for plan in drawn} >= {"rank", "strength", "alpha", "tol", "loss"}
    assert 0.5 < sum(plan.is_valid for plan in drawn) / len(drawn) < 0.98
    assert sum(plan.is_tame for plan in drawn) > 200


def test_a_printed_plan_is_the_plan():
    names, compared = {**globals(), "nan": float("nan"), "inf": float("inf")}, 0
    for seed in range(300):
        plan = draw_plan(RandomSource(seed))
        found = eval(repr(plan), names)
        assert repr(found) == repr(plan)
        if "nan" not in repr(plan):  # which equals nothing
            compared += 1
            assert found == plan
    assert compared > 200


def test_simpler_plans_end():
    plan, steps = draw_plan(RandomSource(3)), 0
    while (smaller := next(simpler(plan), None)) is not None:
        plan, steps = smaller, steps + 1
        assert steps < 200
    assert plan == Plan(plan.entry, erasure=plan.erasure)
