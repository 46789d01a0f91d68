"""How many labels it takes for erasure to hold on new rows, before they are paid for.

With n labels the direction that is erased is off by sampling error, and of the squared distance Δ²
of the class means, in units of the spread within classes, the part

    q(n) = Δ² (d - r) E[1/(d + 2J)],    J ~ Poisson(n_eff Δ²/2),   n_eff = n π(1 - π),

is left on new rows (d columns, r directions erased; exact where the spread is alike in all
directions). A probe with unlimited rows then has the balanced accuracy Φ(√q/2). In one fit q varies
as χ² with d - r degrees of freedom does.

Rows without labels make n labels worth n / (1 - ρ²/(1 + n/N)): ρ is the correlation of what rows
add to the covariance with the concept and with its predictions, as predictors that have learnt from
n rows of the pilot reach it; it is not believed to rise beyond the size of the pilot.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.optimize
import scipy.special
import scipy.stats
from numpy.typing import NDArray

from expunge.audit.residue import recall, recalls
from expunge.audit.separation import LabelledSample, Separation, separations
from expunge.concept import Concept
from expunge.erasers.pooled_fit import check_groups
from expunge.errors import InputError, PoolRepeats
from expunge.inputs import check_concept, check_number, check_rng, check_rows
from expunge.inputs.frames import columns_of, rows_of_table
from expunge.inputs.swapped import refuse_swapped
from expunge.inputs.widths import check_width
from expunge.number_text import short
from expunge.plotting import new_axes
from expunge.pooling.cross_fitting import cross_fit
from expunge.pooling.different_rows import different_rows, what_does_not_count
from expunge.pooling.sharpened import design_effect, influence_of
from expunge.rows.base import Rows

__all__ = ["LabelPlan", "expected_share_left", "plan_labels"]

MOST = 1e9  # labels beyond which nobody plans
SHARE = 0.95  # of fits that stay below the target with `labels_high`
ROWS = 2  # of each class, that a fit has to have
FEWEST = 16  # rows of a part of the pilot
REPEATS = 3  # random parts of each size
COUNTS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)


@dataclass(frozen=True)
class LabelPlan:
    """How many labels keep a linear probe on new rows below a target.

    Attributes
    ----------
    target : float
        Balanced accuracy of the probe.
    labels : int or None
        At which it is expected at the target; None where even a billion are too few.
    labels_low, labels_high : int or None
        At which it is below the target in one fit of twenty, and in nineteen; never below `fewest`.
    with_pool, with_pool_low, with_pool_high : int or None
        The same with rows that have no labels; None without any.
    pool : int
        How many of these there are that count.
    table : tuple of (int, float, float or None)
        Labels, and the balanced accuracy to expect without and with the pool.
    separation : float
        Δ², the largest of a class against the rest.
    n_features : int
        d, the number of directions in which rows vary.
    correlation : float
        ρ², by how much predictions follow the concept; 0 without a pool.
    fewest : int
        Labels among which two rows of each class can be expected: no plan has fewer.
    before : float or None
        Balanced accuracy of the probe before anything is erased.
    """

    target: float
    labels: int | None
    labels_low: int | None
    labels_high: int | None
    with_pool: int | None
    with_pool_low: int | None
    with_pool_high: int | None
    pool: int
    table: tuple[tuple[int, float, float | None], ...]
    separation: float
    n_features: int
    correlation: float
    fewest: int = 1
    before: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        target = f"{short(100 * self.target, 3)} % (balanced accuracy)"
        said = [f"For a linear probe on new rows at {target}:"]
        if self.before is not None and self.before <= self.target:
            found = f"by the pilot, such a probe is at {100 * self.before:.1f} % now"
            said.append(f"  met before anything is erased: {found}")
        said.append(f"  {self._counted(self.labels, self.labels_low, self.labels_high)}")
        if self.pool:
            found = self._counted(self.with_pool, self.with_pool_low, self.with_pool_high)
            said.append(f"  {found}, with {self.pool:,} rows without labels")
        said.append(f"{'labels':>10}{'alone':>10}" + (f"{'with pool':>12}" if self.pool else ""))
        for n, alone, helped in self.table:
            more = "" if helped is None else f"{100 * helped:10.1f} %"
            said.append(f"{n:10,}{100 * alone:8.1f} %{more}")
        return "\n".join(said)

    def _counted(self, n: int | None, low: int | None, high: int | None) -> str:
        if n is None:
            return "more than a billion labels"
        if high is not None and high <= self.fewest:
            return f"met by any fit with two rows of each class: from about {self.fewest:,} labels"
        ends = (low, high)
        said = " to ".join("a billion and more" if end is None else f"{end:,}" for end in ends)
        return f"{n:,} labels ({said} in 90 of 100 fits)"

    def plot(self, ax: Any = None) -> Any:
        """Balanced accuracy against labels, without and with the pool; matplotlib axes."""
        axes = new_axes() if ax is None else ax
        n = [row[0] for row in self.table]
        axes.plot(n, [row[1] for row in self.table], marker="o", label="labels alone")
        if self.pool:
            shown = [row[2] for row in self.table]
            axes.plot(n, shown, marker="s", label=f"with {self.pool:,} rows without labels")
        axes.axhline(self.target, color="grey", linestyle="--", label="target")
        axes.set(xscale="log", xlabel="labels", ylabel="balanced accuracy of a probe on new rows")
        axes.legend()
        return axes


def plan_labels(
    X: Any,
    y: Any,
    target: float = 0.55,
    *,
    unlabelled: Any = None,
    groups: Any = None,
    concept_type: Any = "auto",
    random_state: Any = None,
) -> LabelPlan:
    """How many labels a probe on new rows asks for, from a pilot sample.

    Parameters
    ----------
    X : array, frame, tensor or Rows of shape (n, d)
        The pilot: rows with labels, at least some more than columns.
    y : array of shape (n,)
        Their classes.
    target : float
        Balanced accuracy that a linear probe on new rows is to stay below, over chance.
    unlabelled : int, array or Rows, optional
        Rows without labels that will be there, or how many. Of rows, those count that are different
        and not in the pilot; of a file, 20,000 are looked at for that.
    groups : array of shape (n,), optional
        What the rows of the pilot belong to, where several belong to one.
    concept_type : {"auto", "classes", "labels"}
    random_state : int, Generator or None

    Returns
    -------
    LabelPlan

    Raises
    ------
    InputError
        For a pilot too small to tell how far apart the classes are, and for numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 30)) + 4 * np.outer(y, np.eye(30)[0])
    >>> plan = ex.plan_labels(X, y, 0.55, unlabelled=20_000)
    >>> 1000 < plan.labels < 4000, plan.with_pool < plan.labels
    (True, True)
    """
    refuse_swapped(X, y)
    X = rows_of_table(X, y, groups)
    unlabelled = rows_of_table(unlabelled, known=columns_of(X), name="unlabelled")
    rows = check_rows(X)
    concept = check_concept(y, rows, concept_type=concept_type)
    together, rng = check_groups(groups, rows), check_rng(random_state)
    if concept.kind == "continuous":
        raise InputError(
            "Labels can be planned for classes only", "numbers", "Cut the numbers into classes"
        )
    moments = rows.moments(concept)
    parts = list(separations(moments, sample=lambda: LabelledSample.of(rows, concept)).values())
    several = concept.kind == "classes" and len(parts) > 2
    chance = 1 / len(parts) if several else 0.5  # a label is there or not, whatever others are
    check_number(target, "target", least=chance, most=1.0, strict=True)
    if not parts or any(part.squared is None for part in parts):
        raise InputError(
            "The pilot is too small to tell how far apart the classes are",
            f"{rows.n_samples} rows of {rows.n_features} columns",
            "Label some more rows than there are columns, or take fewer columns (PCA)",
        )
    size, design = _pool_size(unlabelled, rows), 1.0
    if together is not None:
        design = design_effect(rows, concept, moments, None, together)
    fewest = _fewest(min(part.variance for part in parts))
    counts, followed = _learning_curve(rows, concept, together, rng) if size else ([1], [0.0])

    def worth(n: float, pool: int) -> float:
        rho = float(np.interp(np.log(n), np.log(counts), followed))
        saved = rho / (1 + n / pool) if pool else 0.0
        return n / design / max(1 - saved, 1e-6)

    def found(n: float, pool: int, share: float | None = None) -> float:
        return _accuracy(parts, [_left(p, worth(n, pool), share) for p in parts], several)

    def least(pool: int, share: float | None) -> int | None:
        return _least(lambda n: found(n, pool, share), target, fewest)

    ends = {
        name: least(pool, share)
        for pool, begin in ((0, "labels"), (size, "with_pool"))
        for share, name in ((None, begin), (1 - SHARE, f"{begin}_low"), (SHARE, f"{begin}_high"))
        if begin == "labels" or size
    }
    table = tuple((n, found(n, 0), found(n, size) if size else None) for n in COUNTS)
    helped = {key: ends.get(key) for key in ("with_pool", "with_pool_low", "with_pool_high")}
    return LabelPlan(
        target=float(target),
        labels=ends["labels"],
        labels_low=ends["labels_low"],
        labels_high=ends["labels_high"],
        **helped,
        pool=size,
        table=table,
        separation=float(max(part.squared or 0.0 for part in parts)),
        n_features=parts[0].rank,
        correlation=followed[-1],
        fewest=fewest,
        before=_accuracy(parts, [part.squared or 0.0 for part in parts], several),
    )


def _fewest(variance: float) -> int:
    """Labels among which two of a class can be expected, from the variance π(1 - π) of it."""
    share = (1 - np.sqrt(max(1 - 4 * variance, 0.0))) / 2
    return int(np.ceil(ROWS / share - 1e-9))


def _learning_curve(
    rows: Rows, concept: Concept, groups: NDArray[np.intp] | None, rng: np.random.Generator
) -> tuple[list[int], list[float]]:
    """ρ² of predictors that have learnt from parts of the pilot: fewer labels predict worse."""
    counts, found = [], []
    for share in (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1):
        n = int(share * rows.n_samples)
        if n < FEWEST:
            continue
        repeats = 1 if share == 1 else REPEATS
        tries = [
            _followed(rows, concept, groups, np.sort(rng.permutation(rows.n_samples)[:n]), rng)
            for _ in range(repeats)
        ]
        counts.append(n)
        found.append(float(np.mean(tries)))
    return (counts, found) if counts else ([1], [0.0])


def _followed(
    rows: Rows,
    concept: Concept,
    groups: NDArray[np.intp] | None,
    index: NDArray[np.intp],
    rng: np.random.Generator,
) -> float:
    part, known = rows.take(index), concept.take(index).with_weight(np.ones(len(index)))
    own = None if groups is None else np.unique(groups[index], return_inverse=True)[1]
    moments = part.moments(known, second=False)
    models = cross_fit(part, known, moments, None, own, rng)
    if not models.informative:
        return 0.0
    a = influence_of(part, known, models.own, moments, None, own)
    return min(max(a.zf, 0.0) ** 2 / (a.zz * a.ff), 1.0) if a.zz * a.ff > 0 else 0.0


def _pool_size(unlabelled: Any, pilot: Rows) -> int:
    if unlabelled is None:
        return 0
    if isinstance(unlabelled, int | np.integer):
        check_number(int(unlabelled), "unlabelled", least=0, whole=True)
        return int(unlabelled)
    pool = check_rows(unlabelled, name="unlabelled", least=1)
    check_width(pool.n_features, pilot.n_features, by="The pilot")
    size = different_rows(pilot, pool)
    if said := what_does_not_count(pool.n_samples, size):
        warnings.warn(PoolRepeats(said), stacklevel=3)
    return size


def expected_share_left(d: int, erased: int, kappa: float) -> float:
    """(d - r) E[1/(d + 2J)], J ~ Poisson(κ/2): the part of Δ² that an erased estimate leaves.

    Parameters
    ----------
    d : int
        Directions in which rows vary.
    erased : int
        r.
    kappa : float
        n_eff Δ².

    Returns
    -------
    float
    """
    mean, left = kappa / 2, max(d - erased, 0)  # classes may have more contrasts than columns
    low, high = (max(0, int(mean + s * (12 * np.sqrt(mean) + 40))) for s in (-1, 1))
    if high - low > 200_000:  # the spread of J is nothing beside its mean
        return left / (d + kappa)
    J = np.arange(low, high + 1)
    return float(left * np.sum(scipy.stats.poisson.pmf(J, mean) / (d + 2 * J)))


def _accuracy(parts: list[Separation], squared: list[float], several: bool) -> float:
    """Balanced accuracy where classes are so far from the rest; the mean of labels."""
    if several:
        return float(recalls(np.array(squared) * [1 - part.share for part in parts]).mean())
    return float(np.mean([recall(q) for q in squared]))


def _left(part: Separation, n: float, share: float | None) -> float:
    """Δ² to expect after a fit to n labels, or that which so many of the fits stay below."""
    assert part.squared is not None
    kappa = n * part.variance / part.excess * part.squared
    q = part.squared * expected_share_left(part.rank, part.erased, kappa)
    if share is not None:
        freedom = max(part.rank - part.erased, 1)
        q *= float(scipy.stats.chi2.ppf(share, freedom)) / freedom
    return q


def _least(accuracy: Callable[[float], float], target: float, fewest: int) -> int | None:
    """The least number of labels, of those allowed, with an accuracy at the target or below."""
    if accuracy(MOST) > target:
        return None
    if accuracy(float(fewest)) <= target:
        return fewest
    ends = np.log10([fewest, MOST])
    root = scipy.optimize.brentq(lambda t: accuracy(10**t) - target, *ends, xtol=1e-4)
    return int(np.ceil(10**root))
