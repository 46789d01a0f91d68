"""What an erasure costs: variance, distance, directions, neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.neighbours import neighbour_sample
from expunge.audit.similarity import spearman
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
from expunge.moments import Moments
from expunge.parallel import blocks, map_spans

__all__ = [
    "Damage",
    "damage",
    "least_possible_change",
]

QUANTILES = (1, 5, 25, 50, 75, 95, 99)  # percent


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
    """How much rows changed, from one pass over all of them and samples for what is quadratic.

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
    >>> from expunge.audit.damage import damage
    >>> X = np.array([[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]])
    >>> found = damage(X, X * [1, 0], concept=[1, 1, 0, 0], neighbours=[1])
    >>> found.variance_kept, found.mean_squared_change, found.least_change
    (0.8, 1.0, 1.0)
    """
    A, B = check_rows(before, name="before").X, check_rows(after, name="after").X
    if A.shape != B.shape:
        raise InputError(
            "before and after must be the same rows, of the same width",
            f"shapes {A.shape} and {B.shape}",
            "Pass the rows of one matrix before and after",
        )
    check_number(n_pairs, "n_pairs", least=2, whole=True)
    neighbours = check_list(neighbours, "neighbours")
    for k in neighbours:
        check_number(k, "neighbours", least=1, whole=True)
    rng = check_rng(random_state)
    spread, spread_after = _total_variance(A), _total_variance(B)
    change, cosine = _changes(A, B)
    sample = neighbour_sample(A, B, max_queries=max_queries, max_base=max_base, rng=rng)
    ks = [int(k) for k in neighbours if k < len(sample.base)]
    first = rng.integers(0, len(A), n_pairs)
    second = (first + rng.integers(1, len(A), n_pairs)) % len(A)  # never the row itself
    least = None
    if concept is not None:
        least = least_possible_change(A, concept, concept_type=concept_type)
    percentiles = np.percentile(cosine, QUANTILES)
    return Damage(
        n_rows=len(A),
        n_features=A.shape[1],
        variance_kept=spread_after / spread if spread > 0 else 1.0,
        mean_squared_change=change,
        relative_change=change / spread if spread > 0 else 0.0,
        least_change=least,
        cosine={q: float(value) for q, value in zip(QUANTILES, percentiles, strict=True)},
        neighbour_overlap=sample.overlaps(A, B, ks) if ks else {},
        n_queries=len(sample.queries),
        n_base=len(sample.base),
        rank_correlation=spearman(_cosines(A, first, second), _cosines(B, first, second)),
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
    concept : array of shape (n,) or (n, m)
    concept_type : {"auto", "classes", "labels", "continuous"}

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.damage import least_possible_change
    >>> X = np.array([[3.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-3.0, 0.0]])
    >>> round(least_possible_change(X, [1, 0, 1, 0]), 6)  # all variance is along one direction
    5.0
    """
    rows = check_rows(X)
    z = check_concept(concept, rows.n_samples, concept_type=concept_type, name="concept")
    moments = rows.moments(z)
    # centred one-hot columns add up to zero, so one of them is not needed
    C = moments.cov_xz[:, :-1] if z.kind == "classes" else moments.cov_xz
    W, root = whitening_pair(moments.cov_xx, rcond=moments.n_features * moments.eps)
    scale = float(np.sqrt(moments.trace_xx * np.trace(moments.zz))) / moments.weight
    U, _ = np.linalg.qr(W @ range_basis(C, scale=scale))
    return float(np.sum((root @ U) ** 2))


def _total_variance(X: NDArray[Any]) -> float:
    """Trace of the covariance, in one pass."""
    nothing = Concept("continuous", np.zeros((len(X), 0)), ())
    moments = Moments.of(X, nothing, second=False)
    return moments.trace_xx / moments.weight


def _changes(A: NDArray[Any], B: NDArray[Any]) -> tuple[float, Array]:
    """Mean squared change of a row, and the cosine of each row with itself, in one pass."""
    cosine = np.zeros(len(A))

    def part(start: int, stop: int) -> float:
        total = 0.0
        for lo, hi in blocks(start, stop):
            a, b = np.asarray(A[lo:hi], dtype=np.float64), np.asarray(B[lo:hi], dtype=np.float64)
            total += float(np.sum((a - b) ** 2))
            cosine[lo:hi] = _cosine(a, b)
        return total

    return sum(map_spans(part, len(A), A.shape[1])) / len(A), cosine


def _cosine(a: Array, b: Array) -> Array:
    """Cosines of rows with rows; 0 where one is zero."""
    size = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    product = np.einsum("ij,ij->i", a, b)
    return np.asarray(product / np.where(size > 0, size, 1.0))


def _cosines(X: NDArray[Any], first: NDArray[Any], second: NDArray[Any]) -> Array:
    found = np.empty(len(first))
    for lo, hi in blocks(0, len(first)):
        pair = (np.asarray(X[rows[lo:hi]], dtype=np.float64) for rows in (first, second))
        found[lo:hi] = _cosine(*pair)
    return found
