"""The certificate: a lower bound on what is left for every linear predictor, proven from the rows.

With a ridge the predictor's problem on erased rows is min over Θ, b of

    f(Θ, b) = mean ℓ(y, Θᵀx' + b) + ½ Σ ρⱼ ‖θⱼ‖²,     ρⱼ = α times the variance of column j of x',

so every column is read in its own unit and none hides another. Residuals R that add up to zero are
a point of the dual problem, and give a lower bound on f for *every* Θ and b (`dual_bound`).
Those of the null model need no iteration: V0 - ½ Σ ‖(M XᵀR0)ⱼ‖²/ρⱼ, which is what a closed form
satisfies to rounding. Otherwise a predictor is trained on the erased rows and the bound is taken
where it stopped: a half-trained predictor gives a low bound, it cannot flatter.

A concept of several labels or numbers is judged column by column, each against its own null model:
a number in large units must not hide a label.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from expunge.concept import Concept, Label
from expunge.erasure import Erasure
from expunge.errors import InputError, NotConverged
from expunge.game.kept import LEAST, Kept, kept_in_moments, kept_in_rows, least_spreads
from expunge.game.losses import Loss
from expunge.game.null_model import Observed, needs_rows, null_model
from expunge.game.predictor import Problem, dual_bound, fit_predictor
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.number_text import short
from expunge.rows.base import Rows

__all__ = ["Certificate", "certify", "certify_moments"]

PRECISION = (1e-10, 1e-3)  # within these the predictor follows `tol`, which may be 0
ROUNDING = 1e-9  # by how much, relative to V0, a lower bound may pass the upper one


@dataclass(frozen=True)
class Certificate:
    """What is proven about an erasure on the rows it was computed from.

    Attributes
    ----------
    value : float
        Lower bound on the loss (ridge term included) of every linear predictor on erased rows.
    primal : float
        Loss (ridge term included) that a trained predictor reached: the best lies between the two.
    bound : float
        V0, the loss of a predictor that ignores x; no erasure can force more.
    gap : float
        ``bound - value``: at most this much can be gained from x.
    bits_left : float or None
        The gap in bits per row, for cross-entropy.
    erased : bool
        Whether ``gap <= tol * bound``; of several labels or numbers, for each of them.
    optimal : bool or None
        Whether no erasure of the same rank does better; None where that is not known.
    loss : str
    alpha, ridge : float
        The ridge: relative to the variance of each column of the erased rows, and the average of
        the absolute ones.
    tol : float
    worst : label or None
        Of several labels or numbers, the one of the largest gap relative to its own bound.
    variance_kept : float or None
        Share of the variance of the rows that is left after the erasure.
    columns_kept : int or None
        Columns that keep at least a hundredth of their variance.
    kept_sampled : bool
        Whether the two are estimates from some of the rows.
    rows : str
        Which rows it speaks of, if not simply those of the fit.
    ridges : array of shape (d,)
        The absolute ridge of each column; not in `to_dict`.
    """

    value: float
    primal: float
    bound: float
    gap: float
    bits_left: float | None
    erased: bool
    optimal: bool | None
    loss: str
    alpha: float
    ridge: float
    tol: float
    worst: Label | None = None
    variance_kept: float | None = None
    columns_kept: int | None = None
    kept_sampled: bool = False
    rows: str = ""
    ridges: Array = field(default_factory=lambda: np.zeros(0), repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """The fields as plain values."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name != "ridges"}

    def in_units(self, kept: Kept) -> Certificate:
        """The same bound, stated for columns of these spreads, none below those it was proven in.

        A larger ridge only raises the loss of every predictor.
        """
        return replace(
            self,
            ridge=float(self.alpha * np.mean(kept.spreads**2)),
            ridges=self.alpha * kept.spreads**2,
            variance_kept=kept.variance,
            columns_kept=kept.columns,
            kept_sampled=kept.sampled,
        )

    def __str__(self) -> str:
        bits = "" if self.bits_left is None else f", at most {self.bits_left:.2g} bits per row left"
        charge = f"(coefficients charged {self.alpha:g} of the variance of each column)"
        if self.erased:
            found = f"erased: every linear predictor has {self.loss} loss >= {self.value:.6g}"
        else:
            found = (
                f"NOT erased: the best linear predictor has {self.loss} loss plus ridge term "
                f"between {self.value:.6g} and {self.primal:.6g}"
            )
            if self.worst is not None:
                found += f", most of all of {self.worst!r}"
        lines = [f"{found}; ignoring x gives {self.bound:.6g}{bits} {charge}"]
        if self.rows:
            lines.append(f"rows: {self.rows}")
        if self.variance_kept is not None:
            share = f"{'about ' if self.kept_sampled else ''}{short(100 * self.variance_kept, 3)}"
            columns = f"{self.columns_kept} of {len(self.ridges)} columns"
            lines.append(f"kept: {share} % of the variance, {columns}")
        return "\n".join(lines)


