"""The search for starts, on an ascent that only notes what it is asked: what goes where."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from test_problem_twins import make

from expunge.game import subspace_ascent as module
from expunge.game.climbing import Point
from expunge.game.predictor import Problem
from expunge.game.result import Step, StopReason
from expunge.game.solver import Game, SolveOptions
from expunge.game.subspace_ascent import SubspaceAscent, _Climb, _same, _Search, _smaller
from expunge.inputs import check_concept, check_rows

THROUGH = (15, 1e-4, 1e-2)  # what a start may cost at a higher ridge: steps, tolerance, flatness
TO_LAST = (8, 1e-5, 1e-2)
FURTHER = (60, 1e-5, 1e-3)
BETWEEN = (6, 1e-4, 1e-2)


def height(U):
    """A value for every subspace."""
    return 1 + float(U[0] @ U[0])


def point(U, value=None):
    found = SimpleNamespace(value=height(U) if value is None else value, accuracy=0.5)
    return Point(U, found, np.zeros_like(U))


class Noted:
    """In place of an ascent: every start stays where it is, and what was asked is kept."""

    def __init__(self, problem):
        self.problem, self.ridge, self.reached, self.n_passes = problem, problem.alpha, None, 0
        self.solved, self.alternated, self.climbed = [], [], []

    def at_ridge(self, alpha):
        self.ridge = alpha

    def solve(self, U, tol):
        self.solved.append((self.ridge, tol))
        return point(U)

    def alternate(self, start, steps, tol):
        self.alternated.append((self.ridge, steps, tol))
        return start

    def climb(self, U, steps, tol, flat, callback=None):
        self.climbed.append((self.ridge, U, (steps, tol, flat)))
        return point(U), [Step(0, height(U))], StopReason.CONVERGED

    def starts_at(self, ridge):
        return [U for at, U, _ in self.climbed if at == ridge]

    def costs(self):
        return {(ridge, cost) for ridge, _, cost in self.climbed}


def search(d, rank, higher, last, seed=0):
    _, p = make("labels", d=d, n=60)
    p.alpha = 1e-4
    few = Noted(p)
    few.ridge = None  # nobody has said yet
    return _Search(few, rank, higher, last, np.random.default_rng(seed))


def best_of(starts, count):
    return sorted(starts, key=height, reverse=True)[:count]


def same_subspaces(found, expected):
    assert len(found) == len(expected)
    for U, V in zip(found, expected, strict=True):
        np.testing.assert_allclose(U @ U.T, V @ V.T, atol=1e-12)


# -- exploring -------------------------------------------------------------------------------------


def test_the_best_starts_go_on_from_ridge_to_ridge():
    s = search(20, 2, [3e-2, 3e-3], 1e-4)
    assert not s.small  # more dimensions than a survey could cover
    span = s.few.problem.null.directions
    np.testing.assert_array_equal(s.best, span[:, :2])
    chosen = s.explore(6)
    first, second, third = (s.few.starts_at(ridge) for ridge in (3e-2, 3e-3, 1e-4))
    np.testing.assert_array_equal(first[0], span[:, :2])
    assert len(first) == 7
    for U in first:
        np.testing.assert_allclose(span @ (span.T @ U), U, atol=1e-12)  # within the span
        np.testing.assert_allclose(U.T @ U, np.eye(2), atol=1e-12)
    assert len({height(U) for U in first}) == 7
    same_subspaces(second, best_of(first, 3))
    same_subspaces(third, best_of(second, 2))
    same_subspaces([chosen, s.best], [third[0]] * 2)
    same_subspaces([p.U for p in s.found], third)
    assert s.few.costs() == {(3e-2, THROUGH), (3e-3, THROUGH), (1e-4, TO_LAST)}
    assert s.few.solved == [(3e-2, 1e-3)] * 7 + [(3e-3, 1e-3)] * 3
    assert s.few.alternated == [(3e-2, 3, 1e-3)] * 7 + [(3e-3, 3, 1e-3)] * 3


def test_where_solves_are_dear_the_search_ends_at_a_higher_ridge():
    s = search(20, 2, [3e-2, 3e-3], 3e-3)
    chosen = s.explore(6)
    assert Counter(ridge for ridge, *_ in s.few.climbed) == {3e-2: 7, 3e-3: 3}
    same_subspaces([chosen, s.best], best_of(s.few.starts_at(3e-3), 1) * 2)
    assert len(s.found) == 3
    assert not search(4, 1, [3e-2, 3e-3], 3e-3).small  # and nothing is surveyed


def test_without_higher_ridges_all_starts_are_compared_at_the_last():
    s = search(20, 2, [], 1e-4)
    s.explore(6)
    assert len(s.few.starts_at(1e-4)) == len(s.few.climbed) == 7


def test_a_single_start_is_not_compared_with_anything():
    s = search(20, 2, [3e-2, 3e-3], 1e-4)
    chosen = s.explore(0)
    assert Counter(ridge for ridge, *_ in s.few.climbed) == {3e-2: 1, 3e-3: 1}
    np.testing.assert_array_equal(chosen, s.few.problem.null.directions[:, :2])
    assert s.found == []
    s.another()  # has to be compared with something
    assert len(s.found) == 2
    np.testing.assert_array_equal(s.few.starts_at(1e-4)[0], chosen)


def test_starts_that_lead_to_one_place_go_on_as_one():
    s = search(20, 2, [3e-2, 3e-3], 1e-4)
    place, climb = s.few.problem.null.directions[:, :2], s.few.climb
    s.few.climb = lambda U, *args: climb(place, *args)
    s.explore(6)
    assert Counter(ridge for ridge, *_ in s.few.climbed) == {3e-2: 7, 3e-3: 1}


def test_one_maximum_is_one_value_at_one_subspace():
    U = np.eye(3)[:, :1]
    near, far = ([[1.0], [t], [0.0]] / np.hypot(1, t) for t in (0.33, 0.34))  # sine² about 0.1
    assert _same(point(U, 1.0), point(near, 1.0))
    assert not _same(point(U, 1.0), point(far, 1.0))
    for value, same in ((0.9992, True), (0.9988, False), (0.5, False)):
        assert _same(point(U, 1.0), point(U, value)) == same
        assert _same(point(U, value), point(U, 1.0)) == same
    two = np.eye(4)[:, :2]
    turned = two @ np.array([[0.6, -0.8], [0.8, 0.6]])
    assert _same(point(two, 1.0), point(turned, 1.0))


# -- the survey ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "rank", "small"), [(9, 4, True), (12, 4, True), (12, 5, False), (33, 1, True)]
)
def test_few_dimensions_are_surveyed(d, rank, small):
    """32 dimensions of the set of subspaces, or fewer."""
    s = search(d, rank, [3e-2], 1e-4)
    assert s.small == (rank * (d - rank) <= 32) == small


def test_a_survey_costs_no_more_than_it_may(monkeypatch):
    s = search(5, 1, [3e-2], 1e-4)
    price = 60 * (5 * 3) ** 2
    assert s.pool == 256
    for pool, small in ((40, True), (32, True), (31, False)):
        monkeypatch.setattr(module, "SURVEY_COST", pool * price)
        s = search(5, 1, [3e-2], 1e-4)
        assert (s.pool, s.small) == (pool, small)


def test_small_problems_are_surveyed_too_and_nothing_is_dropped_on_the_way(monkeypatch):
    asked = []

    def survey(problem, pool):
        asked.append((s.few.ridge, pool))
        return np.array([height(U) for U in pool])

    monkeypatch.setattr(module, "survey", survey)
    s = search(5, 1, [3e-2, 3e-3], 1e-4)
    assert s.small
    chosen = s.explore(3)
    (ridge, pool), first, second = asked[0], s.few.starts_at(3e-2), s.few.starts_at(3e-3)
    assert ridge == 1e-4
    assert pool.shape == (256, 5, 1)
    span = s.few.problem.null.directions
    inside = np.linalg.norm(pool[..., 0] @ span, axis=1)
    np.testing.assert_allclose(inside[::2], 1)
    assert np.median(inside[1::2]) < 0.99
    assert len(first) == 4
    same_subspaces(second, best_of(first, 4))
    last = [(U, cost) for ridge, U, cost in s.few.climbed if ridge == 1e-4]
    ends = [U for U, cost in last if cost == TO_LAST]
    same_subspaces(ends[:4], second)
    surveyed = ends[4:]
    assert len(surveyed) == 6  # two for every random start
    np.testing.assert_array_equal(surveyed[0], max(pool, key=height))
    for i, U in enumerate(surveyed):
        for V in surveyed[:i]:
            assert height(U) <= height(V)
            assert 1 - float((U.T @ V).item() ** 2) > 0.1
    better = [U for U in pool if height(U) > height(surveyed[-1])]
    assert all(any(1 - (U.T @ V).item() ** 2 <= 0.1 for V in surveyed) for U in better)
    further = [U for U, cost in last if cost == FURTHER]
    same_subspaces(further, best_of([p.U for p in s.found], 3))
    assert len(last) == 13
    same_subspaces([chosen, s.best], further[:1] * 2)
    assert len(s.found) == len(module._distinct([point(U) for U in ends]))


def test_a_survey_of_planes_keeps_them_apart(monkeypatch):
    monkeypatch.setattr(module, "survey", lambda problem, pool: np.array([*map(height, pool)]))
    s = search(5, 2, [], 1e-4)
    found = s._surveyed(200)
    assert 5 < len(found) < 200
    for i, U in enumerate(found):
        assert all(2 - np.sum((U.T @ V) ** 2) > 0.1 for V in found[:i])


def test_nothing_is_surveyed_where_nothing_is_explored(monkeypatch):
    monkeypatch.setattr(module, "survey", None)
    s = search(5, 1, [3e-2, 3e-3], 1e-4)
    assert s.small
    s.explore(0)
    assert Counter(ridge for ridge, *_ in s.few.climbed) == {3e-2: 1, 3e-3: 1}


def test_the_best_of_a_small_problem_is_the_one_that_gets_furthest(monkeypatch):
    monkeypatch.setattr(module, "survey", lambda problem, pool: np.array([*map(height, pool)]))
    s = search(5, 1, [3e-2], 1e-4)
    climb = s.few.climb

    def further(U, steps, *args):
        found, *rest = climb(U, steps, *args)
        return (point(U, 10 - found.value) if steps == 60 else found), *rest

    s.few.climb = further
    chosen = s.explore(3)
    went = [U for _, U, cost in s.few.climbed if cost == FURTHER]
    assert len(went) == 3
    same_subspaces([chosen, s.best], [min(went, key=height)] * 2)
    assert [p.value > 5 for p in s.found] == [True] * 3 + [False] * (len(s.found) - 3)
    assert len(s.found) > 3


# -- restarts --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("d", "rank", "last", "expected"),
    [
        (20, 2, 1e-4, [[3e-2, 1e-2, 3e-3, 1e-4], [3e-3, 1e-4]]),
        (20, 2, 3e-3, [[3e-2, 1e-2, 3e-3], [3e-3]]),
        (5, 1, 1e-4, [[3e-2, 1e-2, 3e-3, 1e-4], [1e-4]]),
    ],
)
def test_every_second_restart_takes_a_shorter_way(d, rank, last, expected):
    s = search(d, rank, [3e-2, 1e-2, 3e-3], last)
    s.found = [point(s.best, 0.0)]
    span = s.few.problem.null.directions
    for turn in range(4):
        s.few.climbed.clear()
        s.another()
        assert [ridge for ridge, *_ in s.few.climbed] == expected[turn % 2]
        assert len(s.found) == turn + 2
        U = s.few.climbed[0][1]
        inside = np.linalg.norm(span.T @ U) ** 2 / rank
        anywhere = turn % 2 == 1 and d == 5  # a small problem has few dimensions to be lost in
        assert (inside < 0.999) == anywhere


@pytest.mark.parametrize(("share", "taken"), [(0.5, False), (0.985, False), (0.995, True)])
def test_a_restart_is_climbed_if_it_is_new_and_worth_it(share, taken):
    s = search(20, 2, [3e-2, 3e-3], 1e-4)
    s.few.climb = lambda U, *_: (point(U, share * 2.0), [], None)
    low, high = point(np.eye(20)[:, :2], 1.0), point(np.eye(20)[:, 2:4], 2.0)
    s.found = [low, high]
    assert (s.another() is not None) == taken
    assert len(s.found) == 3
    s.few.climb = lambda U, *_: (s.found[-1], [], None)
    assert s.another() is None  # others have been there


# -- all rows --------------------------------------------------------------------------------------


def climb_on(monkeypatch, *, dear, final=1e-4, tol=1e-6, n=60, **settings):
    monkeypatch.setattr(module, "Ascent", Noted)
    if dear:
        monkeypatch.setattr("expunge.game.problem.SMALL", 1)
    _, p = make("labels", n=n, d=20)
    p.alpha = final
    return _Climb(p, 2, SubspaceAscent(**settings), 33, tol, lambda record: False)


@pytest.mark.parametrize(
    ("tol", "dear", "cost"),
    [
        (1e-6, False, (33, 1e-8, 1e-4)),
        (1e-8, False, (33, 1e-9, 1e-5)),
        (1e-4, True, (33, 1e-5, 3e-2)),
    ],
)
def test_climbs_on_all_rows_are_as_exact_as_they_should_be(monkeypatch, tol, dear, cost):
    climb = climb_on(monkeypatch, dear=dear, tol=tol)
    U = np.eye(20)[:, :2]
    end = climb.finish(U, climb.higher[-1:])
    *before, (ridge, _, last) = climb.ascent.climbed
    assert ridge == 1e-4
    np.testing.assert_allclose(last, cost)
    between = [np.sqrt(3e-3 * 1e-4)] if dear else []  # on the way, where steps are rough
    np.testing.assert_allclose([ridge for ridge, *_ in before], [3e-3, *between])
    assert {cost for *_, cost in before} == {BETWEEN}
    assert end.reason is StopReason.CONVERGED
    assert end.point.value == end.history[-1].value == height(U)


def test_ridges_not_above_the_final_one_are_left_out(monkeypatch):
    assert climb_on(monkeypatch, dear=False).higher == [3e-2, 3e-3]
    assert climb_on(monkeypatch, dear=False, final=3e-3).higher == [3e-2]
    climb = climb_on(monkeypatch, dear=True, final=0.5)
    assert climb.higher == []
    assert climb.between == []


@pytest.mark.parametrize("dear", [False, True])
def test_exploring_goes_to_the_final_ridge_unless_solves_are_dear(monkeypatch, dear):
    climb = climb_on(monkeypatch, dear=dear, explore=3)
    climb.explore_and_finish(2, np.random.default_rng(0))
    assert climb.search.last == (3e-3 if dear else 1e-4)
    assert len(climb.search.few.starts_at(3e-2)) == 4 + 1  # and that of the first restart
    assert climb.search.n_restarts == 2
    without = climb_on(monkeypatch, dear=dear, explore=3, ridges=())
    without.explore_and_finish(0, np.random.default_rng(0))
    assert without.search.last == 1e-4


def test_passes_over_some_rows_count_by_their_share(monkeypatch):
    climb = climb_on(monkeypatch, dear=False)
    climb.ascent.n_passes = 7
    assert climb.n_passes() == 7
    few = SimpleNamespace(n_passes=11, problem=SimpleNamespace(rows=SimpleNamespace(n_samples=20)))
    climb.search = SimpleNamespace(few=few)
    assert climb.n_passes() == 7 + 3


def test_the_best_of_what_was_reached_before_an_interruption(monkeypatch):
    climb = climb_on(monkeypatch, dear=False)
    low, high = np.eye(20)[:, 1:3], np.eye(20)[:, :2]
    for reached in ([low, high], [high, low], [None, high]):
        climb.ascent.climbed.clear()
        end = climb._interrupted(reached)
        np.testing.assert_array_equal(end.point.U, high)
        assert end.reason is StopReason.INTERRUPTED
        assert climb.ascent.climbed[0][2][0] == 0  # its value alone
    assert set(climb.ascent.solved) == {(1e-4, 1e-5)}


def restarted(climb, values, reason=StopReason.CONVERGED):
    """One restart that climbs through these values, from an end at 1.0; and what was told of it."""
    U = np.eye(20)[:, :2]
    seen = []
    climb.tell = lambda record: seen.append(record) or record.value == 1.6
    climb.search = SimpleNamespace(another=lambda: U)
    best = module._End(point(U, 1.0), [Step(0, 0.4), Step(1, 1.0)], StopReason.MAX_ITER)

    def to(U, steps, tol, flat, tell):
        history = [Step(k, value) for k, value in enumerate(values)]
        answers = [tell(record) for record in history[1:]]
        return point(U, values[-1]), history, StopReason.STOPPED if any(answers) else reason

    climb.ascent.climb = to
    return best, climb._restart(best), seen


def test_a_better_restart_goes_on_where_the_history_ended(monkeypatch):
    climb = climb_on(monkeypatch, dear=False)
    best, end, seen = restarted(climb, [0.1, 0.9, 1.5, 1.4, 2.0])
    assert end.history == [*best.history, Step(2, 1.5), Step(3, 2.0)]
    assert seen == end.history[2:]
    assert (end.point.value, end.reason) == (2.0, StopReason.CONVERGED)
    assert best.history == [Step(0, 0.4), Step(1, 1.0)]  # another's
    best, end, seen = restarted(climb, [3.0])  # it started there and took no step
    assert end.history == [*best.history, Step(2, 3.0)]
    best, end, seen = restarted(climb, [0.1, 1.6])  # and may be stopped
    assert end.reason is StopReason.STOPPED
    assert [record.value for record in seen] == [1.6]


@pytest.mark.parametrize("values", [[0.1, 0.9], [1.0], [0.1, 1.0]])
def test_a_restart_that_is_no_better_changes_nothing(monkeypatch, values):
    climb = climb_on(monkeypatch, dear=False)
    best, end, seen = restarted(climb, values)
    assert end is best
    assert seen == []
    best, end, _ = restarted(climb, values, StopReason.INTERRUPTED)
    assert (end.point, end.history, end.reason) == (
        best.point,
        best.history,
        StopReason.INTERRUPTED,
    )
    climb.search.another = lambda: None  # where others have been
    assert climb._restart(best) is best


def test_restarts_end_when_someone_says_so(monkeypatch):
    calls = []
    for reason, expected in ((StopReason.CONVERGED, 3), (StopReason.STOPPED, 0)):
        climb = climb_on(monkeypatch, dear=False, explore=1)
        calls.clear()
        monkeypatch.setattr(
            climb, "finish", lambda U, ridges, reason=reason: module._End(point(U), [], reason)
        )
        monkeypatch.setattr(climb, "_restart", lambda best: calls.append(best) or best)
        climb.explore_and_finish(3, np.random.default_rng(0))
        assert len(calls) == expected


@pytest.mark.parametrize("at", [1, 2])
def test_an_interruption_on_the_way_to_the_final_ridge_keeps_where_it_was(monkeypatch, at):
    climb, calls = climb_on(monkeypatch, dear=False), []
    start, further = np.eye(20)[:, 1:3], np.eye(20)[:, :2]
    stay = climb.ascent.climb

    def interrupted(U, *args):
        calls.append(U)
        if len(calls) == at:
            climb.ascent.reached = further
            raise KeyboardInterrupt
        return stay(U, *args)

    climb.ascent.climb = interrupted
    end = climb.finish(start, [3e-2, 3e-3])
    assert end.reason is StopReason.INTERRUPTED
    np.testing.assert_array_equal(end.point.U, further)  # the higher of the two
    assert climb.ascent.ridge == 1e-4


def test_an_interruption_of_the_search_keeps_the_best_of_it(monkeypatch):
    climb = climb_on(monkeypatch, dear=False)
    seen = []
    monkeypatch.setattr(climb, "_interrupted", seen.append)

    def interrupted(self, count):
        self.best, self.few.reached = "best", "reached"
        raise KeyboardInterrupt

    monkeypatch.setattr(_Search, "explore", interrupted)
    climb.explore_and_finish(3, np.random.default_rng(0))
    leading, *others = seen[0]
    np.testing.assert_array_equal(leading, climb.ascent.problem.null.directions[:, :2])
    assert others == ["best", "reached"]


def test_a_start_passes_through_the_lowest_of_the_higher_ridges(monkeypatch):
    monkeypatch.setattr(module, "Ascent", Noted)
    _, p = make("labels", d=20, n=60)
    p.alpha = 1e-4
    made = []
    monkeypatch.setattr(module, "_Climb", lambda *args: made.append(_Climb(*args)) or made[-1])
    options = SolveOptions(np.random.default_rng(0))
    start = np.eye(20)[:, :2]
    three = SubspaceAscent(ridges=(3e-2, 1e-2, 3e-3))
    found = three.solve(Game.on(p, 2), options, start=start)
    asked = [(ridge, cost[0]) for ridge, _, cost in made[0].ascent.climbed]
    assert asked == [(3e-3, 6), (1e-4, 100)]
    np.testing.assert_array_equal(np.abs(found.basis), start)
    p.alpha = 1e-4
    options = SolveOptions(np.random.default_rng(0), max_iter=9)
    SubspaceAscent().solve(Game.on(p, 3), options)  # the concept's own rank: the closed form
    asked = [(ridge, cost[0]) for ridge, _, cost in made[1].ascent.climbed]
    assert asked == [(3e-3, 6), (1e-4, 9)]


class Bar:
    """In place of a progress bar."""

    def __init__(self, title, total, verbose):
        self.total, self.shown = total, []

    def __enter__(self):
        Bar.last = self
        return self

    def __exit__(self, *args):
        pass

    def update(self, step, text):
        self.shown.append((step, text))


def test_the_bar_tells_how_far_the_value_is_from_the_bound(monkeypatch):
    monkeypatch.setattr(module, "Progress", Bar)
    _, p = make("labels", d=8, alpha=1e-2)
    start = np.linalg.qr(np.random.default_rng(0).normal(size=(8, 1)))[0]
    options = SolveOptions(np.random.default_rng(0))
    found = SubspaceAscent().solve(Game.on(p, 1), options, start=start)
    assert len(found.history) > 2
    assert Bar.last.total == 100
    expected = [
        (step.step, f"gap {1 - step.value / p.null.value:.2e}") for step in found.history[1:]
    ]
    assert Bar.last.shown == expected
    few = SubspaceAscent(explore=1)
    options = SolveOptions(np.random.default_rng(0), max_iter=2, restarts=6, tol=1e-12)
    few.solve(Game.on(make("labels", d=8, alpha=1e-2)[1], 1), options)
    assert max(step for step, _ in Bar.last.shown) == 2  # never more than there are


# -- some of the rows ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "per_feature", "size"),
    [(8191, 8, 8191), (8192, 8, 4096), (12_000, 2000, 6000), (11_999, 2000, 11_999)],
)
def test_how_many_rows_exploring_sees(n, per_feature, size):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 2, (n, 2))
    weights = rng.uniform(0.5, 2, n)
    rows, concept = check_rows(X), check_concept(y, n)
    loss = make("labels", n=60)[1].loss
    moments = rows.moments(concept, weights)
    p = Problem(rows, concept, loss, moments, weights=weights, alpha=0.7, fit_intercept=False)
    some = _smaller(p, per_feature, np.random.default_rng(1))
    assert some.rows.n_samples == size
    assert (some is p) == (size == n)
    assert (some.alpha, some.fit_intercept, some.loss) == (0.7, False, loss)
    index = np.searchsorted(np.sort(X[:, 0]), some.rows.array()[:, 0])
    index = np.argsort(X[:, 0])[index]
    np.testing.assert_array_equal(some.rows.array(), X[index])
    np.testing.assert_array_equal(some.weights, weights[index])
    np.testing.assert_array_equal(some.concept.columns(), y[index])
    np.testing.assert_allclose(
        some.moments.mean_x, weights[index] @ X[index] / weights[index].sum()
    )
