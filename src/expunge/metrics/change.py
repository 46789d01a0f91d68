"""What an erasure costs: variance, distance, directions, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.inputs import (
    ConceptType,
    check_concept,
    check_list,
    check_number,
    check_rng,
    check_rows,
)
from expunge.linalg import Array, range_basis, whitening_pair
from expunge.metrics.neighbours import neighbour_sample
from expunge.metrics.similarity import spearman
from expunge.moments import Moments
from expunge.parallel import BLOCK, blocks
from expunge.rows.base import Rows
from expunge.rows.together import each_pair

__all__ = [
    "Damage",
    "damage",
    "damage_of_rows",
    "least_change",
    "least_possible_change",
    "relative_change",
    "total_variance",
]

QUANTILES = (1, 5, 25, 50, 75, 95, 99)  # percent
LOOKED_UP = 1 << 14  # pairs of rows that are not in memory, where one look may be a pass over all


@dataclass(frozen=True)
class Damage:
    """How much rows changed.

    Attributes
    ----------
    n_rows, n_features : int
    variance_kept : float
        Total variance after, relative to that before.
    mean_squared_change : float
        Mean of ‖x' - x‖².
    relative_change : float
        The same, relative to the total variance before.
    least_change : float or None
        The least mean squared change of any affine map after which these rows say nothing linear
        about the concept; None without a concept.
    cosine : dict from int to float
        Percentiles of the cosine of a row with itself before; 0 for a row that is or becomes zero.
    neighbour_overlap : dict from int to float
        For each k, the mean share of the k nearest rows that stay among the k nearest.
    n_queries, n_base : int
        Rows asked for their neighbours, and rows among which these were looked for.
    rank_correlation : float
        Spearman correlation of the cosines of pairs of rows before and after.
    n_pairs : int
        Random pairs it was taken over.
    """

    n_rows: int
    n_features: int
    variance_kept: float
    mean_squared_change: float
    relative_change: float
    least_change: float | None
    cosine: dict[int, float]
    neighbour_overlap: dict[int, float]
    n_queries: int
    n_base: int
    rank_correlation: float
    n_pairs: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, percentiles and k as text."""
        keyed = ("cosine", "neighbour_overlap")
        texts = {name: {str(k): v for k, v in getattr(self, name).items()} for name in keyed}
        rank = None if np.isnan(self.rank_correlation) else self.rank_correlation
        return {**asdict(self), **texts, "rank_correlation": rank}


def damage(
    before: Any,
    after: Any,
    *,
    concept: Any = None,
    concept_type: ConceptType = "auto",
    neighbours: Sequence[int] = (1, 10, 100),
    max_queries: int = 1000,
    max_base: int = 50_000,
    n_pairs: int = 20_000,
    random_state: Any = 0,
) -> Damage:
    """How much rows changed, from passes over all of them and samples for what is quadratic.

    Parameters
    ----------
    before, after : arrays of shape (n, d)
        The same rows.
    concept : array of shape (n,) or (n, m), optional
        What was erased, for the least possible change.
    concept_type : {"auto", "classes", "labels", "continuous"}
    neighbours : sequence of int
        Numbers of neighbours; those that there are not enough rows for are left out.
    max_queries, max_base : int
        As in `neighbour_overlap`.
    n_pairs : int
        Random pairs for the rank correlation.
    random_state : int, Generator or None

    Returns
    -------
    Damage

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.change import damage
    >>> X = np.array([[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]])
    >>> found = damage(X, X * [1, 0], concept=[1, 1, 0, 0], neighbours=[1])
    >>> found.variance_kept, found.mean_squared_change, found.least_change
    (0.8, 1.0, 1.0)
    """
    A, B = check_rows(before, name="before"), check_rows(after, name="after")
    check_number(n_pairs, "n_pairs", least=2, whole=True)
    neighbours = check_list(neighbours, "neighbours")
    for k in neighbours:
        check_number(k, "neighbours", least=1, whole=True)
    least = None
    if concept is not None:
        least = least_possible_change(before, concept, concept_type=concept_type)
    return damage_of_rows(
        A,
        B,
        least=least,
        neighbours=neighbours,
        max_queries=max_queries,
        max_base=max_base,
        n_pairs=n_pairs,
        rng=check_rng(random_state),
    )


def damage_of_rows(
    before: Rows,
    after: Rows,
    *,
    least: float | None,
    rng: np.random.Generator,
    neighbours: Sequence[int] = (1, 10, 100),
    max_queries: int = 1000,
    max_base: int = 50_000,
    n_pairs: int = 20_000,
) -> Damage:
    """The same of rows that are read in blocks and samples, wherever they are.

    Parameters
    ----------
    before, after : rows of shape (n, d)
    least : float or None
        Of `least_possible_change`.
    rng : Generator
    neighbours, max_queries, max_base, n_pairs
        As in `damage`.

    Returns
    -------
    Damage
    """
    n, d = before.n_samples, before.n_features
    if (n, d) != (after.n_samples, after.n_features):
        raise InputError(
            "before and after must be the same rows, of the same width",
            f"shapes {(n, d)} and {(after.n_samples, after.n_features)}",
            "Pass the rows of one matrix before and after",
        )
    spread, spread_after = total_variance(before), total_variance(after)
    change, cosine = _changes(before, after)
    sample = neighbour_sample(before, after, max_queries=max_queries, max_base=max_base, rng=rng)
    ks = [int(k) for k in neighbours if k < len(sample.base)]
    first = rng.integers(0, n, n_pairs)
    second = (first + rng.integers(1, n, n_pairs)) % n  # never the row itself
    pairs = [_cosines(rows, first, second) for rows in (before, after)]
    percentiles = np.percentile(cosine, QUANTILES)
    return Damage(
        n_rows=n,
        n_features=d,
        variance_kept=spread_after / spread if spread > 0 else 1.0,
        mean_squared_change=change,
        relative_change=change / spread if spread > 0 else 0.0,
        least_change=least,
        cosine={q: float(value) for q, value in zip(QUANTILES, percentiles, strict=True)},
        neighbour_overlap=sample.overlaps(before, after, ks) if ks else {},
        n_queries=len(sample.queries),
        n_base=len(sample.base),
        rank_correlation=spearman(*pairs),
        n_pairs=int(n_pairs),
    )


