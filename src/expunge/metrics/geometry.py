"""The shape of a cloud of rows: clusters that follow a concept, and pictures in two dimensions."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from expunge.errors import InputError
from expunge.inputs import check_concept, check_list, check_number, check_rng, check_rows
from expunge.linalg import Array, fix_signs
from expunge.metrics.parity import class_columns
from expunge.parallel import one_blas_thread
from expunge.rows.base import Rows

__all__ = [
    "PcaScatter",
    "VMeasure",
    "pca_scatter",
    "scatter_of_rows",
    "v_measure",
    "v_measure_of",
]


@dataclass(frozen=True)
class VMeasure:
    """V-measure of k-means clusters against a concept, for several numbers of clusters.

    Attributes
    ----------
    clusters : tuple of int
        Numbers of clusters.
    mean, std : tuple of float
        Over the runs, beside each number; 0 means that clusters say nothing about the concept.
    runs : int
        Random starts of each.
    n_rows : int
        Rows clustered.
    """

    clusters: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    runs: int
    n_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        lists = {name: list(getattr(self, name)) for name in ("clusters", "mean", "std")}
        return {**asdict(self), **lists}


@dataclass(frozen=True, eq=False)
class PcaScatter:
    """Two-dimensional coordinates of a sample of rows before and after a change.

    Attributes
    ----------
    rows : int array of shape (s,)
        Numbers of the rows in the sample.
    before : array of shape (s, 2)
        On the principal axes of the sample before.
    after : array of shape (s, 2)
        On its own principal axes, with signs that agree with those before.
    after_shared : array of shape (s, 2)
        On the axes of `before`.
    along : array of shape (s, 2)
        Before and after, along the direction in which the moves of rows vary most; the erased
        direction, if one was erased orthogonally. All but `after` is measured from the mean before.
    explained_before, explained_after, explained_shared : (float, float)
        Share of the total variance of the rows shown that each axis holds.
    """

    rows: NDArray[np.intp]
    before: Array
    after: Array
    after_shared: Array
    along: Array
    explained_before: tuple[float, float]
    explained_after: tuple[float, float]
    explained_shared: tuple[float, float]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else list(value)
            for name, value in vars(self).items()
        }


def v_measure_of(classes: Any, clusters: Any) -> float:
    """V-measure of a clustering: the harmonic mean of homogeneity and completeness.

    With C the classes and K the clusters, homogeneity is 1 - H(C|K)/H(C), completeness
    1 - H(K|C)/H(K); each is 1 when its denominator is 0.

    Parameters
    ----------
    classes, clusters : arrays of shape (n,)
        The class and the cluster of each row; labels of any kind.

    Returns
    -------
    float
        From 0 to 1.

    References
    ----------
    Rosenberg, Hirschberg (2007), V-Measure: a conditional entropy-based external cluster
    evaluation measure, EMNLP.

    Examples
    --------
    >>> from expunge.metrics.geometry import v_measure_of
    >>> v_measure_of(["a", "a", "b", "b"], [1, 1, 0, 0])
    1.0
    >>> v_measure_of(["a", "a", "b", "b"], [0, 1, 0, 1])
    0.0
    """
    from sklearn.metrics import v_measure_score

    true, found = class_columns(classes=classes, clusters=clusters)
    return float(v_measure_score(true.values, found.values))


def v_measure(
    X: Any,
    y: Any,
    clusters: int | Sequence[int] = (2, 4, 8, 16),
    *,
    runs: int = 3,
    max_rows: int = 5000,
    random_state: Any = 0,
) -> VMeasure:
    """V-measure of k-means clusters of `X` against the classes `y`.

    Parameters
    ----------
    X : array of shape (n, d)
    y : array of shape (n,)
        Classes.
    clusters : int or sequence of int
        Numbers of clusters.
    runs : int
        k-means runs of each, from different starts, of at most 50 steps.
    max_rows : int
        Above this many rows a random sample of this size is clustered.
    random_state : int, Generator or None

    Returns
    -------
    VMeasure

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.geometry import v_measure
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 200)
    >>> X = rng.normal(size=(200, 3)) + 20 * y[:, None]
    >>> found = v_measure(X, y, [2, 4])
    >>> found.mean[0] == 1.0 > found.mean[1]
    True
    """
    rows = check_rows(X)
    concept = check_concept(y, rows, owner="V-measure")
    if concept.kind != "classes":
        raise InputError(
            "V-measure compares clusters with classes", f"a {concept.kind} concept", "Pass classes"
        )
    check_number(runs, "runs", least=1, whole=True)
    check_number(max_rows, "max_rows", least=2, whole=True)
    rng = check_rng(random_state)
    if rows.n_samples > max_rows:
        rows, index = rows.subset(max_rows, rng)
        concept = concept.take(index)
    if isinstance(clusters, int | np.integer):
        clusters = (int(clusters),)
    counts = check_list(clusters, "clusters")
    for count in counts:
        check_number(count, "clusters", least=1, most=rows.n_samples, whole=True)
    work = np.asarray(rows.array(), dtype=np.float64)
    _, digits = np.frexp(np.abs(work).max(initial=0.0))
    work = np.ldexp(work, -digits)  # squares neither vanish nor overflow
    work = (work - work.mean(axis=0)).astype(np.float32)  # half the work of float64
    # steps are short: threads would mostly wait for each other
    with one_blas_thread(), threadpool_limits(1, user_api="openmp"):
        found = [
            [v_measure_of(concept.values, _k_means(work, count, rng)) for _ in range(runs)]
            for count in counts
        ]
    return VMeasure(
        clusters=tuple(int(count) for count in counts),
        mean=tuple(float(np.mean(values)) for values in found),
        std=tuple(float(np.std(values)) for values in found),
        runs=int(runs),
        n_rows=rows.n_samples,
    )


def pca_scatter(
    before: Any, after: Any, *, max_rows: int = 2000, random_state: Any = 0
) -> PcaScatter:
    """Coordinates for pictures of rows before and after a change.

    Axes are those of the rows shown. After an erasure the cloud is drawn twice: on axes of its
    own, which show whatever structure is left, and on the axes of before, which show what moved.

    Parameters
    ----------
    before, after : arrays of shape (n, d)
        The same rows, d at least 2.
    max_rows : int
        Above this many rows a random sample of this size is shown.
    random_state : int, Generator or None

    Returns
    -------
    PcaScatter

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.geometry import pca_scatter
    >>> X = np.random.default_rng(0).normal(size=(100, 3)) * [5, 2, 1]
    >>> found = pca_scatter(X, X * [0, 1, 1])
    >>> found.before.shape, bool(np.ptp(found.along[:, 1]) < 1e-12)
    ((100, 2), True)
    """
    check_number(max_rows, "max_rows", least=2, whole=True)
    return scatter_of_rows(
        check_rows(before, name="before"),
        check_rows(after, name="after"),
        max_rows=max_rows,
        rng=check_rng(random_state),
    )


def scatter_of_rows(
    before: Rows, after: Rows, *, max_rows: int, rng: np.random.Generator
) -> PcaScatter:
    """The same of rows of which only the sample is read, wherever they are.

    Parameters
    ----------
    before, after : rows of shape (n, d)
    max_rows : int
        Above this many rows a random sample of this size is shown.
    rng : Generator

    Returns
    -------
    PcaScatter
    """
    shape, other = ((part.n_samples, part.n_features) for part in (before, after))
    if shape != other or shape[1] < 2:
        raise InputError(
            "before and after must be the same rows, of the same width of at least 2",
            f"shapes {shape} and {other}",
            "Pass the rows of one matrix before and after",
        )
    rows = np.sort(rng.permutation(shape[0])[:max_rows]).astype(np.intp)
    first, second = (
        np.asarray(part.take(rows).array(), dtype=np.float64) for part in (before, after)
    )
    origin = first.mean(axis=0)
    first, second = first - origin, second - origin
    own, change = second - second.mean(axis=0), first - second
    with one_blas_thread():
        axes, own_axes = _leading(first, 2), _leading(own, 2)
        moved = _leading(change - change.mean(axis=0), 1)
    own_axes = own_axes * np.where(np.sum(axes * own_axes, axis=0) < 0, -1.0, 1.0)
    shared, total = second @ axes, float(own.var(axis=0).sum())
    return PcaScatter(
        rows=rows,
        before=first @ axes,
        after=own @ own_axes,
        after_shared=shared,
        along=np.hstack([first @ moved, second @ moved]),
        explained_before=_explained(first @ axes, float(first.var(axis=0).sum())),
        explained_after=_explained(own @ own_axes, total),
        explained_shared=_explained(shared, total),
    )


def _k_means(X: NDArray[Any], count: int, rng: np.random.Generator) -> NDArray[Any]:
    from sklearn.cluster import KMeans
    from sklearn.exceptions import ConvergenceWarning

    model = KMeans(count, n_init=1, max_iter=50, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
        return np.asarray(model.fit_predict(X))


def _leading(C: Array, count: int) -> Array:
    """The leading right singular vectors (d x count), from the smaller of CᵀC and CCᵀ."""
    n, d = C.shape
    if d <= n:
        _, V = scipy.linalg.eigh(C.T @ C, subset_by_index=[d - count, d - 1])
        return fix_signs(V[:, ::-1])
    _, U = scipy.linalg.eigh(C @ C.T, subset_by_index=[n - count, n - 1])
    Q, _ = np.linalg.qr(C.T @ U[:, ::-1])
    return fix_signs(Q)


def _explained(coordinates: Array, total: float) -> tuple[float, float]:
    first, second = coordinates.var(axis=0) / total if total > 0 else np.zeros(2)
    return float(first), float(second)