@dataclass
class _Part:
    """What is known of the whole concept, or of one column that is judged by itself."""

    columns: tuple[int, ...] | None
    value: float
    primal: float
    bound: float

    @property
    def proven(self) -> float:
        """The lower bound; a loss is never negative."""
        return max(self.value, 0.0)

    @property
    def gap(self) -> float:
        return max(self.bound - self.proven, 0.0)

    def is_erased(self, tol: float) -> bool:
        """Judged by what the residuals prove, not by what a loss should be."""
        return self.bound - self.value <= tol * self.bound

    def learn(self, value: float, primal: float) -> None:
        """Take in a better lower and upper bound, unless they contradict each other."""
        if not value <= primal + ROUNDING * self.bound:
            warnings.warn(
                NotConverged(
                    "The certificate's bounds contradict each other "
                    f"({value:.6g} above {primal:.6g}): rounding has spoilt them, and no more is "
                    "proven than without training a predictor. Rescale the rows or the weights, or "
                    "raise alpha"
                ),
                stacklevel=6,
            )
            return
        self.primal = min(self.primal, primal)
        self.value = min(max(self.value, value), self.primal)


def certify(
    rows: Rows,
    concept: Concept,
    erasure: Erasure,
    loss: Loss,
    *,
    weights: Array | None = None,
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    tol: float = 1e-6,
    max_passes: int = 500,
    moments: Moments | None = None,
    kept: Kept | None = None,
    floor: Array | None = None,
) -> Certificate:
    """Certificate of an erasure on given rows, whatever way it was found.

    What is erased in the smallest units that the columns could have is erased in their own, and
    no spread has to be known. Else they are taken from second moments of all rows.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    erasure : Erasure
    loss : Loss
    weights : array of shape (n,), optional
    fit_intercept : bool
        Whether the predictor has an intercept.
    alpha : float
        Ridge relative to the variance of each column of the erased rows.
    tol : float
        What still counts as erased, relative to the bound.
    max_passes : int
        Passes to spend on the predictor when one is needed.
    moments : Moments, optional
        Of these rows and weights, where they are known already.
    kept : Kept, optional
        What the erasure leaves of the rows, for the words on it, where it is known already.
    floor : array of shape (d,), optional
        Spreads below which a column holds nothing but rounding, of rows that were changed before.

    Returns
    -------
    Certificate

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Erasure
    >>> from expunge.game.certificate import certify
    >>> from expunge.game.losses import loss_for
    >>> from expunge.inputs import check_concept, check_rows
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), [0, 0, 1, 1]
    >>> rows, concept = check_rows(X), check_concept(y, 4)
    >>> loss = loss_for("cross_entropy", "classes", 2)
    >>> certify(rows, concept, Erasure([[1.0], [0.0]], [[1.0, 0.0]]), loss).erased
    True
    >>> certify(rows, concept, Erasure([[0.0], [1.0]], [[0.0, 1.0]]), loss).erased
    False
    """
    if moments is None:
        moments = rows.moments(concept, weights, second=False)
    if kept is None:
        kept = kept_in_rows(rows, erasure, moments, concept, weights)
    observed = Observed(rows, concept, weights)
    floor = np.zeros(moments.n_features) if floor is None else floor
    units = np.maximum(kept.spreads, floor)
    least = np.clip(_least_units(moments, erasure), floor, units)
    parts = _without_training(moments, erasure, loss, fit_intercept, alpha, least, observed)
    if not all(part.is_erased(tol) for part in parts):
        full = moments if moments.xx is not None else rows.moments(concept, weights, second=True)
        exact = kept_in_moments(full, erasure)
        assert exact is not None  # second moments are known
        units = np.maximum(exact.spreads, floor)
        parts = _without_training(moments, erasure, loss, fit_intercept, alpha, units, observed)
    open_ = [part for part in parts if not part.is_erased(tol)]
    if open_:
        precision = float(np.clip(tol, *PRECISION)) / 10
        for group in _groups(open_, moments):
            at = [j for part in group for j in part.columns or ()] or None
            play = _Play(
                rows,
                concept if at is None else concept.only(at),
                full if at is None else full.only(at),
                {
                    "weights": weights,
                    "alpha": alpha,
                    "fit_intercept": fit_intercept,
                    "erasure": erasure,
                    "units": units,
                },
            )
            with np.errstate(over="ignore", invalid="ignore"):  # `learn` believes no such number
                play.settle(group, loss, precision, max_passes)
    return _certificate(parts, moments, loss, alpha, tol, units, kept)


