"""Fairness of a classifier towards groups: true positive rates and their gaps.

For class y and group g, with ~g the rows of all other groups,

    TPR(g, y) = P(ŷ = y | class y, group g)        GAP(g, y) = TPR(g, y) - TPR(~g, y)
    RMS = √ mean GAP²                              (De-Arteaga et al. 2019, Bias in Bios)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Label
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.linalg import Array
from expunge.metrics.gap_interval import rms_limits
from expunge.metrics.parity import Counts, class_columns, count_table, in_codes_of, warn_undefined
from expunge.metrics.similarity import pearson

__all__ = [
    "TprGaps",
    "gap_correlation",
    "tpr_gap_rms",
    "tpr_gaps",
]


@dataclass(frozen=True, eq=False)
class TprGaps:
    """True positive rates by class and group, and their gaps.

    A rate without rows is nan and its (class, group) is in `undefined`. A gap that needs it is nan
    too; `rms` and `correlation` leave it out, and `n_gaps` says how many they are made of.

    Attributes
    ----------
    classes : tuple of length c
        The classes of the true labels, sorted.
    groups : tuple of length g
        The groups, sorted.
    gap_groups : tuple of length k
        The groups that have a column in `gaps`: one of two, or each of many against the rest.
    counts, hits : int arrays of shape (c, g)
        Rows of a class and group, and how many of them were classified rightly.
    tpr : array of shape (c, g)
    gaps, shares : arrays of shape (c, k)
        TPR of the group minus that of all others; share of the group among the rows of the class.
    rms : float
        Root of the mean squared gap, over classes (and groups, if there are many).
    n_gaps : int
        Defined gaps, of c times k.
    correlation : float
        Pearson correlation of gaps and shares over the same cells; nan below two or without spread.
    undefined : tuple of (class, group)
        Where there are no rows.
    """

    classes: tuple[Label, ...]
    groups: tuple[Label, ...]
    gap_groups: tuple[Label, ...]
    counts: Counts
    hits: Counts
    tpr: Array
    gaps: Array
    shares: Array
    rms: float
    n_gaps: int
    correlation: float
    undefined: tuple[tuple[Label, Label], ...]

    def rms_interval(self, *, level: float = 0.95, wider: float = 1.0) -> tuple[float, float]:
        """Approximate confidence interval of the `rms` that unlimited rows would give.

        Sampling error adds to every squared gap, so `rms` itself is too large where the gaps are
        small, and may even be above the interval; see `expunge.metrics.gap_interval`.

        Parameters
        ----------
        level : float
            Of confidence.
        wider : float
            Times the standard error of a rate, where rows are not independent.

        Returns
        -------
        (float, float)
            Lower and upper limit; nan where no gap is defined.
        """
        check_number(level, "level", least=0, most=1, strict=True)
        check_number(wider, "wider", least=0)
        columns = np.array([self.groups.index(group) for group in self.gap_groups])
        return rms_limits(self.gaps, self.hits, self.counts, columns, level, wider)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values, None for what is undefined."""
        return {
            "classes": list(self.classes),
            "groups": list(self.groups),
            "gap_groups": list(self.gap_groups),
            "counts": self.counts.tolist(),
            "hits": self.hits.tolist(),
            "tpr": _plain(self.tpr),
            "gaps": _plain(self.gaps),
            "shares": _plain(self.shares),
            "rms": _plain(self.rms),
            "n_gaps": self.n_gaps,
            "correlation": _plain(self.correlation),
            "undefined": [list(pair) for pair in self.undefined],
        }

    def __str__(self) -> str:
        heads = [f"TPR {group} (n)" for group in self.groups]
        heads += [f"gap {group}" for group in self.gap_groups]
        body = [
            [str(label)]
            + [
                f"{rate:.3f} ({n})" if n else "none (0)"
                for rate, n in zip(rates, counts, strict=True)
            ]
            + ["none" if np.isnan(gap) else f"{gap:+.3f}" for gap in gaps]
            for label, rates, counts, gaps in zip(
                self.classes, self.tpr, self.counts, self.gaps, strict=True
            )
        ]
        table = [["class", *heads], *body]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in table
        ]
        total = f"RMS gap {self.rms:.4f} over {self.n_gaps} of {self.gaps.size} gaps, "
        lines.append(f"{total}correlation with the share {self.correlation:.3f}")
        return "\n".join([*lines, *(f"no rows: {label} in {g}" for label, g in self.undefined)])


