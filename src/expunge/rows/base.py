"""What every home of rows offers; all that any method asks of n-sized data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array
from expunge.moments import Moments

if TYPE_CHECKING:
    from expunge.erasure import Erasure
    from expunge.game.losses import Loss

__all__ = ["GlmPass", "Rows"]


@dataclass(frozen=True)
class GlmPass:
    """What one pass of a generalised linear model over the rows gives, all as weighted means.

    Attributes
    ----------
    value : float
        Mean loss.
    coef : array of shape (d, m)
        Derivative in the coefficients, XᵀR with R the derivative of the loss in the scores.
    intercept : array of shape (m,)
        Derivative in the intercept, the column sums of R.
    curvature : array of shape (m, m)
        Mean second derivative of the loss in the scores.
    accuracy : float
        Share of rows whose class the scores get right; nan for a continuous concept.
    """

    value: float
    coef: Array
    intercept: Array
    curvature: Array
    accuracy: float


class Rows(Protocol):
    """n vectors of width d. A home implements these operations and every method runs there."""

    @property
    def n_samples(self) -> int:
        """Number of rows."""

    @property
    def n_features(self) -> int:
        """Width of a row."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers."""

    def moments(
        self, concept: Concept, weights: Array | None = None, *, second: bool = True
    ) -> Moments:
        """One pass: counts, means and centred second moments."""

    def glm_pass(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
        single: bool = False,
    ) -> GlmPass:
        """One pass of the model with scores ``(x - center) @ coef + intercept``.

        With `single`, products may be formed in the precision of the rows; totals never are.
        """

    def glm_hessian(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
    ) -> Array:
        """One pass: the second derivative in (coef, intercept), class by class.

        Of shape (m, d + 1, m, d + 1), or (m, d + 1, d + 1) where the scores do not interact.
        """

    def sample(self, size: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """`size` rows drawn with replacement, as float32 or float64, and their numbers."""

    def subset(self, size: int, rng: np.random.Generator) -> tuple[Rows, NDArray[np.intp]]:
        """`size` different rows as rows in memory, and their numbers."""

    def take(self, index: NDArray[np.intp]) -> Rows:
        """The rows with these numbers as rows in memory."""

    def transform(self, erasure: Erasure, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """One pass: the rows after an erasure."""

    def fingerprint(self) -> Fingerprint:
        """A sketch that recognises these rows again."""
