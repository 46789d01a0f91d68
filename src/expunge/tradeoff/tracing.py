"""Fit erasers of growing cost on some rows and judge each on two other parts of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.given import AuditedRows
from expunge.audit.held_out import held_out
from expunge.audit.probe import Probe
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Sizes, Terms, check_sizes
from expunge.audit.sampling import too_few
from expunge.audit.strongest import strongest_of
from expunge.comparison.cautions_once import CautionsOnce
from expunge.comparison.methods import Method
from expunge.comparison.notes import row_notes
from expunge.comparison.split_run import ComparedRows, ComparisonRun
from expunge.concept import Concept
from expunge.erasers.base import BaseEraser
from expunge.erasers.pooled_fit import check_groups
from expunge.errors import InputError, NotConverged
from expunge.inputs import ConceptType, check_concept, check_number, check_rng, check_rows
from expunge.inputs.frames import rows_of_table
from expunge.inputs.swapped import refuse_swapped
from expunge.metrics.change import relative_change
from expunge.progress import Progress
from expunge.rows.base import Rows
from expunge.tradeoff.candidates import FOLD, candidates
from expunge.tradeoff.frontier_table import NOTHING, Frontier, FrontierPoint

__all__ = ["frontier"]


def frontier(
    X: Any,
    concept: Any,
    erasers: Sequence[Any] | None = None,
    *,
    groups: Any = None,
    fit_size: float = 0.5,
    probes: Any = "thorough",
    sizes: Sizes | None = None,
    concept_type: ConceptType = "auto",
    confidence: float = 0.95,
    random_state: Any = 0,
    verbose: bool = False,
) -> Frontier:
    """What the strongest probe still reads, against what each eraser costs.

    Rows are cut in three, the same way for all: erasers are fitted on the first part, probes learn
    from the second, erased, and the one that reads best there is tested on the third. Change and
    neighbours are measured on the second and third. No projection takes away what is not linear at
    a small cost; a fold takes more away at the cost of a projection.

    Parameters
    ----------
    X : array, frame or tensor of shape (n, d)
    concept : array of shape (n,) or (n, m), or names of columns of `X`
    erasers : sequence of erasers, names, or pairs (name, eraser), optional
        By default LEACE, RLACE, INLP and the label-free QuadraticLEACE at a few ranks, and folds of
        growing cost where the concept is classes.
    groups : array of shape (n,), or the name of a column of `X`, optional
        What each row belongs to: rows of one group are never in two parts, and count once where
        errors are estimated.
    fit_size : float
        Share of the rows that erasers are fitted on; of the rest half teach and half test.
    probes : {"thorough", "default", "linear", "nonlinear"} or list of str and Probe
        As in `audit`. "default" takes a sixth of the time.
    sizes : Sizes, optional
        Most rows to learn from and to test on: `nonlinear_train` and `nonlinear_test`.
    concept_type : {"auto", "classes", "labels", "continuous"}
    confidence : float
        Of the limits.
    random_state : int, Generator or None
        Equal states give equal numbers, but for the seconds.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    Frontier
        `print` it, or take `to_frame()`, `plot()`, `to_dict()`; `audit(..., frontier=...)` draws it
        in the report.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 900)
    >>> X = rng.normal(size=(900, 6)) * (1 + y)[:, None] + np.outer(y, [2, 0, 0, 0, 0, 0])
    >>> few = [ex.LEACE(), ("half", ex.QuadraticLEACE(rank=3, label_free=True))]
    >>> found = ex.frontier(X, y, few, probes=["linear SVM", "Gaussian classes"])
    >>> [point.name for point in found.points]
    ['nothing', 'LEACE()', 'half']
    >>> found["LEACE()"].probe.name, found["LEACE()"].probe.low > 0.7
    ('Gaussian classes', True)
    """
    refuse_swapped(X, concept)
    rows = check_rows(rows_of_table(X, concept, groups))
    target = check_concept(
        concept, rows, concept_type=concept_type, name="concept", owner="A frontier"
    )
    check_number(fit_size, "fit_size", least=0.1, most=0.9)
    check_number(confidence, "confidence", least=0.5, most=0.9999)
    methods = candidates(erasers, target.kind, rows.n_features)
    chosen: Sequence[Probe] = choose_probes(probes, target.kind)
    limits = check_sizes(sizes, Sizes())
    seed = int(check_rng(random_state).integers(2**31))
    terms = Terms(chosen, limits, confidence, leak=0.02, seed=seed)
    together = check_groups(groups, rows)
    run = ComparedRows(rows, target, None, None, terms, None, together).run(seed, 1 - fit_size)
    with Progress("frontier", len(methods) + 1, verbose) as bar:
        return _traced(run, _learning(run, rows, target, together, seed), methods, bar)


def _learning(
    run: ComparisonRun,
    rows: Rows,
    target: Concept,
    groups: NDArray[np.intp] | None,
    seed: int,
) -> NDArray[np.bool_]:
    """Which of the held-out rows teach the probes; the others test them."""
    own = None if groups is None else groups[run.test]
    tested = held_out(rows.take(run.test), [target.take(run.test)], 0.5, seed + 1, own)
    learn = np.ones(len(run.test), dtype=bool)
    learn[tested] = False
    return learn


def _traced(
    run: ComparisonRun, learn: NDArray[np.bool_], methods: list[Method], bar: Progress
) -> Frontier:
    points, left_out = [_point(NOTHING, run, None, 0.0, learn)], dict[str, str]()
    cautions = CautionsOnce()
    for done, method in enumerate(methods, 1):
        bar.update(done, method.name)
        try:
            with cautions.of(type(method.eraser).__name__):
                warnings.simplefilter("ignore", NotConverged)  # of a baseline; the probes judge it
                eraser, seconds = run.fitted(method)
            points.append(_point(method.name, run, eraser, seconds, learn))
        except InputError as error:
            left_out[method.name] = f"{error.problem} ({error.received})"
    cautions.say(stacklevel=3)
    if len(points) == 1:
        raise InputError("No eraser applies", str(left_out), "Pass others in erasers=")
    bar.update(len(methods) + 1)
    first = points[0].probe
    return Frontier(
        tuple(points),
        first.statistic,
        first.chance,
        float(run.terms.confidence),
        len(run.train),
        first.n_train,
        first.n_test,
        tuple(row_notes(run.all.rows)),
        left_out,
    )


def _point(
    name: str,
    run: ComparisonRun,
    eraser: BaseEraser | None,
    seconds: float,
    learn: NDArray[np.bool_],
) -> FrontierPoint:
    part = run.given(eraser).test
    assert part is not None
    sides = part.take(learn), part.take(~learn)
    _check_sides(*sides)
    return FrontierPoint(
        name,
        strongest_of(*sides, run.terms),
        relative_change(part.before, part.after),
        run.neighbours_kept(part),
        seconds,
        type(eraser).__name__ == FOLD,
    )


def _check_sides(*sides: AuditedRows) -> None:
    for side in sides:
        if len(side) == 0 or (why := too_few(side)):
            raise InputError(
                "There are too few rows to fit on, to probe and to test",
                f"{len(side)} rows in a part" + (f": {why}" if len(side) else ""),
                "Pass more rows, or another fit_size",
            )
