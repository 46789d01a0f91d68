"""Fit every method on the same rows and measure what it leaves and costs on others."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from expunge.audit.linear_probes import LINEAR_PROBES
from expunge.audit.measures import measures_of
from expunge.audit.neighbours import neighbour_overlap
from expunge.audit.nonlinear_probes import NONLINEAR_PROBES
from expunge.audit.probe import Probe, Training
from expunge.audit.probing import stratified
from expunge.compare.table import COLUMNS, Comparison, ComparisonRow, Spread
from expunge.concept import Concept
from expunge.erasers import ERASERS, RLACE, PairPCA
from expunge.erasers.base import BaseEraser
from expunge.errors import InputError
from expunge.inputs import ConceptType, as_matrix, check_concept, check_number, check_rows
from expunge.inputs.several import split_concepts
from expunge.parallel import one_blas_thread
from expunge.progress import Progress

__all__ = ["compare"]

SVM_ROWS = 2000  # training and test rows of the non-linear probe, whose cost grows with the square
QUERIES = 500  # rows asked for their neighbours

Measured = dict[str, float | None]


def compare(
    X: Any,
    concept: Any,
    methods: Sequence[str | BaseEraser] | None = None,
    ranks: Iterable[int] = (1,),
    task: Any = None,
    runs: int = 3,
    *,
    pairs: tuple[Any, Any] | None = None,
    test_size: float = 0.3,
    max_probe_rows: int = 10_000,
    concept_type: ConceptType = "auto",
    random_state: int = 0,
    verbose: bool = False,
) -> Comparison:
    """Methods side by side on held-out rows, each at every rank it can use.

    In each run the rows are split anew; every method is fitted on the same part and measured on the
    other. A rank above what a method can use is shown once, as the rank it did use.

    Parameters
    ----------
    X : array or frame of shape (n, d)
    concept : array of shape (n,) or (n, m)
    methods : sequence of names or erasers, optional
        Names as in `ERASERS`, in any case; all that apply by default.
    ranks : iterable of int
        Directions to erase, for methods that have a choice.
    task : array of shape (n,), optional
        Classes whose accuracy should survive; SPLINCE is given them.
    runs : int
    pairs : (A, B), arrays of shape (p, d), optional
        Definitional pairs for PairPCA, which is left out without them.
    test_size : float
        Share of the rows that is held out.
    max_probe_rows : int
        Most rows that a probe learns from or is tested on; larger parts are sampled.
    concept_type : {"auto", "classes", "labels", "continuous"}
    random_state : int
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    Comparison
        `print` it, or take `to_frame()`, `plot()`, `to_dict()`.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 6)) + 2 * np.outer(y, [1, 0, 1, 0, 0, 0])
    >>> result = ex.compare(X, y, methods=["leace", "INLP"], ranks=[1, 2], runs=2)
    >>> [(row.method, row.rank) for row in result.rows]
    [('nothing', 0), ('LEACE', 1), ('INLP', 1), ('INLP', 2)]
    """
    rows = check_rows(X)
    values = as_matrix(X)
    target = check_concept(concept, rows.n_samples, concept_type=concept_type, name="concept")
    goal = None if task is None else _classes(task, rows.n_samples)
    wanted = sorted(set(ranks))
    for rank in wanted:
        check_number(rank, "ranks", least=1, most=rows.n_features - 1, whole=True)
    check_number(runs, "runs", least=1, whole=True)
    check_number(test_size, "test_size", strict=True, most=0.9)
    chosen, left_out = _chosen(methods, target, pairs)
    everything = _Everything(values, concept, target, goal, pairs, wanted, max_probe_rows)
    collected: dict[tuple[str, int], list[Measured]] = {}
    with Progress("compare", runs * (len(chosen) + 1), verbose) as bar:
        for run in range(runs):
            split = everything.split(random_state + run, test_size)
            for count, (name, eraser) in enumerate([("nothing", None), *chosen]):
                for rank, measured in split.measure(eraser):
                    collected.setdefault((name, rank), []).append(measured)
                bar.update(run * (len(chosen) + 1) + count + 1, f"run {run + 1}, {name}")
    return Comparison(
        tuple(_row(name, rank, found) for (name, rank), found in _in_order(collected, chosen)),
        split.chance,
        runs,
        len(split.train),
        len(split.test),
        min(max_probe_rows, len(split.train)),
        left_out,
    )


def _in_order(
    collected: dict[tuple[str, int], list[Measured]], chosen: list[tuple[str, BaseEraser]]
) -> list[tuple[tuple[str, int], list[Measured]]]:
    place = {name: at for at, name in enumerate(["nothing", *(name for name, _ in chosen)])}
    return sorted(collected.items(), key=lambda item: (place[item[0][0]], item[0][1]))


def _row(method: str, rank: int, found: list[Measured]) -> ComparisonRow:
    spreads: dict[str, Any] = {}
    for name in COLUMNS:
        known = [m[name] for m in found if m[name] is not None]
        spreads[name] = Spread.of([float(v) for v in known if v is not None]) if known else None
    return ComparisonRow(method, rank, **spreads)


def _classes(task: Any, n: int) -> Concept:
    found = check_concept(task, n, name="task")
    if found.kind != "classes":
        raise InputError(
            "task must hold one class per row", f"a task of kind {found.kind!r}", "Pass classes"
        )
    return found


def _chosen(
    methods: Sequence[str | BaseEraser] | None, target: Concept, pairs: Any
) -> tuple[list[tuple[str, BaseEraser]], dict[str, str]]:
    """Erasers by name, and the methods left out with the reason."""
    known = {name.lower(): name for name in ERASERS}
    chosen: list[tuple[str, BaseEraser]] = []
    left_out: dict[str, str] = {}
    for method in ERASERS if methods is None else methods:
        if isinstance(method, str) and method.lower() not in known:
            raise InputError(
                "Unknown method", repr(method), f"Pass some of {', '.join(sorted(ERASERS))}"
            )
        eraser = _made(known[method.lower()], target) if isinstance(method, str) else method
        name = type(eraser).__name__ if isinstance(method, str) else repr(clone(eraser))
        if isinstance(eraser, PairPCA) and pairs is None:
            left_out[name] = "it needs pairs=(A, B)"
        elif not isinstance(eraser, PairPCA) and target.kind not in eraser.kinds:
            left_out[name] = f"it takes no concept of kind {target.kind!r}"
        else:
            chosen.append((name, eraser))
    if not chosen:
        raise InputError("No method applies", str(left_out), "Name others in methods=")
    return chosen, left_out


def _made(name: str, target: Concept) -> BaseEraser:
    if name == "RLACE" and target.kind == "continuous":
        return RLACE(loss="squared")
    return ERASERS[name]()


@dataclass(frozen=True, eq=False)
class _Everything:
    """All rows with all that is known of them."""

    values: NDArray[Any]
    given: Any
    concept: Concept
    task: Concept | None
    pairs: tuple[Any, Any] | None
    ranks: list[int]
    most: int

    def split(self, seed: int, test_size: float) -> _Split:
        """A run's rows of the fit and held-out rows, with the class shares of all."""
        n = len(self.values)
        test = stratified(self.concept, max(2, round(test_size * n)), seed)
        return _Split(self, np.setdiff1d(np.arange(n), test), test, seed)

    def concept_of(self, index: NDArray[np.intp]) -> Any:
        """The concept of some rows as it was given."""
        parts = split_concepts(self.given, len(self.values))
        if parts is None:
            return np.asarray(self.given)[index]
        return {name: np.asarray(column)[index] for name, column in parts.items()}


