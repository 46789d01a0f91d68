"""Loss, balanced accuracy and damage against the number of erased directions, in one sweep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from expunge.audit.protocols import Sizes
from expunge.concept import Concept
from expunge.erasers.cautions import caution_of_units
from expunge.game.losses import Loss
from expunge.inputs import (
    ConceptType,
    check_concept,
    check_number,
    check_rng,
    check_rows,
    check_weights,
)
from expunge.inputs.frames import columns_of, rows_of_table
from expunge.inputs.ranks import check_ranks
from expunge.inputs.swapped import refuse_swapped
from expunge.progress import Progress
from expunge.rank_sweep.path_probes import PathProbes
from expunge.rank_sweep.path_table import PathPoint, RankPath
from expunge.rank_sweep.sweep import Sweep

__all__ = ["rank_path"]


def rank_path(
    X: Any,
    y: Any,
    *,
    ranks: Iterable[int],
    X_test: Any = None,
    y_test: Any = None,
    loss: str | Loss = "auto",
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    concept_type: ConceptType = "auto",
    sample_weight: Any = None,
    tol: float = 1e-6,
    probes: Any = "linear",
    sizes: Sizes | None = None,
    leak: float = 0.02,
    random_state: Any = None,
    verbose: bool = False,
) -> RankPath:
    """What the best erasure of every rank leaves and costs.

    Each rank starts from the last one with the strongest remaining direction added; the better of
    that and a few fresh starts is kept.

    Parameters
    ----------
    X : array, frame or tensor of shape (n, d)
    y : array of shape (n,) or (n, m)
        The concept.
    ranks : iterable of int and "auto"
        Ranks to visit, 1 to d - 1; at and above the concept's own, "auto", they are exact.
    X_test, y_test : optional
        Rows that are not in X, for linear probes as in an audit. Without them nothing is shown
        about new rows.
    loss : {"auto", "cross_entropy", "squared", "huber", "hinge", "squared_hinge"} or Loss
        "auto" is squared for a continuous concept, cross-entropy otherwise.
    fit_intercept, alpha, concept_type, tol
        As in `RLACE`.
    sample_weight : array of shape (n,), optional
        For the erasure, its predictor and the variance. Probes count every row once, but leave out
        rows without weight.
    probes : "linear" or list of str and Probe
        Linear ones, as in `audit`.
    sizes : Sizes, optional
        Most rows the probes look at.
    leak : float
        The least excess over chance that matters, as in `expunge.audit`.
    random_state : int, Generator or None
        Equal states give equal numbers.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    RankPath
        With `plot()` for the picture, `str()` for the table and `to_frame()`.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(300, 5)) + 2 * np.eye(5)[y]
    >>> path = ex.rank_path(X, y, ranks=[1, 2])
    >>> [p.solver for p in path.points]
    ['none', 'subspace_ascent', 'closed_form']
    >>> [round(p.score, 2) for p in path.points]
    [0.92, 0.61, 0.33]
    """
    refuse_swapped(X, y)
    X = rows_of_table(X, y, sample_weight)
    X_test = rows_of_table(X_test, y_test, known=columns_of(X), name="X_test")
    rows = check_rows(X)
    weights = check_weights(sample_weight, rows)
    concept = check_concept(y, rows, concept_type=concept_type).with_weight(weights)
    wanted = check_ranks(ranks, rows.n_features)
    check_number(alpha, "alpha", strict=True)
    check_number(tol, "tol", most=float("inf"))
    rng = check_rng(random_state)
    seed = int(rng.integers(2**31))
    probing = PathProbes.of(
        rows, concept, weights, X_test, y_test, probes=probes, sizes=sizes, leak=leak, seed=seed
    )
    sweep = Sweep(rows, concept, weights, loss, fit_intercept, alpha, tol, rng)
    caution_of_units("rank_path", sweep.moments, stacklevel=2)
    visited = sorted({sweep.own_rank if rank == "auto" else rank for rank in wanted})
    points, erasures = [], []
    with Progress("rank path", len(visited) + 1, verbose) as progress:
        for count, rank in enumerate([0, *visited], 1):
            if rank:
                sweep.advance(rank)
            erasure = sweep.erasure()
            linear, fresh = probing.probed(erasure)
            score = sweep.score()
            kept = sweep.variance_kept()
            points.append(
                PathPoint(rank, sweep.left.loss, score, linear, fresh, kept, sweep.solver)
            )
            erasures.append(erasure)
            progress.update(count, f"rank {rank}, loss {sweep.left.loss:.4g}")
    return RankPath(
        points=tuple(points),
        erasures=tuple(erasures),
        bound=sweep.problem.null.value,
        statistic="r2" if concept.kind == "continuous" else "balanced_accuracy",
        chance=_chance(concept),
        residue=None if fresh is None else probing.residue(fresh.n_train),
        leak=float(leak),
        notes=tuple(probing.notes),
    )


def _chance(concept: Concept) -> float:
    """Of the rows of the fit; as an audit has it for tested rows."""
    if concept.kind == "continuous":
        return 0.0
    return 0.5 if concept.kind == "labels" else 1 / len(np.unique(concept.values))
