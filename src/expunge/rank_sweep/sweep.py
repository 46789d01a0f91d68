"""The best erasure of every rank in turn, each started from the one before."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge._version import __version__
from expunge.concept import Concept
from expunge.erasers.solution import check_varies
from expunge.erasure import Erasure
from expunge.game.closed_form import ClosedForm
from expunge.game.losses import Loss, loss_for
from expunge.game.predictor import Predictor, Problem, fit_predictor
from expunge.game.result import SolveResult
from expunge.game.solver import Game, SolveOptions
from expunge.game.subspace_ascent import SubspaceAscent
from expunge.linalg import Array
from expunge.rows.base import Rows

__all__ = ["Sweep"]

DIGITS = 9  # of scores that are compared


class Sweep:
    """The state of a sweep: the current subspace and the predictor it leaves.

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
        self.problem = Problem(
            rows,
            concept,
            smooth,
            self.moments,
            weights=weights,
            alpha=alpha,
            fit_intercept=fit_intercept,
        )
        self.solver = "none"
        self.U = np.zeros((rows.n_features, 0))
        self.found = self._train(self.U)

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
        center = self.moments.mean_x if self.problem.fit_intercept else None
        return Erasure(self.U, self.U.T, center, meta={**self.meta, "solver": self.solver})

    def _train(self, U: Array) -> Predictor:
        self.problem.set_erasure(Erasure(U, U.T))
        return fit_predictor(self.problem, tol=1e-8)

    def advance(self, rank: int) -> None:
        """Move to a larger rank."""
        if rank >= self.problem.null.rank:
            best = ClosedForm().run(Game.on(self.problem, rank), SolveOptions())
        else:
            warm = self._ascend(rank, self._extended(rank))
            fresh = self._ascend(rank, None)
            best = max(warm, fresh, key=lambda r: r.value)
        self.U, self.solver = best.basis, best.solver
        self.found = self._train(self.U)

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
        coef, center = self.problem.erase_transposed(self.found.coef), self.problem.center
        S = np.empty((self.rows.n_samples, len(self.found.intercept)))
        for lo, X in self.rows.arrays():
            C = np.asarray(X, dtype=np.float64)
            S[lo : lo + len(C)] = (C if center is None else C - center) @ coef
        S += self.found.intercept
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