@dataclass(frozen=True, eq=False)
class _Split:
    """One run."""

    all: _Everything
    train: NDArray[np.intp]
    test: NDArray[np.intp]
    seed: int

    @property
    def chance(self) -> float:
        """Held-out accuracy of the answer that ignores x."""
        concept = self.all.concept
        if concept.kind == "continuous":
            return 0.0
        Z, seen = concept.columns()[self.test].mean(axis=0), concept.columns()[self.train].mean(0)
        if concept.kind == "classes":
            return float(Z[seen.argmax()])
        return float(np.where(seen > 0.5, Z, 1 - Z).mean())

    def measure(self, eraser: BaseEraser | None) -> list[tuple[int, Measured]]:
        """Measures at every rank the eraser can use; of the rows as they are for None."""
        X = self.all.values
        if eraser is None:
            return [(0, self._measures(X[self.train], X[self.test], 0.0))]
        found: dict[int, Measured] = {}
        ranks = self.all.ranks if "rank" in eraser.get_params() else [None]
        for rank in ranks:
            one = clone(eraser)
            if rank is not None:
                one.set_params(rank=rank)
            started = time.perf_counter()
            self._fit(one)
            seconds = time.perf_counter() - started
            if one.rank_ not in found:
                train, test = self._cleaned(one, self.train), self._cleaned(one, self.test)
                found[one.rank_] = self._measures(train, test, seconds)
        return list(found.items())

    def _fit(self, eraser: BaseEraser) -> None:
        if isinstance(eraser, PairPCA):
            assert self.all.pairs is not None
            A, B = (as_matrix(side) for side in self.all.pairs)
            ids = np.arange(len(A))
            eraser.fit(np.vstack([A, B]), np.concatenate([ids, ids]))
            return
        X, z, task = self.all.values[self.train], self.all.concept_of(self.train), self.all.task
        if task is None:
            eraser.fit(X, z)
        else:
            eraser.fit(X, task.values[self.train], concept=z)

    def _cleaned(self, eraser: BaseEraser, index: NDArray[np.intp]) -> NDArray[Any]:
        rows = self.all.values[index]
        if hasattr(eraser, "conditional_erasure_"):
            told = eraser.conditional_erasure_
            return np.asarray(told.transform(rows, concept=self.all.concept_of(index)))
        return np.asarray(eraser.transform(rows))

    def _measures(self, train: NDArray[Any], test: NDArray[Any], seconds: float) -> Measured:
        concept, before = self.all.concept, self.all.values[self.test]
        z, z_test = concept.take(self.train), concept.take(self.test)
        half = stratified(z_test, max(len(test) // 2, 1), self.seed)
        rest = np.setdiff1d(np.arange(len(test)), half)
        with one_blas_thread():
            linear = self._probe(_first(LINEAR_PROBES, concept), (train, z), (test, z_test))
            fresh = self._probe(
                _first(LINEAR_PROBES, concept),
                (test[half], z_test.take(half)),
                (test[rest], z_test.take(rest)),
            )
            nonlinear = self._probe(
                _first(NONLINEAR_PROBES, concept), (train, z), (test, z_test), most=SVM_ROWS
            )
            task = self._task(train, test)
        score = "r2" if concept.kind == "continuous" else "accuracy"
        spread = float(before.astype(np.float64).var(axis=0).sum())
        return {
            "linear": linear[score],
            "fresh": fresh[score],
            "nonlinear": nonlinear[score],
            "bits": None if "bits" not in linear else max(linear["bits"], 0.0),
            "variance": float(test.astype(np.float64).var(axis=0).sum()) / (spread or 1.0),
            "neighbours": neighbour_overlap(
                before, test, min(10, len(test) - 1), max_queries=QUERIES, max_base=self.all.most
            ),
            "task": task,
            "seconds": seconds,
        }

    def _probe(
        self,
        probe: Probe,
        learn: tuple[NDArray[Any], Concept],
        judge: tuple[NDArray[Any], Concept],
        most: int | None = None,
    ) -> dict[str, float]:
        """Measures of a probe, all rows in units of the training rows' spread."""
        size = min(most or self.all.most, self.all.most)
        (X, z), (X_test, z_test) = (
            (rows[index], concept.take(index))
            for rows, concept in (learn, judge)
            for index in [stratified(concept, size, self.seed)]
        )
        X, X_test = X.astype(np.float64), X_test.astype(np.float64)
        center, unit = X.mean(axis=0), float(np.sqrt(X.var(axis=0).mean())) or 1.0
        training = Training((X - center) / unit, z)
        scores = probe.score(training, np.asarray((X_test - center) / unit), self.seed)
        return {name: m.value for name, m in measures_of(scores, z_test).items()}

    def _task(self, train: NDArray[Any], test: NDArray[Any]) -> float | None:
        task = self.all.task
        if task is None:
            return None
        learn, judge = (train, task.take(self.train)), (test, task.take(self.test))
        return self._probe(_first(LINEAR_PROBES, task), learn, judge)["accuracy"]


def _first(probes: tuple[Probe, ...], concept: Concept) -> Probe:
    return next(probe for probe in probes if concept.kind in probe.kinds)
