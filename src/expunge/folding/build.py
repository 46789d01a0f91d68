"""A fold from rows: predicted classes, their maps, local moves, the closing erasure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept, Label
from expunge.emptied import with_emptied_columns
from expunge.erasure import Erasure
from expunge.fold_erasure import Cells, FoldErasure, moved
from expunge.folding.class_predictor import LinearPredictor
from expunge.folding.gaussian import ClassMoments, GaussianMaps, gaussian_maps
from expunge.folding.local_moves import MOST_ROWS, cells_for, fit_cells
from expunge.game.oblique import least_change
from expunge.linalg import Array, whitening_pair
from expunge.moments import Moments
from expunge.parallel import map_spans
from expunge.rows.base import Rows
from expunge.rows.lazy_rows import JoinedRows
from expunge.rows.mapped import MappedRows

__all__ = ["FoldPlan", "build", "fold_of", "only_leace"]

PARTS = 5  # of the rows, to tell differences from noise
MOST_NUMBERS = 1 << 26  # in the moments of all classes and parts
EXACT = 1e-10  # what rounding may leave of the covariance with the concept
UNSEEN = 0.1  # standard deviations between predicted classes that no threshold tells
ROUNDING = 1e-12  # spread of a column after the moves, relative to its mean, that is none
FEWEST = 2  # rows of a class that have a covariance
LAYOUTS = 4  # of cells in a round, whose mean has less noise than one


@dataclass(frozen=True)
class FoldPlan:
    """Which fold to build; see `FoldEraser`."""

    transport: Literal["shift", "gaussian"] = "gaussian"
    shrinkage: float | Literal["auto"] = "auto"
    directions: int | Literal["auto"] = "auto"
    rounds: int = 0


def build(
    rows: Rows,
    concept: Concept,
    weights: Array | None,
    predictor: LinearPredictor,
    plan: FoldPlan,
    rng: np.random.Generator,
    pool: Rows | None = None,
    by_label: bool = False,
    groups: NDArray[np.intp] | None = None,
) -> FoldErasure:
    """The fold of the predicted classes, closed by the least change that erases what is left.

    Parameters
    ----------
    rows : Rows
    concept : Concept of kind "classes"
    weights : array of shape (n,), optional
    predictor : LinearPredictor
    plan : FoldPlan
    rng : Generator
    pool : Rows, optional
        Rows without labels, whose predicted classes count too.
    by_label : bool
        Whether maps are those of the classes themselves, as a stream has them.
    groups : int array of shape (n,), optional
        Differences are told from noise by rows of other groups.

    Returns
    -------
    FoldErasure
    """
    every = rows if pool is None else JoinedRows(rows, pool)
    codes = predictor.predict(every)
    w = _joined_weights(weights, rows.n_samples, every.n_samples)
    if by_label:
        seen, mean = _class_moments(rows, concept.values, weights, concept.width, plan, rng, groups)
    else:
        seen, mean = _class_moments(every, codes, w, concept.width, plan, rng, groups)
    fold = fold_of(seen, mean, predictor, plan, concept.labels)
    if plan.rounds:
        fold = _with_rounds(fold, every, codes, w, plan.rounds, rng)
    own = mean if pool is None else rows.moments(concept, weights, second=False).mean_x
    told = _indicators(codes[: rows.n_samples], concept.width), concept.columns()
    return _closed(fold, _after(rows, fold, concept, weights), own, *told, weights)


def _after(rows: Rows, fold: FoldErasure, concept: Concept, weights: Array | None) -> Moments:
    """Moments of the rows after a fold, with the concept: one pass."""
    moved = MappedRows(rows, lambda X, which: fold.transform(np.asarray(X, dtype=np.float64)))
    return moved.moments(concept, weights, second=True)


def _closed(
    fold: FoldErasure, moments: Moments, mean: Array, P: Array, Z: Array, weights: Array | None
) -> FoldErasure:
    """The fold with equal class means on the labelled rows, by a shift of each class or by LEACE.

    With P the predicted and Z the true classes, x + Δ(p - p̄) has no covariance with z for
    Δ = -Σxz Σpz⁺: every predicted class is shifted once more. Where predictions are poor that is
    a large shift, of which thresholds read something: most rows of a class on one side, balanced
    by the few that were predicted wrongly, further on the other. Then LEACE takes directions away.
    """
    w = np.full(len(P), 1 / len(P)) if weights is None else weights / weights.sum()
    shares = w @ P
    crossed = (P - shares).T @ (w[:, None] * Z)
    delta = -moments.cov_xz @ np.linalg.pinv(crossed, rcond=1e-6)
    size, left_over = np.abs(moments.cov_xz).max(), moments.cov_xz + delta @ crossed
    varies = np.sqrt(moments.squares / moments.weight) > ROUNDING * np.abs(moments.mean_x)
    last = (delta.T - shares @ delta.T + (mean - moments.mean_x)) * varies
    left, right = least_change(
        moments.cov_xx * varies * varies[:, None],
        moments.cov_xz * varies[:, None],
        moments.cov_zz,
        eps=np.finfo(np.float64).eps,
    )
    by_leace = float(np.einsum("ij,ji->", left.T @ left, right @ moments.cov_xx @ right.T))
    by_shifts = float(shares @ np.einsum("ij,ij->i", last, last))
    exact = np.abs(left_over).max() <= EXACT * size
    if exact and by_shifts <= by_leace and _apart(last, shares, moments) <= UNSEEN:
        return fold.with_(last=last, closing=_nothing(mean))
    offset = (mean - moments.mean_x) * varies
    left, right = with_emptied_columns(left, right, moments)
    return fold.with_(closing=Erasure(left, right, moments.mean_x, offset))


def _apart(points: Array, shares: Array, moments: Moments) -> float:
    """How far points (c x d) lie apart, in standard deviations of the rows."""
    sd = moments.spreads
    W, _ = whitening_pair(moments.cov_xx / sd[:, None] / sd, rcond=len(sd) * moments.eps)
    white = (points - shares @ points) / sd @ W.T
    return float(np.sqrt(shares @ np.einsum("ij,ij->i", white, white)))


def only_leace(moments: Moments, predictor: LinearPredictor) -> FoldErasure:
    """A fold whose classes are left where they are: LEACE alone."""
    d, c = moments.n_features, len(moments.labels)
    still = GaussianMaps(np.zeros((d, 0)), np.zeros((0, d)), np.zeros((c, 0, 0)))
    fold = _fold(predictor, np.zeros((c, d)), still, moments.labels)
    left, right = least_change(moments.cov_xx, moments.cov_xz, moments.cov_zz, eps=moments.eps)
    left, right = with_emptied_columns(left, right, moments)
    return fold.with_(closing=Erasure(left, right, moments.mean_x))


def fold_of(
    seen: Mapping[int, tuple[Moments, Sequence[Moments]]],
    mean: Array,
    predictor: LinearPredictor,
    plan: FoldPlan,
    labels: tuple[Label, ...],
) -> FoldErasure:
    """Shift and Gaussian maps from the moments of the classes; nothing closes it yet.

    Parameters
    ----------
    seen : mapping of class number to (Moments, Moments of its parts)
        Classes that are not there stay where they are.
    mean : array of shape (d,)
        Where all classes are moved to.
    predictor : LinearPredictor
    plan : FoldPlan
    labels : tuple

    Returns
    -------
    FoldErasure
    """
    d, c = len(mean), len(labels)
    there = sorted(seen)
    shifts = np.zeros((c, d))
    for code in there:
        shifts[code] = mean - seen[code][0].mean_x
    found = GaussianMaps(np.zeros((d, 0)), np.zeros((0, d)), np.zeros((c, 0, 0)))
    if plan.transport == "gaussian" and len(there) > 1:
        classes = ClassMoments([seen[k][0] for k in there], [seen[k][1] for k in there])
        own = gaussian_maps(classes, shrinkage=plan.shrinkage, directions=plan.directions)
        maps = np.zeros((c, *own.maps.shape[1:]))
        maps[there] = own.maps
        found = replace(own, maps=maps)
    if not there:  # no row that counts
        return _fold(predictor, shifts, found, labels)
    squares = sum(seen[code][0].squares for code in there)
    squares = squares + sum(seen[code][0].weight * shifts[code] ** 2 for code in there)
    spread = np.sqrt(squares / sum(seen[code][0].weight for code in there))
    varies = spread > ROUNDING * np.abs(mean)  # else rounding would tell the class
    return _fold(
        predictor, shifts * varies, replace(found, left=varies[:, None] * found.left), labels
    )


def _fold(
    predictor: LinearPredictor, shifts: Array, maps: GaussianMaps, labels: tuple[Label, ...]
) -> FoldErasure:
    return FoldErasure(
        predictor.coef,
        predictor.intercept,
        predictor.center,
        shifts,
        maps.left,
        maps.right,
        maps.maps,
        np.zeros_like(shifts),
        labels,
        closing=Erasure.identity(len(predictor.center)),
    )


def _nothing(mean: Array) -> Erasure:
    """An erasure that does nothing; its center says that the fold is closed."""
    return Erasure(np.zeros((len(mean), 0)), np.zeros((0, len(mean))), mean)


def _indicators(codes: NDArray[np.intp], c: int) -> Array:
    return np.asarray(np.eye(c)[codes])


def _joined_weights(weights: Array | None, n: int, total: int) -> Array | None:
    """Weights of labelled rows, and their mean for those without labels."""
    if weights is None:
        return None
    return np.concatenate([weights, np.full(total - n, weights.mean())])


def _class_moments(
    rows: Rows,
    codes: NDArray[np.intp],
    weights: Array | None,
    c: int,
    plan: FoldPlan,
    rng: np.random.Generator,
    groups: NDArray[np.intp] | None,
) -> tuple[dict[int, tuple[Moments, list[Moments]]], Array]:
    """Moments of every class, whole and in parts, and the mean of all rows: one pass.

    Rows of one group are in one part; those without labels, which come last, stand alone.
    """
    parts = 1
    if plan.transport == "gaussian" and plan.shrinkage == "auto":
        parts = int(np.clip(MOST_NUMBERS // (c * rows.n_features**2), 2, PARTS))
    if groups is None:
        numbers = rng.permutation(len(codes)) % parts
    else:
        others = int(groups.max()) + 1 + np.arange(len(codes) - len(groups))
        each = np.concatenate([groups, others])
        numbers = (rng.permutation(int(each.max()) + 1) % parts)[each]
    both = Concept("classes", codes * parts + numbers, tuple(range(c * parts)))
    read = rows.read(both, weights, second=False, by_class=True)
    assert read.by_class is not None
    found: dict[int, tuple[Moments, list[Moments]]] = {}
    for code in range(c):
        own = [
            read.by_class[code * parts + part]
            for part in range(parts)
            if code * parts + part in read.by_class
        ]
        if own and sum(part.n for part in own) >= FEWEST:
            whole = own[0]
            for part in own[1:]:
                whole = whole.merge(part)
            found[code] = whole, own if len(own) > 1 else []
    return found, read.moments.mean_x


def _with_rounds(
    fold: FoldErasure,
    rows: Rows,
    codes: NDArray[np.intp],
    weights: Array | None,
    rounds: int,
    rng: np.random.Generator,
) -> FoldErasure:
    """The fold with rounds of local moves, found on up to 40,000 rows."""
    index = np.arange(len(codes)) if weights is None else np.flatnonzero(weights > 0)
    if len(index) > MOST_ROWS:
        index = np.sort(rng.choice(index, MOST_ROWS, replace=False))
    X = fold.transform(np.asarray(rows.take(index).array(), dtype=np.float64))
    w = np.ones(len(index)) if weights is None else weights[index]
    own = codes[index]
    shares = np.bincount(own, weights=w, minlength=len(fold.labels)) / w.sum()
    J = cells_for(X, rng)
    cells: list[list[Cells]] = []
    for _ in range(rounds if J > 1 else 0):
        layouts = [
            replace(cells, shifts=cells.shifts * (np.ptp(X, axis=0) > 0))
            for cells in _layouts(X, own, w, shares, J, rng)
        ]
        X = moved(X, own, layouts)
        cells.append(layouts)
    return fold.with_(cells=cells)


def _layouts(
    X: Array,
    codes: NDArray[np.intp],
    weights: Array,
    shares: Array,
    J: int,
    rng: np.random.Generator,
) -> list[Cells]:
    """Several layouts of cells, each from other centres, in threads."""
    seeds = rng.integers(1 << 62, size=LAYOUTS)

    def layout(number: int, _: int) -> Cells:
        return fit_cells(X, codes, weights, shares, J, np.random.default_rng(seeds[number]))

    return map_spans(layout, LAYOUTS, J * len(X), span=1)
