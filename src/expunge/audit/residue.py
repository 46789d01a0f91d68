"""How much of a concept comes back on new rows, from sampling error alone.

An eraser removes the difference of two class means as it was estimated, δ̂ = δ + e, where e has the
covariance Σ/n_eff and 1/n_eff = 1/n₀ + 1/n₁. A part of δ survives. In units of the spread within
classes, with Δ the distance of the means before and d the rank of Σ, its squared length is about

    q = Δ² · ((d - r)/n_eff) / (Δ² + d/n_eff),     r the number of erased directions.

The best linear probe with unlimited new rows then has balanced accuracy Φ(√q/2) and AUC Φ(√(q/2)).
A probe that has m new rows to learn from estimates what survives with an error of squared length
d/m_eff; in place of √q it reaches about q/√(q + d/m_eff).

These are expected sizes. The size in one fit varies as χ² with d - r degrees of freedom does; its
95 % point is stated too.

Of c > 2 classes each is taken against the rest. What survives of their means is orthogonal and of
squared length a_j = q_j (1 - π_j), so a row of class j has scores √a_j u + a_j/2 for j and
√a_k v_k - a_k/2 for others, u and v_k standard normal, and is recalled with the probability

    ∫ φ(u) Π_k Φ((√a_j u + (a_j + a_k)/2) / √a_k) du;

for c = 2 the mean of that is the same as above. For numbers, with Δ² = ρ² and n_eff = n, the
unlimited probe has R² = q, and one with m rows, well regularised, about q²/(q + d/m).

An eraser that is told the concept moves each class by its own estimated mean. The means of new rows
then differ by e itself: nothing is projected away, so all of e stays, whatever δ was:

    q = d/n_eff.

n_eff is that of the *fit*, whatever rows are audited; with weights w, n is (Σw)²/Σw². Where the
length of rows goes with the concept it is smaller (`separation.Separation.excess`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import scipy.special

from expunge.audit.separation import WIDE, LabelledSample, Separation, separations
from expunge.concept import Concept, Kind
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows
from expunge.rows.lazy_rows import SelectedRows

__all__ = [
    "FitSize",
    "LabelledRows",
    "Residue",
    "expected_residue",
    "recall",
    "recalls",
    "residue_of_fit",
    "shares_of",
]

LabelledRows = tuple[Rows, Concept]
HIGH = 0.95  # probability of the upper limit
ENDS = ("", "_high", "_here")  # of the names of what a probe reaches
TINY = 1e-18  # squared length of a mean of which nothing is left
NODES = 80  # of the Gauss-Hermite rule


@dataclass(frozen=True)
class FitSize:
    """How large the fit was.

    Attributes
    ----------
    n : int
        Its rows.
    effective_n : float
        Rows without weights that estimate means as well.
    variances : tuple of float or None
        Of each column of the concept that is audited, by its number; None to take those of the
        rows at hand.
    """

    n: int
    effective_n: float
    variances: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Residue:
    """What sampling error leaves on rows that an exact eraser has not seen.

    Attributes
    ----------
    q : float
        Squared distance of the class means of erased new rows, in units of the spread within
        classes; for numbers the R² that is left.
    n, d : int
        Rows of the fit and rank of the covariance.
    n_eff : float
        n₀n₁/(n₀ + n₁) of the fit, weights allowed for, and rows whose length goes with the concept.
    conditional : bool
        Whether the eraser is told the concept of every row: then all of the sampling error stays.
    separation : float or None
        The same squared distance before erasure (ρ² for numbers), sampling bias removed. None
        where both the rows of the fit and the new ones are too few to tell; it is then taken to be
        large.
    balanced_accuracy, auc, r2 : float or None
        Of the best linear probe with unlimited new rows.
    balanced_accuracy_high, auc_high, r2_high : float or None
        What these exceed in one fit of twenty.
    probe_rows : int
        New rows that the probe of the audit learns from.
    balanced_accuracy_here, auc_here, r2_here : float or None
        Of a probe that learns from so many.
    parts_high : dict from int to float
        Of several labels or numbers, or of more than two classes each against the rest: what the
        balanced accuracy (R²) of any of them exceeds in one fit of twenty, by its number among the
        labels of the concept.
    """

    q: float
    n: int
    d: int
    n_eff: float
    conditional: bool
    separation: float | None
    balanced_accuracy: float | None
    auc: float | None
    r2: float | None
    balanced_accuracy_high: float | None
    auc_high: float | None
    r2_high: float | None
    probe_rows: int
    balanced_accuracy_here: float | None
    auc_here: float | None
    r2_here: float | None
    parts_high: dict[int, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        parts = {str(j): high for j, high in self.parts_high.items()}
        return {**asdict(self), "parts_high": parts}

    def ceiling(self, statistic: str) -> float:
        """The balanced accuracy, AUC or R² of a probe with unlimited rows."""
        return float(getattr(self, statistic))

    def high(self, statistic: str) -> float:
        """What that exceeds in one fit of twenty."""
        return float(getattr(self, f"{statistic}_high"))

    def here(self, statistic: str) -> float:
        """The same of a probe with the rows of the audit."""
        return float(getattr(self, f"{statistic}_here"))


def expected_residue(
    moments: Moments,
    probe_rows: int,
    *,
    fit: FitSize | None = None,
    conditional: bool = False,
) -> Residue | None:
    """The residue to expect from an exact eraser, where all rows are about equally long.

    Parameters
    ----------
    moments : Moments
        Of rows before erasure, with Sxx: those of the fit, or others like them.
    probe_rows : int
        New rows that a probe learns from.
    fit : FitSize, optional
        How large the fit was; by default that of the moments.
    conditional : bool
        Whether the eraser is told the concept of every row.

    Returns
    -------
    Residue or None
        Means over classes against the rest (over labels, over columns) where there are several.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Moments
    >>> from expunge.audit.residue import expected_residue
    >>> from expunge.inputs import check_concept
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 4000)
    >>> X = rng.normal(size=(4000, 100)) + np.outer(y, np.eye(100)[0]) * 4
    >>> found = expected_residue(Moments.of(X, check_concept(y, 4000)), 10_000)
    >>> round(found.q, 2), round(found.balanced_accuracy, 2)
    (0.1, 0.56)
    """
    size = FitSize(moments.n, moments.weight) if fit is None else fit
    apart = separations(moments, fitted=size.n)
    return _of_columns(apart, moments.kind, probe_rows, size, conditional)


def residue_of_fit(
    size: FitSize,
    probe_rows: int,
    fit: LabelledRows | None,
    new: LabelledRows,
    *,
    conditional: bool = False,
) -> Residue | None:
    """The residue to expect on new rows, from the rows of the fit where these tell enough.

    Parameters
    ----------
    size : FitSize
    probe_rows : int
        New rows that a probe learns from.
    fit : pair of Rows and Concept, or None
        Those of the fit, before erasure.
    new : pair of Rows and Concept
        Rows that are tested, before erasure, for a fit that is not there or has too few rows to
        tell how far apart classes are. What is left of a class that they do not have is not
        measured, and chance does not count it.
    conditional : bool
        Whether the eraser is told the concept of every row.

    Returns
    -------
    Residue or None
    """
    found: dict[int, Separation] = {}
    if fit is not None:
        found = _apart(*_of_tested_classes(*fit, new[1]), size.n)
    told = bool(found) and all(of.squared is not None for of in found.values())
    if not told and (fit is None or fit[0] is not new[0]):
        apart = _apart(*new, size.n)
        found = {j: replace(of, variance=found.get(j, of).variance) for j, of in apart.items()}
    return _of_columns(found, new[1].kind, probe_rows, size, conditional)


def _apart(rows: Rows, concept: Concept, fitted: int) -> dict[int, Separation]:
    moments = rows.moments(concept, second=rows.n_features <= WIDE)
    return separations(moments, fitted=fitted, sample=lambda: LabelledSample.of(rows, concept))


def _of_columns(
    apart: dict[int, Separation], kind: Kind, probe_rows: int, size: FitSize, conditional: bool
) -> Residue | None:
    """The mean over columns of the concept."""
    several = len(apart) > 1
    rare = (1 - HIGH) / len(apart) if several else 1 - HIGH
    found = [
        _of_column(of, kind, j, probe_rows, size, conditional, rare) for j, of in apart.items()
    ]
    parts = [residue for residue, _, _ in found]
    if not parts:
        return None
    means: dict[str, Any] = {}
    for key in vars(parts[0]).keys() - {"parts_high"}:
        values = [getattr(part, key) for part in parts]
        means[key] = None if None in values else float(np.mean(values))
    if kind == "classes" and several:
        shares = np.array([of.share for of in apart.values()])
        if size.variances is not None:
            shares = shares_of(np.array([size.variances[j] for j in apart]))
        for end in ENDS:
            lengths = np.array([sizes[end] for _, sizes, _ in found]) * (1 - shares)
            means[f"balanced_accuracy{end}"] = float(recalls(lengths).mean())
    whole = {"n": size.n, "d": parts[0].d, "probe_rows": probe_rows, "conditional": conditional}
    highs = {j: high for j, (_, _, high) in zip(apart, found, strict=True)} if several else {}
    return Residue(**{**means, **whole}, parts_high=highs)


def _of_tested_classes(rows: Rows, concept: Concept, tested: Concept) -> tuple[Rows, Concept]:
    """Those rows of a fit, with their concept, whose classes the tested rows have too."""
    if concept.kind != "classes":
        return rows, concept
    index = np.flatnonzero(np.isin(concept.values, tested.values))
    some = rows if len(index) == rows.n_samples else SelectedRows(rows, index)
    return some, concept.take(index)


def _of_column(
    of: Separation,
    kind: Kind,
    j: int,
    probe_rows: int,
    fit: FitSize,
    conditional: bool,
    rare: float,
) -> tuple[Residue, dict[str, float], float]:
    """The residue of one class against the rest, one label or one column of numbers.

    With it its sizes q by their ends, and what the balanced accuracy or R² exceeds with the
    probability `rare`.
    """
    numbers = kind == "continuous"
    share = 1.0 if numbers else of.variance
    fitted = share if numbers or fit.variances is None else fit.variances[j]
    n_eff, m_eff = (n / of.excess for n in (fit.effective_n * fitted, probe_rows * share))
    d, separation = of.rank, of.squared
    erased = 0 if conditional else of.erased
    q = max(d - erased, 0) / n_eff if n_eff > 0 else 0.0
    if separation is not None and not conditional:
        q *= separation / (separation + d / n_eff) if separation > 0 else 0.0
    reached = q**2 / (q + d / m_eff) if m_eff and q > 0 else 0.0
    freedom = max(d - erased, 1)
    largest, most = (
        q * float(scipy.special.chdtri(freedom, p)) / freedom for p in (1 - HIGH, rare)
    )
    sizes = dict(zip(ENDS, (q, largest, reached), strict=True))
    scores: dict[str, float | None] = {}
    for end, size in sizes.items():
        scores["balanced_accuracy" + end] = None if numbers else recall(size)
        scores["auc" + end] = None if numbers else float(scipy.special.ndtr(np.sqrt(size / 2)))
        scores["r2" + end] = min(size, 1.0) if numbers else None
    residue = Residue(
        q=q,
        n=fit.n,
        d=d,
        n_eff=n_eff,
        conditional=conditional,
        separation=separation,
        probe_rows=probe_rows,
        parts_high={},
        **scores,
    )
    return residue, sizes, min(most, 1.0) if numbers else recall(most)


def recall(q: float) -> float:
    """Φ(√q/2), the mean recall of two classes.

    Parameters
    ----------
    q : float
        Squared distance of their means, in units of the spread.

    Returns
    -------
    float
        The balanced accuracy of the best linear probe.
    """
    return float(scipy.special.ndtr(np.sqrt(q) / 2))


def recalls(lengths: Array) -> Array:
    """Recall of each of several classes, whose means lie in directions of their own.

    Parameters
    ----------
    lengths : array of shape (c,)
        Squared lengths of the means, in units of the spread.

    Returns
    -------
    array of shape (c,)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.residue import recall, recalls
    >>> recalls(np.array([0.1, 0.1, 0.4])).round(2)
    array([0.42, 0.42, 0.54])
    >>> recalls(np.array([0.2, 0.2])).round(4), round(recall(0.4), 4)
    (array([0.6241, 0.6241]), 0.6241)
    """
    a = np.maximum(lengths, TINY)
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    found = np.empty(len(a))
    for j in range(len(a)):
        others = np.delete(a, j)
        ahead = (np.sqrt(a[j]) * nodes[:, None] + (a[j] + others) / 2) / np.sqrt(others)
        found[j] = weights @ scipy.special.ndtr(ahead).prod(axis=1)
    return np.asarray(found / np.sqrt(2 * np.pi))


def shares_of(variances: Array) -> Array:
    """Shares of all classes of a concept from π(1 - π): one at most has more than half.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.residue import shares_of
    >>> shares_of(np.array([0.24, 0.09, 0.21])).round(2)
    array([0.6, 0.1, 0.3])
    """
    shares = (1 - np.sqrt(np.maximum(1 - 4 * variances, 0.0))) / 2
    if shares.sum() < 1 - 1e-9:
        largest = int(shares.argmax())
        shares[largest] = 1 - (shares.sum() - shares[largest])
    return np.asarray(shares)
