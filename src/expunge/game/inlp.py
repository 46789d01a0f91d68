"""Iterative nullspace projection (Ravfogel et al. 2020): fit a predictor, remove it, go on.

    Q₀ = 0;   Θ_k = argmin f((I - Q_{k-1})x),   Q_k = Q_{k-1} + projector on col(Θ_k).

Θ_k lies in the range of I - Q_{k-1}, so the directions are orthonormal without further work. Each
is the best for the predictor, not for the eraser: the game is played greedily and from the wrong
side, so K rounds remove less than the best K directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.game.least_squares import cross_moment, second_moment, spreads
from expunge.game.predictor import Predictor, Problem, fit_predictor
from expunge.game.result import Step
from expunge.linalg import Array, fix_signs, least_variance_directions
from expunge.moments import Moments
from expunge.progress import Progress

__all__ = ["Finder", "Found", "Judge", "glm_finder", "least_squares_finder", "nullspace"]

GRADIENT = 1e-10  # to which every inner fit goes unless it is told otherwise
NOTHING = 1e-9  # a change of the score, in units of its own spread, that counts as none


@dataclass(frozen=True)
class Found:
    """One round: coefficients (d x m), the loss reached, and whether a probe is at chance."""

    coef: Array
    value: float
    at_chance: bool = False


Finder = Callable[[Array], Found]  # from the basis erased so far (d x r) to the next predictor
Judge = Callable[[Predictor], bool]  # whether a predictor is at chance


def nullspace(
    find: Finder, moments: Moments, rank: int | None, *, verbose: bool
) -> tuple[Array, tuple[Step, ...]]:
    """Directions removed round by round.

    Parameters
    ----------
    find : callable
        Fits a predictor on what an orthonormal basis leaves.
    moments : Moments
        Of the rows, with Sxx. A column that never varies is in no direction that was found, and
        where no predictor finds anything before `rank` is reached, the rest is what varies least.
    rank : int or None
        Directions to remove; None goes on until a round says that its probe is at chance.
    verbose : bool

    Returns
    -------
    basis : array of shape (d, K), orthonormal
    history : tuple of Step
    """
    d = moments.n_features
    basis, history = np.zeros((d, 0)), []
    most = d - 1 if rank is None else rank
    _, varies = spreads(np.diag(moments.cov_xx), moments.mean_x)
    with Progress("INLP", most, verbose) as bar:
        for _ in range(most):  # each round finds a direction or is the last
            found = find(basis)
            if rank is None and found.at_chance:
                break
            fresh = _directions(varies[:, None] * found.coef, basis)[:, : most - basis.shape[1]]
            nothing = not fresh.shape[1]
            if nothing and rank is not None:
                fresh = least_variance_directions(basis, moments.cov_xx, most - basis.shape[1])
            basis = np.hstack([basis, fresh])
            if fresh.shape[1]:
                history.append(Step(basis.shape[1], found.value))
                bar.update(basis.shape[1], f"loss {found.value:.4g}")
            if nothing or basis.shape[1] == most:
                break
    if rank is not None and basis.shape[1] < rank:
        raise InputError(
            f"No {rank} directions could be found in these rows",
            "second moments that are not numbers",
            "Divide the rows by a constant, so that the squares of their entries fit float64",
        )
    return basis, tuple(history)


def _directions(coef: Array, basis: Array) -> Array:
    """Orthonormal directions of the coefficients, strongest first, orthogonal to the basis."""
    if not (np.isfinite(coef).all() and coef.any()):  # a predictor may fail
        return np.zeros((len(coef), 0))
    coef = coef / np.abs(coef).max()  # squares of tiny or huge numbers are 0 or infinite
    U, s, _ = np.linalg.svd(coef - basis @ (basis.T @ coef), full_matrices=False)
    U = U[:, s > 1e-8 * float(np.linalg.norm(coef))]
    U = U - basis @ (basis.T @ U)  # twice is enough for orthogonality to rounding
    return fix_signs(U / np.linalg.norm(U, axis=0))


def least_squares_finder(moments: Moments, *, alpha: float, center: bool) -> Finder:
    """Rounds of ridge regression from moments alone: Θ = (MΣM + ρ)⁺ MΣxz.

    Parameters
    ----------
    moments : Moments
        With Sxx.
    alpha : float
        Ridge relative to the mean variance of a column; may be 0.
    center : bool
        Whether the predictor has an intercept.

    Returns
    -------
    callable
    """
    S = second_moment(moments, center)
    C, Szz = cross_moment(moments, center)
    ridge = alpha * moments.mean_variance

    def find(basis: Array) -> Found:
        M = np.eye(len(S)) - basis @ basis.T
        G = M @ C
        if np.linalg.norm(G) <= NOTHING * np.sqrt(np.trace(S) * np.trace(Szz)):
            return Found(np.zeros_like(G), float(np.trace(Szz)))
        A = M @ S @ M
        values, V = np.linalg.eigh(A)
        kept = values > len(S) * moments.eps * values.max()
        V = V[:, kept]
        coef = V @ ((V.T @ G) / (values[kept] + ridge)[:, None])
        return Found(coef, float(np.trace(Szz) - np.sum(coef * G)))

    return find


def glm_finder(
    problem: Problem, at_chance: Judge | None = None, *, tol: float | None = None
) -> Finder:
    """Rounds of a generalised linear model.

    Parameters
    ----------
    problem : Problem
        Its erasure is set round by round, and each round starts from the null model.
    at_chance : callable, optional
        Says of the predictor of a round whether it is at chance.
    tol : float, optional
        How far, relative to the null model's, the objective of each may be from the lowest one. By
        default each is fitted to a gradient of 1e-10.

    Returns
    -------
    callable
    """
    exact = GRADIENT**2 / (2 * problem.alpha * max(problem.null.value, 1e-300))
    tol = exact if tol is None else max(tol, exact)
    center = problem.moments.mean_x if problem.fit_intercept else None
    problem.hold_rows()

    def find(basis: Array) -> Found:
        problem.set_erasure(Erasure(basis, basis.T, center))
        problem.hessian, problem.curvature_pairs = None, []  # the null model's are nearer
        found = fit_predictor(problem, tol=tol, exact_intercept=False)
        if _little(found, problem):  # what is left is below the tolerance: is it nothing at all?
            found = fit_predictor(problem, tol=exact, exact_intercept=False)
        done = at_chance is not None and at_chance(found)
        little = _little(found, problem)
        return Found(0 * found.coef if little else found.coef, found.value, done)

    return find


def _little(found: Predictor, problem: Problem) -> bool:
    """Whether the coefficients are none but for rounding."""
    return bool(np.linalg.norm(found.coef) * problem.unit <= NOTHING)