def least_possible_change(X: Any, concept: Any, *, concept_type: ConceptType = "auto") -> float:
    """The least mean squared change after which no linear predictor finds the concept in the rows.

    Every affine map x -> Px + b with PΣxz = 0 costs at least tr((I-P)Σ(I-P)ᵀ), and least of all
    P = I - W⁻¹UUᵀW costs, with W = Σ^(-1/2) and U an orthonormal basis of col(WΣxz): then the cost
    is ‖W⁻¹U‖² (Belrose et al. 2023, LEACE).

    Parameters
    ----------
    X : array of shape (n, d)
        Rows before any change.
    concept : array of shape (n,) or (n, m)
        What is to be erased from them.
    concept_type : {"auto", "classes", "labels", "continuous"}

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.change import least_possible_change
    >>> X = np.array([[3.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-3.0, 0.0]])
    >>> round(least_possible_change(X, [1, 0, 1, 0]), 6)  # all variance is along one direction
    5.0
    """
    rows = check_rows(X)
    z = check_concept(concept, rows, concept_type=concept_type, name="concept")
    return least_change(rows.moments(z))


def least_change(moments: Moments) -> float:
    """The same from the moments of rows and concept.

    Parameters
    ----------
    moments : Moments
        With second moments of the rows.

    Returns
    -------
    float
    """
    # centred one-hot columns add up to zero, so one of them is not needed
    C = moments.cov_xz[:, :-1] if moments.kind == "classes" else moments.cov_xz
    W, root = whitening_pair(moments.cov_xx, rcond=moments.n_features * moments.eps)
    scale = float(np.sqrt(moments.trace_xx * np.trace(moments.zz))) / moments.weight
    U, _ = np.linalg.qr(W @ range_basis(C, scale=scale))
    return float(np.sum((root @ U) ** 2))


def total_variance(rows: Rows) -> float:
    """Trace of the covariance, in one pass.

    Parameters
    ----------
    rows : rows of shape (n, d)

    Returns
    -------
    float

    Examples
    --------
    >>> from expunge.inputs import check_rows
    >>> from expunge.metrics.change import total_variance
    >>> total_variance(check_rows([[1.0, 0.0], [3.0, 0.0]]))
    1.0
    """
    moments = rows.moments(Concept.none(rows.n_samples), second=False)
    return moments.trace_xx / moments.weight


def relative_change(before: Rows, after: Rows) -> float:
    """Mean squared move of a row, relative to the total variance before.

    Parameters
    ----------
    before, after : rows of shape (n, d)

    Returns
    -------
    float

    Examples
    --------
    >>> from expunge.inputs import check_rows
    >>> from expunge.metrics.change import relative_change
    >>> relative_change(check_rows([[1.0, 0.0], [3.0, 0.0]]), check_rows([[2.0, 0.0], [2.0, 0.0]]))
    1.0
    """
    spread = total_variance(before)
    return _changes(before, after)[0] / spread if spread > 0 else 0.0


def _changes(before: Rows, after: Rows) -> tuple[float, Array]:
    """Mean squared change of a row, and the cosine of each row with itself, in one pass."""
    cosine, total = np.zeros(before.n_samples), 0.0
    for lo, (moved, own) in each_pair(before, after, _changed_by):
        total += moved
        cosine[lo : lo + len(own)] = own
    return total / before.n_samples, cosine


def _changed_by(A: NDArray[Any], B: NDArray[Any]) -> tuple[float, Array]:
    """Squared change of these rows, and the cosine of each with itself."""
    a, b = np.asarray(A, dtype=np.float64), np.asarray(B, dtype=np.float64)
    return float(np.sum((a - b) ** 2)), _cosine(a, b)


def _cosine(a: Array, b: Array) -> Array:
    """Cosines of rows with rows; 0 where one is zero."""
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    product = np.einsum("ij,ij->i", a, b)
    return np.asarray(product / np.where(size > 0, size, 1.0))


def _cosines(rows: Rows, first: NDArray[np.intp], second: NDArray[np.intp]) -> Array:
    found = np.empty(len(first))
    for lo, hi in blocks(0, len(first), BLOCK if rows.in_memory else LOOKED_UP):
        both = rows.take(np.concatenate([first[lo:hi], second[lo:hi]])).array()
        A = np.asarray(both, dtype=np.float64)
        found[lo:hi] = _cosine(A[: hi - lo], A[hi - lo :])
    return found
