"""The best erasure of every rank in turn, each started from the one before."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge._version import __version__
from expunge.concept import Concept
from expunge.emptied import with_emptied_columns, without_digits
from expunge.erasers.solution import check_varies
from expunge.erasure import Erasure
from expunge.game.closed_form import ClosedForm
from expunge.game.kept import kept_in_moments
from expunge.game.losses import Loss, loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.game.result import SolveResult
from expunge.game.solver import Game, SolveOptions
from expunge.game.subspace_ascent import SubspaceAscent
from expunge.linalg import Array
from expunge.rows.base import Rows

__all__ = ["Sweep"]

DIGITS = 9  # of scores that are compared


class Sweep:
    """The state of a sweep: the current subspace and the best predictor it leaves, `left`.

    Parameters
    ----------
    rows : Rows
    concept : Concept
    weights : array of shape (n,) or None
    loss : str or Loss
    fit_intercept : bool
    alpha, tol : float
    rng : Generator
    """

    def __init__(
        self,
        rows: Rows,
        concept: Concept,
        weights: Array | None,
        loss: str | Loss,
        fit_intercept: bool,
        alpha: float,
        tol: float,
        rng: np.random.Generator,
    ) -> None:
        self.moments = rows.moments(concept, weights)
        check_varies(self.moments)
        self.rows, self.concept, self.weights = rows, concept, weights
        self.tol = tol
        self.rng = rng
        smooth = loss_for(loss, concept.kind, concept.width).smoothed
        self._terms: dict[str, Any] = {
            "rows": rows,
            "concept": concept,
            "loss": smooth,
            "moments": self.moments,
            "weights": weights,
            "alpha": alpha,
            "fit_intercept": fit_intercept,
        }
        self.problem = Problem(**self._terms)
        self.solver = "none"
        self._use(np.zeros((rows.n_features, 0)))

    @property
    def own_rank(self) -> int:
        """Directions that erase the concept fully."""
        return max(self.problem.null.rank, 1)

    @cached_property
    def meta(self) -> dict[str, Any]:
        """What made the erasures."""
        return {
            "method": "rank_path",
            "concept": {"kind": self.concept.kind, "labels": list(self.concept.labels)},
            "n": self.rows.n_samples,
            "fingerprint": self.rows.fingerprint().to_meta(),
            "versions": {"expunge": __version__, "numpy": np.__version__},
        }

    def erasure(self) -> Erasure:
        """The current erasure."""
        return self.map.with_meta({**self.meta, "solver": self.solver})

    def _use(self, U: Array) -> None:
        """Take a subspace as the current one, and train the predictors it leaves.

        One goes on with the search, and is charged in one unit for all columns; the other is
        charged in each column's own, as in a certificate, and says what is left.
        """
        self.U, left, right, center = U, U, U.T, None
        if self.problem.fit_intercept:
            left, right = without_digits(U, U.T, self.moments)
            left, right = with_emptied_columns(left, right, self.moments)
            center = self.moments.mean_x
        self.map = Erasure(left, right, center)
        self.problem.set_erasure(Erasure(U, U.T))
        self.found = fit_predictor(self.problem, tol=1e-8)
        kept = kept_in_moments(self.moments, self.map)
        assert kept is not None  # second moments are known
        own = Problem(**self._terms, erasure=self.map, units=kept.spreads)
        own.hessian = self.problem.hessian  # in the coefficients before erasure
        self.left = fit_predictor(own, tol=1e-8, start=(self.found.coef, self.found.intercept))

    def advance(self, rank: int) -> None:
        """Move to a larger rank."""
        if rank >= self.problem.null.rank:
            best = ClosedForm().run(Game.on(self.problem, rank), SolveOptions())
        else:
            warm = self._ascend(rank, self._extended(rank))
            fresh = self._ascend(rank, None)
            best = max(warm, fresh, key=lambda r: r.value)
        self.solver = best.solver
        self._use(best.basis)

    def _ascend(self, rank: int, start: Array | None) -> SolveResult:
        options = SolveOptions(tol=self.tol, rng=self.rng)
        return SubspaceAscent(explore=1).solve(Game.on(self.problem, rank), options, start=start)

    def _extended(self, rank: int) -> Array:
        """The current subspace and the strongest directions of XᵀR outside it."""
        G = self.found.raw_gradient
        G = G - self.U @ (self.U.T @ G)
        pool = np.hstack([G, self.problem.null.directions])
        pool = pool - self.U @ (self.U.T @ pool)
        more = np.linalg.svd(pool, full_matrices=False)[0][:, : rank - self.U.shape[1]]
        return np.linalg.qr(np.hstack([self.U, more]))[0]

    def variance_kept(self) -> float:
        """Share of the total variance of x that the current erasure leaves."""
        if not self.U.size or not self.moments.trace_xx > 0:
            return 1.0
        assert self.moments.xx is not None
        lost = float(np.einsum("ij,ij->", self.U, self.moments.xx @ self.U))
        return max(1.0 - lost / self.moments.trace_xx, 0.0)

    def score(self) -> float:
        """Balanced accuracy, or R², of the current predictor on the rows of the fit.

        Its answers are taken relative to those of the predictor that ignores x, whose scores are
        the null intercept: the logarithms of the class shares under cross-entropy. So one that
        knows nothing is at chance, however rare a class.
        """
        coef, center = self.left.coef, self.problem.center
        coef = coef - self.map.right.T @ (self.map.left.T @ coef)
        S = np.empty((self.rows.n_samples, len(self.left.intercept)))
        for lo, X in self.rows.arrays():
            C = np.asarray(X, dtype=np.float64)
            S[lo : lo + len(C)] = (C if center is None else C - center) @ coef
        S += self.left.intercept
        w = np.ones(len(S)) if self.weights is None else self.weights
        values = self.concept.values
        if self.concept.kind == "continuous":
            return _r2(S, values, w)
        relative = np.round(S - self.problem.null.intercept, DIGITS)
        if self.concept.kind == "labels":
            varying = [j for j, z in enumerate(values[w > 0].T) if np.any(z != z[0])]
            answers = (relative > 0).astype(np.intp)
            return float(
                np.mean([_recall(answers[:, j], values[:, j].astype(np.intp), w) for j in varying])
            )
        answer = relative.argmax(axis=1) if relative.shape[1] > 1 else relative[:, 0] > 0
        return _recall(answer.astype(np.intp), values, w)


def _recall(answers: NDArray[np.intp], codes: NDArray[np.intp], w: Array) -> float:
    """Mean over the classes of the share of their weight that is answered rightly."""
    total = np.bincount(codes, weights=w)
    right = np.bincount(codes, weights=w * (answers == codes))
    return float(np.mean(right[total > 0] / total[total > 0]))


def _r2(S: Array, Z: Array, w: Array) -> float:
    """Share of the weighted variance explained, the mean over columns that vary."""
    S, Z, w = S[w > 0], Z[w > 0], w[w > 0]  # whatever rows of no weight hold
    left = np.average((Z - S) ** 2, axis=0, weights=w)
    spread = np.average((Z - np.average(Z, axis=0, weights=w)) ** 2, axis=0, weights=w)
    return float(np.mean(1 - left[spread > 0] / spread[spread > 0]))
