"""Erasers that are told the concept of each row, at transform time too."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from expunge.concept import Label
from expunge.conditional import ConditionalErasure
from expunge.erasers.base import BaseEraser, Data, Solution, Statistics, register
from expunge.erasure import Erasure
from expunge.errors import CovariancesDiffer, InputError
from expunge.game.barycenter import (
    barycenter,
    different_directions,
    directions_apart,
    filled,
    maps_to,
    shrunk,
)
from expunge.game.closed_form import Rank
from expunge.game.least_squares import spreads
from expunge.game.result import Step
from expunge.inputs import ConceptType, check_rank
from expunge.linalg import Array, regression
from expunge.moments import Moments
from expunge.shrinkage import check_shrinkage

__all__ = ["OracleLEACE", "QuadraticLEACE"]

LAST = 1e-15  # of a column's spread, or mean, that rounding alone moves it by
NAMED = 3  # classes that a warning lists
FAR_APART = 1000  # ratio of spreads from which columns are mapped in units of their own


class _Conditional(BaseEraser):
    """An eraser whose map depends on the concept of the row."""

    @property
    def conditional_erasure_(self) -> ConditionalErasure:
        """The fitted `ConditionalErasure`."""
        found = self._settled()[0]
        if not isinstance(found, ConditionalErasure):
            raise AttributeError("this erasure needs no concept: use erasure_")
        return found

    def transform(self, X: Any, concept: Any = None, *, out: Any = None) -> NDArray[Any]:
        """Erased rows.

        Parameters
        ----------
        X : array or frame of shape (n, d), or Rows
        concept : array of shape (n,) or (n, m)
            The concept of these rows; for rows of a file the name of a column, or several.
        out : str or path, optional
            For rows of a file: another file to write, with all columns beside them.

        Returns
        -------
        array of shape (n, d), or rows of the new file
        """
        check_is_fitted(self)
        found = self._settled()[0]
        if not isinstance(found, ConditionalErasure):
            return super().transform(X, out=out)
        if concept is None:
            raise InputError(
                f"{type(self).__name__} needs the concept at transform time",
                "no concept",
                "Call transform(X, concept=z), or take LEACE, which does not need it",
            )
        return found.transform(self._table(X), concept, out=out)

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        concept: Any = None,
        sample_weight: Any = None,
        vectors: Any = None,
    ) -> NDArray[Any]:
        """Fit, and erase the same rows.

        Parameters
        ----------
        X, y, concept, sample_weight, vectors
            As in `fit`.

        Returns
        -------
        array of shape (n, d)
        """
        self.fit(X, y, concept=concept, sample_weight=sample_weight, vectors=vectors)
        return self.transform(X, concept=y if concept is None else concept)


def _told(moments: Moments, maps: Array | None = None) -> Solution:
    """A map told the concept: shift Σxz Σzz⁺, then a matrix for each class.

    Of classes that is the deviation of each class mean, with no inverse to form: where one class
    has nearly all the weight, rounding would make Σzz invertible.
    """
    classes = moments.kind == "classes"
    shift = moments.cov_xz / moments.mean_z if classes else regression(moments.xz, moments.zz)
    if classes:  # what is common to all classes moves no row
        shift = shift - shift.mean(axis=1, keepdims=True)
    unit = 1.0 if classes else np.sqrt(np.diag(moments.zz) / moments.weight)
    moved = np.abs(shift * unit).max(axis=1, initial=0.0)
    spread = np.sqrt(moments.squares / moments.weight)
    shift[moved <= LAST * np.maximum(spread, np.abs(moments.mean_x))] = 0.0  # rounding moves none
    nothing = Erasure.identity(moments.n_features)
    return Solution(
        nothing.left,
        nothing.right,
        moments.mean_x,
        "closed_form",
        (Step(1, 0.0),),
        shift=shift,
        maps=maps,
    )


@register
class OracleLEACE(_Conditional):
    """The least change that erases a concept known for every row: x -> x - ΣxzΣzz⁺(z - mean z).

    Removes from x what least squares predicts of it from z; for classes, every class mean moves to
    the common mean. It changes less than LEACE, but only where z is known at transform time, and
    a row with a wrong z gives z away.

    Parameters
    ----------
    concept_type : {"auto", "classes", "labels", "continuous"}
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 only the mean is still guaranteed.

    Attributes
    ----------
    conditional_erasure_ : ConditionalErasure
    certificate_ : Certificate
    rank_ : int
        Directions in which the concept moves the rows.

    References
    ----------
    Belrose et al. (2023), LEACE, Sec. on oracle concept labels.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> X, z = np.array([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0], [5.0, 0.0]]), [0, 0, 1, 1]
    >>> ex.OracleLEACE().fit(X, z).transform(X, concept=z)
    array([[2., 1.],
           [3., 0.],
           [2., 1.],
           [3., 0.]])
    """

    guarantees = frozenset(
        {"equal_means", "zero_cross_covariance", "mean_preserved", "least_squares_optimal"}
    )

    def __init__(self, *, concept_type: ConceptType = "auto", strength: float = 1.0) -> None:
        self.concept_type = concept_type
        self.strength = strength

    def _needs_second(self) -> bool:
        return False

    def _why_not_pooling(self) -> str:
        return ""

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        return _told(seen.moments)


@register
class QuadraticLEACE(_Conditional):
    """Make the means *and* covariances of the classes equal, against quadratic predictors too.

    Each class is moved to the common mean and mapped to the Gaussian barycentre of all classes, the
    least change in the mean square if classes are Gaussian. Needs the class of each row at
    transform time; ``label_free=True`` instead gives one oblique projection without it, which
    removes the directions in which means and covariances differ most, and is approximate.

    Limits: it holds one d x d matrix per class. A class with d rows or fewer has a singular
    covariance, which is shrunk first, and then only the shrunk ones become equal. Where a class
    varies by less than a hundredth of the spread of all classes it is taken to vary as the others
    do, and stays narrower than they are: a map that made up for it would throw new rows far away.
    So no map stretches by more than 141, in units of the spread within classes. `CovariancesDiffer`
    names classes whose covariance stays another, for either reason. The change is least
    in the units of the columns, or, where their spreads differ by more than a factor of 1,000, in
    that of each. Moments above the
    second are left as they are, so other predictors (trees, neighbours) may still find the concept.

    Parameters
    ----------
    rank : int or "auto"
        For ``label_free=True``: directions to remove; "auto" takes those in which the classes
        differ by more than sampling noise.
    label_free : bool
    shrinkage : {"auto", "none", "ledoit_wolf", "oas"} or float
        Of the class covariances, towards that of all classes; "auto" is "oas" for classes of d
        rows or fewer, else "none".
    concept_type : {"auto", "classes"}
    strength : float
        From 0, the identity, to 1, full erasure. Below 1 only the mean is still guaranteed.

    Attributes
    ----------
    conditional_erasure_ : ConditionalErasure
        Or `erasure_`, an Erasure, with ``label_free=True``.
    certificate_ : Certificate
        Of linear predictors.

    References
    ----------
    Agueh, Carlier (2011), Barycenters in the Wasserstein space; Álvarez-Esteban et al. (2016), the
    fixed point. Quadratic erasure: Belrose et al., appendix and software of LEACE.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(0, 2, 500)
    >>> X = rng.normal(size=(500, 2)) * np.where(z == 1, 3.0, 1.0)[:, None]
    >>> clean = ex.QuadraticLEACE().fit(X, z).transform(X, concept=z)
    >>> bool(np.allclose(np.cov(clean[z == 0].T, ddof=0), np.cov(clean[z == 1].T, ddof=0)))
    True
    """

    guarantees = frozenset(
        {"equal_means", "zero_cross_covariance", "mean_preserved", "equal_class_covariances"}
    )
    kinds = frozenset({"classes"})

    def __init__(
        self,
        rank: Rank = "auto",
        *,
        label_free: bool = False,
        shrinkage: str | float = "auto",
        concept_type: ConceptType = "auto",
        strength: float = 1.0,
    ) -> None:
        self.rank = rank
        self.label_free = label_free
        self.shrinkage = shrinkage
        self.concept_type = concept_type
        self.strength = strength

    def _check_parameters(self, n_features: int) -> None:
        check_rank(self.rank, n_features)
        if self.shrinkage != "auto":
            check_shrinkage(self.shrinkage)

    def _needs_second(self) -> bool:
        return False

    def _needs_class_moments(self) -> bool:
        return True

    def _solve(self, seen: Statistics, data: Data | None) -> Solution:
        moments = seen.moments
        assert seen.by_class is not None
        classes = [seen.by_class[label] for label in moments.labels]
        weights = np.array([part.weight for part in classes])
        shares = weights / moments.weight
        sd, varies, deviations, covariances = _in_units_of_spread(moments, classes, shares)
        own = covariances
        covariances = shrunk(
            covariances, shares, weights, [self._rule(part) for part in classes], eps=moments.eps
        )
        if not self.label_free:
            far_apart = sd.max() > FAR_APART * sd.min()
            units = np.ones_like(sd) if far_apart else sd / np.median(sd)
            covariances = filled(covariances, shares, eps=moments.eps) * units * units[:, None]
            maps = maps_to(barycenter(covariances, shares), covariances)
            maps *= (sd / units)[:, None] / (sd / units)
            same = ~(varies & varies[:, None])  # rounding would give a constant column away
            maps[:, same] = np.eye(len(sd))[same]
            if self.shrinkage in ("auto", "none") and self.strength == 1:
                after = maps * sd / sd[:, None]
                after = after @ own @ after.transpose(0, 2, 1)
                apart = directions_apart(after, shares, eps=moments.eps)
                _caution(moments.labels, apart, len(sd))
            return _told(moments, maps)
        left, right = different_directions(
            deviations,
            covariances * varies * varies[:, None],  # shrinkage fills in what does not vary
            shares,
            np.array([part.n for part in classes]),
            None if self.rank == "auto" else self.rank,
            eps=moments.eps,
        )
        left, right = sd[:, None] * left, right / sd
        return Solution(left, right, moments.mean_x, "closed_form", (Step(1, 0.0),))

    def _rule(self, part: Moments) -> str | float:
        """How to shrink the covariance of a class: where it has few rows."""
        if self.shrinkage == "auto":
            return "oas" if part.n <= part.n_features else "none"
        return self.shrinkage


def _caution(labels: Sequence[Label], apart: NDArray[np.intp], n_features: int) -> None:
    """Warn of classes whose covariance is not that of all classes, in some directions."""
    named = [
        f"class {label!r} ({count} of {n_features} directions)"
        for label, count in zip(labels, apart, strict=True)
        if count
    ]
    if named:
        more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
        warnings.warn(
            CovariancesDiffer(
                f"QuadraticLEACE does not make the covariance of {', '.join(named[:NAMED])}{more} "
                "equal to that of the others: where a class has few rows or little spread, or "
                "columns are combinations of others, a map that did would throw new rows far away. "
                "Means are equal; a quadratic predictor may still tell such a class. Take more "
                "rows or fewer columns (PCA first), leave the class out, or take label_free=True"
            ),
            stacklevel=5,
        )


def _in_units_of_spread(
    moments: Moments, classes: list[Moments], shares: Array
) -> tuple[Array, NDArray[np.bool_], Array, Array]:
    """Spreads of the columns; which vary; means (d x c) and covariances of the classes in them.

    Whatever is only rounding, in a column that does not vary, is set to zero.
    """
    deviations = moments.cov_xz / shares
    covariances = np.stack([part.cov_xx for part in classes])
    within = np.einsum("k,kii->i", shares, covariances)
    sd, varies = spreads(within + deviations**2 @ shares, moments.mean_x)
    units = np.where(varies, 1 / sd, 0.0)
    return sd, varies, deviations * units[:, None], covariances * units * units[:, None]