def tpr_gaps(
    y_true: Any,
    y_pred: Any,
    group: Any,
    *,
    positive: Label | None = None,
    shares: Mapping[Label, float] | None = None,
) -> TprGaps:
    """True positive rates of every class in every group, and the gaps between groups.

    Parameters
    ----------
    y_true, y_pred : arrays of shape (n,)
        True and predicted classes.
    group : array of shape (n,)
        The group of each row, two or more values.
    positive : label, optional
        The group whose rate enters with a plus, against all others together. By default the last
        of two groups in sorted order ("m" of "f" and "m", 1 of 0 and 1); with more than two
        groups, each of them in turn.
    shares : mapping from class to number, optional
        Share of the positive group per class to correlate with, that of the training rows say;
        only with one gap per class. By default the shares among these rows.

    Returns
    -------
    TprGaps

    Examples
    --------
    >>> from expunge.metrics.fairness import tpr_gaps
    >>> y_true = ["nurse"] * 4 + ["judge"] * 4
    >>> y_pred = ["nurse", "nurse", "nurse", "judge", "judge", "judge", "nurse", "judge"]
    >>> found = tpr_gaps(y_true, y_pred, ["f", "f", "m", "m", "m", "m", "f", "f"])
    >>> print(found)
    class  TPR f (n)  TPR m (n)   gap m
    judge  0.500 (2)  1.000 (2)  +0.500
    nurse  1.000 (2)  0.500 (2)  -0.500
    RMS gap 0.5000 over 2 of 2 gaps, correlation with the share nan
    """
    true, predicted, groups = class_columns(y_true=y_true, y_pred=y_pred, group=group)
    counts = count_table(true, groups)
    hits = count_table(true, groups, in_codes_of(true, predicted) == true.values)
    chosen = _gap_groups(groups.labels, positive)
    columns = np.array([groups.labels.index(label) for label in chosen])
    with np.errstate(invalid="ignore"):
        tpr = hits / counts
    gaps = _gaps(hits, counts, columns)
    share = counts[:, columns] / counts.sum(axis=1, keepdims=True)
    if shares is not None:
        share = _given_shares(shares, true.labels, chosen)
    defined = ~np.isnan(gaps)
    return TprGaps(
        classes=true.labels,
        groups=groups.labels,
        gap_groups=chosen,
        counts=counts,
        hits=hits,
        tpr=tpr,
        gaps=gaps,
        shares=share,
        rms=float(np.sqrt(_mean_square(gaps))),
        n_gaps=int(defined.sum()),
        correlation=pearson(gaps[defined], share[defined]),
        undefined=tuple(
            (true.labels[i], groups.labels[j]) for i, j in np.argwhere(counts == 0).tolist()
        ),
    )


def tpr_gap_rms(y_true: Any, y_pred: Any, group: Any, *, positive: Label | None = None) -> float:
    """Root of the mean squared gap in true positive rate, over classes (and groups, if many).

    Parameters
    ----------
    y_true, y_pred, group, positive
        As in `tpr_gaps`.

    Returns
    -------
    float
        Over the gaps that are defined; an `UndefinedMetricWarning` names the classes left out.

    Examples
    --------
    >>> from expunge.metrics.fairness import tpr_gap_rms
    >>> tpr_gap_rms(["a", "a", "a", "b", "b"], ["a", "b", "a", "b", "b"], [0, 0, 1, 0, 1])
    0.3535533905932738
    """
    found = tpr_gaps(y_true, y_pred, group, positive=positive)
    warn_undefined(found.undefined)
    return found.rms


def gap_correlation(
    y_true: Any,
    y_pred: Any,
    group: Any,
    *,
    positive: Label | None = None,
    shares: Mapping[Label, float] | None = None,
) -> float:
    """Pearson correlation over classes of the gap in true positive rate and the group's share.

    With two groups it is the same whichever is positive: the other one has the gap -GAP and the
    share 1 - share.

    Parameters
    ----------
    y_true, y_pred, group, positive, shares
        As in `tpr_gaps`.

    Returns
    -------
    float
        Over the gaps that are defined; an `UndefinedMetricWarning` names the classes left out.

    Examples
    --------
    >>> from expunge.metrics.fairness import gap_correlation
    >>> y_true, group = ["a", "a", "a", "b", "b", "b"], [0, 0, 1, 0, 1, 1]
    >>> round(gap_correlation(y_true, ["a", "a", "b", "a", "b", "b"], group), 3)
    1.0
    """
    found = tpr_gaps(y_true, y_pred, group, positive=positive, shares=shares)
    warn_undefined(found.undefined)
    return found.correlation


def _gap_groups(groups: tuple[Label, ...], positive: Label | None) -> tuple[Label, ...]:
    if positive is None:
        return groups[-1:] if len(groups) == 2 else groups
    if not isinstance(positive, str | int | float | np.generic) or positive not in groups:
        raise InputError(
            "positive is not one of the groups",
            repr(positive),
            f"Pass one of {', '.join(map(repr, groups[:10]))}",
        )
    return (groups[groups.index(positive)],)


def _gaps(hits: Counts, counts: Counts, columns: NDArray[Any]) -> Array:
    """Rate of each chosen group minus that of all others (..., c, k); nan where one has no rows."""
    with np.errstate(invalid="ignore"):
        own = hits[..., columns] / counts[..., columns]
        others = counts.sum(axis=-1, keepdims=True) - counts[..., columns]
        rest = (hits.sum(axis=-1, keepdims=True) - hits[..., columns]) / others
    return np.asarray(own - rest)


def _mean_square(gaps: Array) -> Array:
    """Mean of the defined squared gaps over the last two axes; nan where there is none."""
    defined = ~np.isnan(gaps)
    with np.errstate(invalid="ignore"):
        total = np.where(defined, gaps, 0.0) ** 2
        return np.asarray(total.sum(axis=(-2, -1)) / defined.sum(axis=(-2, -1)))


def _given_shares(
    shares: Mapping[Label, float], classes: tuple[Label, ...], chosen: tuple[Label, ...]
) -> Array:
    if not isinstance(shares, Mapping):
        raise InputError(
            "shares must be a mapping from classes to numbers",
            type(shares).__name__,
            "Pass a dictionary",
        )
    missing = [label for label in classes if label not in shares]
    if len(chosen) > 1 or missing:
        raise InputError(
            "shares must give one number for each class, and gaps must be those of one group",
            f"gaps of {len(chosen)} groups and no share for {missing[:5]!r}",
            "Pass positive= and a share of that group for every class",
        )
    for label in classes:
        check_number(shares[label], f"the share of {label!r}", most=1)
    return np.array([[float(shares[label])] for label in classes])


def _plain(values: Array | float) -> Any:
    """Nested lists with None for nan."""
    array = np.asarray(values, dtype=object)
    array[np.isnan(np.asarray(values))] = None
    return array.tolist()