def certify_moments(
    moments: Moments,
    erasure: Erasure,
    loss: Loss,
    *,
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    tol: float = 1e-6,
    kept: Kept | None = None,
    smallest: bool = False,
    slack: Array | None = None,
) -> Certificate:
    """Certificate from moments alone, by the bound at Θ = 0; exact for closed forms.

    Parameters
    ----------
    moments : Moments
    erasure, loss, fit_intercept, alpha, tol, kept
        As in `certify`. Where nothing is known of the rows after the erasure, each column has
        the smallest unit it could have: nothing can hide.
    smallest : bool
        Whether to take these units in any case: where `kept` is no more than an estimate.
    slack : array of shape (d, m), optional
        By how much the covariance with numbers may be off, beyond the rounding of its own sums.

    Returns
    -------
    Certificate
        Its `value` is a valid bound for any erasure, but a loose one where much is left.
    """
    kept = None if smallest else kept or kept_in_moments(moments, erasure)
    units = _least_units(moments, erasure) if kept is None else kept.spreads
    parts = _without_training(moments, erasure, loss, fit_intercept, alpha, units, None, slack)
    return _certificate(parts, moments, loss, alpha, tol, units, kept)


def _least_units(moments: Moments, erasure: Erasure) -> Array:
    """The smallest spread each column may have after an erasure, but for rounding."""
    taken = np.linalg.norm(erasure.right * np.sqrt(moments.squares / moments.weight), axis=1)
    written = LEAST * (np.abs(erasure.left) @ taken)  # a constant column may be written to
    units = np.where(moments.squares > 0, least_spreads(moments), written)
    return np.where(units > 0, units, 1.0)


def _columns_of(moments: Moments, loss: Loss) -> Iterator[tuple[int, ...] | None]:
    """What is judged by itself: the columns of a separable loss, or the whole concept."""
    m = len(moments.labels)
    if loss.separable and not (moments.kind == "classes" and m == 2):
        yield from ((j,) for j in range(m))
    else:
        yield None


def _without_training(
    moments: Moments,
    erasure: Erasure,
    loss: Loss,
    fit_intercept: bool,
    alpha: float,
    units: Array,
    observed: Observed | None,
    slack: Array | None = None,
) -> list[_Part]:
    """The parts of a concept with the bound that the null model's residuals give."""
    whole, origin = None, None
    if needs_rows(loss, moments.kind):  # one pass for all parts
        whole = null_model(loss, moments, fit_intercept, observed)
    if not fit_intercept:
        origin = erasure.transform(np.zeros(erasure.n_features))
    parts = []
    for columns in _columns_of(moments, loss):
        if whole is not None:
            null = whole if columns is None else whole.only(columns)
        else:
            of_part = moments if columns is None else moments.only(columns)
            null = null_model(loss, of_part, fit_intercept)
        G = null.gradient - erasure.left @ (erasure.right @ null.gradient)
        if origin is not None:
            G = G + np.outer(origin, null.residual_mean)
        if moments.kind == "continuous" and whole is None:
            G = np.abs(G) + _rounding_of_sums(moments, erasure, columns)
            if slack is not None:
                G = G + (slack if columns is None else slack[:, list(columns)])
        with np.errstate(over="ignore"):  # then nothing is proven
            value = null.value - float(np.sum((G / units[:, None]) ** 2)) / (2 * alpha)
        value = value if np.isfinite(value) else -np.inf
        parts.append(_Part(columns, min(value, null.value), null.value, null.value))
    return parts


