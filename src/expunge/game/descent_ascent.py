"""RLACE as in the paper: alternating stochastic steps on the relaxed game.

The projectors of rank K are relaxed to their convex hull, the Fantope. One iteration draws a batch,
moves the predictor down the gradient, Θ -= a ∇Θ, b -= a ∇b, and then the eraser up and back into
the Fantope, Q <- Π(Q + a ∇Q) with ∇Q = -(ΘGᵀ + GΘᵀ)/2, G = XᵀR on the batch. Every `evaluate_every`
iterations the eraser is rounded to a projector, a predictor is trained against it to convergence,
and the eraser that leaves the highest loss is kept.

X is centred (with an intercept) and scaled to columns of standard deviation 0.4 on average, that of
the GloVe vectors on which the paper chose its step size, so that a step size means the same for any
scale of X. Weight decay acts on the predictor alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.game.fantope import Fantope
from expunge.game.predictor import Predictor, fit_predictor
from expunge.game.problem import SINGLE_OFFSET, Problem
from expunge.game.result import SolveResult, Step, StopReason
from expunge.game.solver import Game, SolveOptions, Solver
from expunge.inputs import check_choice, check_number
from expunge.linalg import Array
from expunge.parallel import one_blas_thread
from expunge.progress import Progress

__all__ = ["DescentAscent", "paper_settings"]

HUGE = 1e150  # size of a gradient in Q at which the steps have diverged
SPREAD = 0.4  # average standard deviation of a column that the steps are made for


@dataclass(frozen=True)
class DescentAscent(Solver):
    """The paper's solver, with its settings beyond those that `RLACE` has itself.

    Parameters
    ----------
    optimizer : {"sgd", "adam"}
        How the predictor moves; the eraser always takes plain projected steps.
    momentum : float
        Of stochastic gradient descent.
    weight_decay : float
        Pulls the predictor's coefficients to zero.
    start : {"vertex", "center"}
        A random projector, or the centre of the Fantope.
    width : int, "auto" or None
        Columns kept of the eraser; "auto" is K + 2m + 32, None keeps all and is exact.

    Examples
    --------
    >>> import expunge as ex
    >>> ex.RLACE(
    ...     1, solver=ex.DescentAscent(optimizer="adam"), max_iter=2000
    ... )  # doctest: +ELLIPSIS
    RLACE(max_iter=2000, rank=1, solver=DescentAscent(optimizer='adam', ...))
    """

    optimizer: Literal["sgd", "adam"] = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0
    start: Literal["vertex", "center"] = "vertex"
    width: int | Literal["auto"] | None = "auto"

    name = "descent_ascent"

    def caution(self, reason: StopReason) -> str:
        """As for every solver, and where the steps diverged."""
        if reason is StopReason.DIVERGED:
            return "diverged; the best eraser so far is kept; lower step_size"
        return super().caution(reason)

    def solve(self, game: Game, options: SolveOptions) -> SolveResult:
        """The eraser with the highest evaluated loss along the paper's iteration.

        Parameters
        ----------
        game : Game
        options : SolveOptions
            50,000 iterations by default. Stops when an evaluated eraser is within ``tol`` of the
            bound, relatively. `rng` decides the start and every batch.

        Returns
        -------
        SolveResult
            An interruption (Ctrl-C) returns the best so far, with `reason` INTERRUPTED; so do steps
            that diverge, with DIVERGED.

        Raises
        ------
        InputError
            For bad settings, and when the steps diverge before the first evaluation.
        """
        run = _Run(game.problem, game.rank, self, options)
        iterations, reason = options.max_iter or 50_000, StopReason.MAX_ITER
        tol, callback = options.tol, options.callback
        with Progress("descent-ascent", iterations, options.verbose) as bar, one_blas_thread():
            try:
                for step in range(1, iterations + 1):
                    with np.errstate(over="ignore", invalid="ignore"):  # divergence is seen inside
                        run.iterate()
                    if step % options.evaluate_every == 0 or step == iterations:
                        record, gap = run.evaluate(step)
                        bar.update(step, f"gap {gap:.2e}, best {run.best_gap:.2e}")
                        if tol > 0 and gap <= tol:
                            reason = StopReason.CONVERGED
                            break
                        if callback is not None and callback(record):
                            reason = StopReason.STOPPED
                            break
            except KeyboardInterrupt:
                reason = StopReason.INTERRUPTED
                run.evaluate_if_never()
            except _Diverged as error:
                reason = StopReason.DIVERGED
                if run.best is None:
                    raise InputError(
                        "The steps of descent-ascent diverged before the first evaluation",
                        f"step_size={options.step_size!r}",
                        "Pass a smaller step_size",
                    ) from error
        return run.finish(reason)


def paper_settings(experiment: str) -> dict[str, Any]:
    """Parameters of `RLACE` as the paper's experiments used them.

    Parameters
    ----------
    experiment : {"static", "deep"}
        Static word vectors (batches of 128, 50,000 of them), or deep representations (batches of
        256, weight decay 1e-4).

    Returns
    -------
    dict
        To be unpacked: ``RLACE(1, **paper_settings("deep"))``.

    Examples
    --------
    >>> import expunge as ex
    >>> ex.paper_settings("deep")["batch_size"]
    256
    """
    check_choice(experiment, ("static", "deep"), "experiment")
    deep = experiment == "deep"
    return {
        "solver": DescentAscent(weight_decay=1e-4 if deep else 0.0),
        "step_size": 0.005,
        "batch_size": 256 if deep else 128,
        "max_iter": 50_000,
        "evaluate_every": 1000,
    }


class _Diverged(Exception):
    """The predictor has left what floating point can hold."""


class _Run:
    """The state of one run: predictor, eraser, the best eraser so far."""

    def __init__(
        self,
        problem: Problem,
        rank: int,
        settings: DescentAscent,
        options: SolveOptions,
    ) -> None:
        check_choice(settings.optimizer, ("sgd", "adam"), "optimizer")
        check_choice(settings.start, ("vertex", "center"), "start")
        check_number(settings.momentum, "momentum", most=1)
        check_number(settings.weight_decay, "weight_decay")
        if settings.width not in (None, "auto"):
            check_number(settings.width, "width", least=rank, whole=True)
        rng = options.rng
        self.problem, self.settings, self.rng = problem, settings, rng
        self.size = options.step_size
        d, m = problem.null.gradient.shape
        at_center = settings.start == "center"
        self.Q = Fantope.center(d, rank) if at_center else Fantope.random_vertex(d, rank, rng)
        self.theta = rng.standard_normal((d, m)) / np.sqrt(d)
        self.b = np.zeros(m)
        self.width = rank + 2 * m + 32 if settings.width == "auto" else settings.width
        self.moves = _Moves(settings, options.step_size)
        self.batches = problem.rows.batches(options.batch_size, rng)
        self.single = problem.offset <= SINGLE_OFFSET  # else float32 would cancel
        self.losses: list[float] = []
        self.history: list[Step] = []
        self.best: tuple[float, Array, Fantope] | None = None
        self.best_gap = np.inf
        self.warm: tuple[Array, Array] | None = None
        self.steps = 0

    def iterate(self) -> None:
        """One step of the predictor, then one of the eraser, on the same batch."""
        X, index = next(self.batches)
        if not self.single:
            X = X.astype(np.float64, copy=False)
        Y, w = self._targets(index), self._weights(index)
        S, R, G = self._gradient(X, Y, w)
        self.losses.append(float(w @ self.problem.loss.values(Y, S)))
        decay = self.settings.weight_decay
        down = self.moves(G - self.Q.apply(G) + decay * self.theta, R.sum(axis=0))
        self.theta = self.theta - down[0]
        if self.problem.fit_intercept:
            self.b = self.b - down[1]
        G = self._gradient(X, Y, w)[2]
        if not np.linalg.norm(self.theta) * np.linalg.norm(G) < HUGE:
            raise _Diverged
        self.Q = self.Q.step(self.theta, G, self.size, self.width)
        self.steps += 1

    def _gradient(self, X: NDArray[Any], Y: Array, w: Array) -> tuple[Array, Array, Array]:
        """Scores, R and XᵀR of a batch; rows are centred and scaled through the coefficients."""
        problem, scale = self.problem, SPREAD / self.problem.unit
        coef = scale * (self.theta - self.Q.apply(self.theta))
        b = self.b if problem.center is None else self.b - problem.center @ coef
        S = X @ coef.astype(X.dtype, copy=False) + b
        R = problem.loss.derivative(Y, S) * w[:, None]
        G = np.asarray(X.T @ R.astype(X.dtype, copy=False), dtype=np.float64)
        if problem.center is not None:
            G -= np.outer(problem.center, R.sum(axis=0))
        return S, R, scale * G

    def _targets(self, index: NDArray[np.intp]) -> Array:
        concept = self.problem.concept
        return self.problem.loss.encode(concept.take(index).columns(), concept.kind)

    def _weights(self, index: NDArray[np.intp]) -> Array:
        """Shares of the rows of a batch in its mean loss."""
        weights, moments = self.problem.weights, self.problem.moments
        if weights is None:
            return np.full(len(index), 1 / len(index))
        return np.asarray(weights[index] / (moments.weight / moments.n) / len(index))

    def evaluate(self, step: int) -> tuple[Step, float]:
        """Round, train a predictor to convergence, keep the eraser if it is the best."""
        U = self.Q.nearest_vertex()
        found = self._train(U)
        relaxed = float(np.mean(self.losses)) if self.losses else None
        self.losses.clear()
        record = Step(step, found.value, relaxed, found.accuracy, self.Q.width)
        self.history.append(record)
        if self.best is None or found.value > self.best[0]:
            self.best = found.value, U, self.Q
        bound = self.problem.null.value
        gap = max(bound - found.lower_bound, 0.0) / (bound or 1.0)
        self.best_gap = min(self.best_gap, gap)
        return record, gap

    def evaluate_if_never(self) -> None:
        """After an interruption before the first evaluation, evaluate where it stands."""
        if self.best is None:
            self.evaluate(self.steps)

    def _train(self, U: Array) -> Predictor:
        self.problem.set_erasure(Erasure(U, U.T))
        start = self.warm
        if start is not None:
            start = start[0] - U @ (U.T @ start[0]), start[1]
        found = fit_predictor(self.problem, tol=1e-6, start=start)
        self.warm = found.coef, found.intercept
        return found

    def finish(self, reason: StopReason) -> SolveResult:
        """The best eraser; its value, spectrum and basis belong together."""
        assert self.best is not None
        value, U, Q = self.best
        return SolveResult(
            basis=U,
            value=value,
            solver=self.settings.name,
            reason=reason,
            history=tuple(self.history),
            n_passes=self.problem.n_passes,
            spectrum=Q.spectrum(),
            lost=Q.lost,
        )


class _Moves:
    """The optimiser of the predictor: gradients in, displacements out."""

    def __init__(self, settings: DescentAscent, step_size: float) -> None:
        self.settings, self.size = settings, step_size
        self.first: list[Any] = [0.0, 0.0]
        self.second: list[Any] = [0.0, 0.0]
        self.count = 0

    def __call__(self, *gradients: Array) -> list[Array]:
        """Displacements to subtract."""
        self.count += 1
        if self.settings.optimizer == "adam":
            return [self._adam(k, g) for k, g in enumerate(gradients)]
        for k, g in enumerate(gradients):
            self.first[k] = self.settings.momentum * self.first[k] + g
        return [self.size * velocity for velocity in self.first]

    def _adam(self, k: int, g: Array) -> Array:
        """Kingma and Ba (2015), Algorithm 1."""
        self.first[k] = 0.9 * self.first[k] + 0.1 * g
        self.second[k] = 0.999 * self.second[k] + 0.001 * g**2
        mean = self.first[k] / (1 - 0.9**self.count)
        spread = np.sqrt(self.second[k] / (1 - 0.999**self.count))
        return np.asarray(self.size * mean / (spread + 1e-8))
