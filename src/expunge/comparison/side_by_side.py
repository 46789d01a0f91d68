"""Fit every method on the same rows and measure what it leaves and costs on others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Sizes, Terms, check_sizes
from expunge.audit.residue import Residue
from expunge.comparison.cautions_once import CautionsOnce
from expunge.comparison.comparison_table import PROBES, Comparison, ComparisonRow, Probed, Spread
from expunge.comparison.methods import Method, check_pairs, choose_methods
from expunge.comparison.notes import method_notes, row_notes
from expunge.comparison.split_run import ComparedRows, ComparisonRun, Measured
from expunge.concept import Concept
from expunge.erasers.base import BaseEraser
from expunge.erasers.pooled_fit import check_groups, pool_of
from expunge.errors import InputError
from expunge.inputs import ConceptType, check_concept, check_number, check_rng, check_rows
from expunge.inputs.frames import columns_of, rows_of_table
from expunge.inputs.ranks import check_ranks
from expunge.inputs.swapped import refuse_swapped
from expunge.progress import Progress
from expunge.rows.base import Rows

__all__ = ["compare"]

SIZES = Sizes(nonlinear_train=2000, nonlinear_test=2000)  # many methods: fewer rows than an audit
NOTHING = "nothing"


def compare(
    X: Any,
    concept: Any,
    methods: Sequence[str | BaseEraser] | str | BaseEraser | None = None,
    ranks: Literal["auto"] | Iterable[int | Literal["auto"]] = "auto",
    task: Any = None,
    runs: int = 3,
    *,
    pairs: tuple[Any, Any] | None = None,
    unlabelled: Any = None,
    groups: Any = None,
    test_size: float = 0.3,
    probes: Any = "default",
    sizes: Sizes | None = None,
    concept_type: ConceptType = "auto",
    confidence: float = 0.95,
    leak: float = 0.02,
    random_state: Any = 0,
    verbose: bool = False,
) -> Comparison:
    """Methods side by side, probed on held-out rows as in an audit.

    In each run the rows are split anew; every method is fitted on the same part and measured on the
    other. Copies of a row are always on the same side. Probes, folds, measures and words are those
    of `audit`.

    Parameters
    ----------
    X : array, frame or tensor of shape (n, d)
    concept : array of shape (n,) or (n, m), or several concepts as in an eraser's `fit`
    methods : sequence of names or erasers, optional
        Names as in `ERASERS`, in any case; all that apply by default. An eraser keeps its settings,
        and its rank if it has one.
    ranks : "auto", or iterable of int and "auto"
        Directions to erase, for methods that have a choice. "auto" is the concept's own rank for
        all of them. A number is exactly so many directions; a method that has nothing to remove
        beyond fewer is shown once, at those.
    task : array of shape (n,), optional
        Classes that linear probes should still find; SPLINCE is given them, and is left out without
        them.
    runs : int
    pairs : (A, B), arrays of shape (p, d), optional
        Definitional pairs for PairPCA, which is left out without them.
    unlabelled : array or frame of shape (N, d), or Rows, optional
        More rows without labels, for methods that can use them; see an eraser's `fit`.
    groups : array of shape (n,), optional
        What each row belongs to: rows of one group are never on both sides, and count once where
        errors are estimated.
    test_size : float
        Share of the rows that is held out, at most 0.9.
    probes : {"default", "linear", "nonlinear", "thorough"} or list of str and Probe
        As in `audit`. "linear" takes a tenth of the time.
    sizes : Sizes, optional
        Most rows the probes look at; by default non-linear ones look at 2,000.
    concept_type : {"auto", "classes", "labels", "continuous"}
    confidence : float
        Of all limits.
    leak : float
        The least excess over chance that matters, as in `expunge.audit`.
    random_state : int, Generator or None
        Equal states give equal numbers, but for the seconds.
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
    >>> result = ex.compare(X, y, methods=["leace", "INLP"], ranks=[1, 2], probes="linear")
    >>> [(row.method, row.rank) for row in result.rows]
    [('nothing', 0), ('LEACE', 1), ('INLP', 1), ('INLP', 2)]
    >>> result.rows[0].linear.status, result.chance["linear"]
    ('found', 0.5)
    """
    refuse_swapped(X, concept)
    X = rows_of_table(X, concept, task, groups)
    unlabelled = rows_of_table(unlabelled, known=columns_of(X), name="unlabelled")
    rows = check_rows(X)
    target = check_concept(
        concept, rows, concept_type=concept_type, name="concept", owner="A comparison"
    )
    goal = None if task is None else _classes(task, rows)
    wanted = check_ranks(ranks, rows.n_features)
    check_number(runs, "runs", least=1, whole=True)
    check_number(test_size, "test_size", strict=True, most=0.9)
    check_number(confidence, "confidence", least=0.5, most=0.9999)
    check_number(leak, "leak", strict=True, most=1)
    sides = check_pairs(pairs, rows.n_features)
    chosen, left_out = choose_methods(
        methods, wanted, target, task=goal is not None, pairs=sides is not None
    )
    seeds = check_rng(random_state).integers(2**31, size=int(runs))
    terms = Terms(
        choose_probes(probes, target.kind), check_sizes(sizes, SIZES), confidence, leak, seed=0
    )
    pool = pool_of(unlabelled, None, rows.n_features, "A comparison")
    everything = ComparedRows(rows, target, goal, sides, terms, pool, check_groups(groups, rows))
    with Progress("compare", int(runs) * (len(chosen) + 1), verbose) as bar:
        table = _Table(chosen, left_out, bar)
        try:
            for seed in seeds:
                run = everything.run(int(seed), test_size)
                table.add(run)
        finally:
            table.cautions.say(stacklevel=2)
    return table.finished(run)


def _classes(task: Any, rows: Rows) -> Concept:
    found = check_concept(task, rows, name="task", owner="A comparison")
    if found.kind != "classes":
        raise InputError(
            "task must hold one class per row", f"a task of kind {found.kind!r}", "Pass classes"
        )
    return found


class _Table:
    """Rows in the making: what was measured of each method at each rank, run by run."""

    def __init__(self, chosen: list[Method], left_out: dict[str, str], bar: Progress) -> None:
        self.chosen, self.left_out, self.bar = chosen, left_out, bar
        self.steps = 0
        self.nothing: list[Measured] = []
        self.residues: list[Residue] = []
        self.found: dict[Method, list[Measured]] = {method: [] for method in chosen}
        self.skipped: dict[str, list[int]] = {}
        self.cautions = CautionsOnce()

    def add(self, run: ComparisonRun) -> None:
        """Measure everything in one run."""
        first = not self.nothing
        found = run.measure(None)
        self.nothing.append(found)
        if found.fresh is not None and (residue := run.residue(found.fresh.n_train)):
            self.residues.append(residue)
        self._step(NOTHING)
        for method in self.chosen:
            if method in self.found:
                self._measure(method, run, first)
            self._step(method.name)

    def _measure(self, method: Method, run: ComparisonRun, first: bool) -> None:
        try:
            with self.cautions.of(type(method.eraser).__name__):
                eraser, seconds = run.fitted(method)
            if first and self._known(method, eraser.rank_):
                self.skipped.setdefault(method.name, []).append(int(method.asked or 0))
                del self.found[method]
                return
            self.found[method].append(run.measure(eraser, seconds))
        except InputError as error:
            self.left_out[method.name] = f"{error.problem} ({error.received})"
            self.found = {m: done for m, done in self.found.items() if m.name != method.name}

    def _known(self, method: Method, rank: int) -> bool:
        """Whether a smaller number asked for gave as many directions."""
        return isinstance(method.asked, int) and any(
            other.name == method.name and done and done[0].rank == rank
            for other, done in self.found.items()
            if other is not method
        )

    def _step(self, name: str) -> None:
        self.steps += 1
        self.bar.update(self.steps, name)

    def finished(self, run: ComparisonRun) -> Comparison:
        """The comparison, `run` being the last one."""
        if not self.found:
            raise InputError("No method applies", str(self.left_out), "Name others in methods=")
        told = {m.name: None for m, done in self.found.items() if done[0].told}
        notes = [
            *row_notes(run.all.rows),
            *method_notes(list(told), self.skipped, list(self.found), run.all.rows),
        ]
        statistic = "r2" if run.all.concept.kind == "continuous" else "balanced_accuracy"
        residue = _residue(self.residues, statistic)
        high = -np.inf if residue is None else residue["high"]
        leak = float(run.terms.leak)
        reach = leak, high, _parts_high(self.residues)
        rows = [_row(NOTHING, self.nothing, *reach)]
        rows += [_row(method.name, done, *reach) for method, done in self.found.items()]
        probed = {name: getattr(rows[0], name) for name in (*PROBES, "task")}
        return Comparison(
            rows=tuple(rows),
            statistic=statistic,
            chance={name: found.chance for name, found in probed.items() if found is not None},
            residue=residue,
            leak=leak,
            confidence=float(run.terms.confidence),
            runs=len(self.nothing),
            n_train=len(run.train),
            n_test=len(run.test),
            notes=tuple(notes),
            left_out=self.left_out,
        )


def _residue(found: list[Residue], statistic: str) -> dict[str, float] | None:
    """The mean over the runs."""
    if not found:
        return None
    return {
        "here": float(np.mean([r.here(statistic) for r in found])),
        "unlimited": float(np.mean([r.ceiling(statistic) for r in found])),
        "high": float(np.mean([r.high(statistic) for r in found])),
    }


def _parts_high(found: list[Residue]) -> dict[int, float]:
    """What one of several labels or numbers reaches by sampling error, the mean over the runs."""
    columns = {j for residue in found for j in residue.parts_high}
    return {
        j: float(np.mean([r.parts_high[j] for r in found if j in r.parts_high])) for j in columns
    }


def _row(
    name: str, done: list[Measured], leak: float, high: float, parts_high: dict[int, float]
) -> ComparisonRow:
    def spread(value: Callable[[Measured], float]) -> Spread:
        return Spread.of([value(measured) for measured in done])

    def probed(family: str) -> Probed | None:
        results = [getattr(measured, family) for measured in done]
        # sampling error is no excuse for what was not erased from the rows of the fit either
        excused = family == "fresh" and all(measured.exact for measured in done)
        reach = (high, parts_high) if excused else (-np.inf, {})
        return None if results[0] is None else Probed.of(results, leak, *reach)

    bits = [m.fresh.bits.value for m in done if m.fresh is not None and m.fresh.bits is not None]
    return ComparisonRow(
        method=name,
        ranks=tuple(measured.rank for measured in done),
        linear=probed("linear"),
        fresh=probed("fresh"),
        nonlinear=probed("nonlinear"),
        bits=Spread.of(bits) if len(bits) == len(done) else None,
        variance=spread(lambda m: m.variance),
        neighbours=spread(lambda m: m.neighbours),
        task=probed("task"),
        seconds=spread(lambda m: m.seconds),
    )