def _rounding_of_sums(moments: Moments, erasure: Erasure, columns: tuple[int, ...] | None) -> Array:
    """What the digits of the means of numbers (d x m) may hide of their covariance with x.

    Sums of parts are put together through these means, whose last digit is that of their size: far
    from zero it is no longer small beside the spread of the numbers.
    """
    size = np.abs(moments.mean_z if columns is None else moments.mean_z[list(columns)])
    spread = np.sqrt(moments.squares / moments.weight)
    slack = 4 * float(np.finfo(np.float64).eps) * np.outer(spread, size)
    return np.asarray(slack + np.abs(erasure.left) @ (np.abs(erasure.right) @ slack))


def _groups(parts: list[_Part], moments: Moments) -> list[list[_Part]]:
    """Parts whose predictors are trained together: those that share a scale."""
    return [[part] for part in parts] if moments.kind == "continuous" else [parts]


@dataclass
class _Play:
    """Training a predictor of some columns, and what its last passes prove."""

    rows: Rows
    concept: Concept
    moments: Moments
    terms: dict[str, Any]

    def problem(self, loss: Loss, columns: Sequence[int] | None = None) -> Problem:
        concept, moments = self.concept, self.moments
        if columns is not None:
            concept, moments = concept.only(columns), moments.only(columns)
        return Problem(self.rows, concept, loss, moments, **self.terms)

    def settle(self, parts: list[_Part], loss: Loss, precision: float, max_passes: int) -> None:
        """Train, and tell each part what was found of it."""
        start, lower = None, 0.0
        for smooth in loss.surrogates:
            problem = self.problem(smooth)
            found = fit_predictor(problem, tol=precision, max_passes=max_passes, start=start)
            start, lower = (found.coef, found.intercept), max(lower, found.lower_bound)
        if found.loss < -ROUNDING * problem.null.value:
            raise InputError(
                f"The loss {loss.name!r} is negative: a bound on what is left would mean nothing",
                f"a mean of {found.loss:.3g} for a trained predictor",
                "Add to it what depends on the target alone, so that it is never below zero",
            )
        if len(parts) == 1:
            upper = (
                found.value if smooth is loss else self._value(loss, found.coef, found.intercept)
            )
            parts[0].learn(lower, upper)
            return
        for j, part in enumerate(parts):
            theta, b = found.coef[:, [j]], found.intercept[[j]]
            alone = self.problem(smooth, (j,))
            upper, _, _, got = alone.evaluate(theta * alone.unit, b)
            lower = dual_bound(alone, theta * alone.unit, b, got)
            part.learn(lower, upper if smooth is loss else self._value(loss, theta, b, (j,)))

    def _value(
        self, loss: Loss, theta: Array, b: Array, columns: Sequence[int] | None = None
    ) -> float:
        """Objective of given coefficients under another loss."""
        problem = self.problem(loss, columns)
        return problem.evaluate(theta * problem.unit, b)[0]


def _certificate(
    parts: list[_Part],
    moments: Moments,
    loss: Loss,
    alpha: float,
    tol: float,
    units: Array,
    kept: Kept | None,
) -> Certificate:
    value, primal, bound, gap = (
        float(sum(getattr(part, name) for part in parts))
        for name in ("proven", "primal", "bound", "gap")
    )
    erased = all(part.is_erased(tol) for part in parts)
    worst = None
    if len(parts) > 1:
        part = max(parts, key=lambda part: part.gap / (part.bound or 1.0))
        assert part.columns is not None
        worst = moments.labels[part.columns[0]]
    return Certificate(
        value=value,
        primal=primal,
        bound=bound,
        gap=gap,
        bits_left=gap / float(np.log(2)) if loss.in_bits else None,
        erased=erased,
        optimal=True if erased else None,  # the bound is reached, so nothing can do better
        loss=loss.name,
        alpha=alpha,
        ridge=float(alpha * np.mean(units**2)),
        tol=tol,
        worst=worst,
        variance_kept=None if kept is None else kept.variance,
        columns_kept=None if kept is None else kept.columns,
        kept_sampled=kept is not None and kept.sampled,
        ridges=alpha * units**2,
    )
