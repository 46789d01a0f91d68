"""Losses and a solver of one's own, as a user would write them, and a solver that knows none."""

from dataclasses import dataclass

import numpy as np
import scipy.optimize
import scipy.special

from expunge.erasure import Erasure
from expunge.game.losses import ColumnLoss, Huber, Loss
from expunge.game.predictor import fit_predictor
from expunge.game.result import SolveResult, Step, StopReason
from expunge.game.solver import Needs, Solver


class LogCosh(ColumnLoss):
    """log cosh(y - s)."""

    name = "log_cosh"
    kinds = frozenset({"continuous"})

    def elements(self, Y, S):
        return np.logaddexp(Y - S, S - Y) - np.log(2)

    def derivative(self, Y, S):
        return np.tanh(S - Y)

    def second(self, Y, S):
        return 1 - np.tanh(S - Y) ** 2


class Poisson(ColumnLoss):
    """Half the Poisson deviance of counts y >= 0 with the mean exp(s): it cannot be shifted."""

    name = "poisson"
    kinds = frozenset({"continuous"})

    def elements(self, Y, S):
        return np.exp(S) - Y * S + scipy.special.xlogy(Y, Y) - Y

    def derivative(self, Y, S):
        return np.exp(S) - Y

    def second(self, Y, S):
        return np.exp(S)


class RoundedPinball(ColumnLoss):
    """The pinball loss with its kink rounded from below."""

    name = "rounded_pinball"
    kinds = frozenset({"continuous"})

    def __init__(self, share=0.3, width=0.1):
        self.share, self.width = share, width

    def elements(self, Y, S):
        r = Y - S
        c = np.clip(r / self.width, self.share - 1, self.share)
        return c * r - self.width * c**2 / 2

    def derivative(self, Y, S):
        return -np.clip((Y - S) / self.width, self.share - 1, self.share)

    def second(self, Y, S):
        inside = ((self.share - 1) * self.width < Y - S) & (self.share * self.width > Y - S)
        return inside / self.width


class Pinball(ColumnLoss):
    """share · r above, (share - 1) r below, r = y - s: the best constant is a quantile."""

    name = "pinball"
    kinds = frozenset({"continuous"})
    smooth = False
    share = 0.3

    def elements(self, Y, S):
        return np.maximum(self.share * (Y - S), (self.share - 1) * (Y - S))

    def derivative(self, Y, S):
        return np.where(Y > S, -self.share, 1 - self.share)

    def second(self, Y, S):
        return np.zeros_like(S)

    def null_intercept(self, Y, w):
        w = w * np.ones_like(Y)
        order = np.argsort(Y, axis=0)
        below = np.cumsum(np.take_along_axis(w, order, 0), axis=0)
        at = (below < self.share * below[-1]).sum(axis=0)
        return np.take_along_axis(np.take_along_axis(Y, order, 0), at[None], 0)[0]

    def null_residual(self, Y, w, intercept):
        on_kink = intercept == Y
        others = (w * np.where(on_kink, 0.0, self.derivative(Y, 0 * Y + intercept))).sum(axis=0)
        weight = (w * on_kink).sum(axis=0)
        return np.where(
            on_kink,
            -others / np.where(weight > 0, weight, 1.0),
            self.derivative(Y, 0 * Y + intercept),
        )

    @property
    def surrogates(self):
        return tuple(RoundedPinball(self.share, width) for width in (0.3, 0.03, 0.003))

    @property
    def smoothed(self):
        return RoundedPinball(self.share, 0.1)


class Length(Loss):
    """√(‖y - s‖² + 1) - 1: the columns of a vector are one thing."""

    name = "length"
    kinds = frozenset({"continuous"})

    def values(self, Y, S):
        return np.sqrt(((Y - S) ** 2).sum(axis=1) + 1) - 1

    def derivative(self, Y, S):
        return (S - Y) / (self.values(Y, S) + 1)[:, None]

    def hessian(self, Y, S):
        q = (self.values(Y, S) + 1)[:, None]
        return 1 / q * np.ones_like(S), (S - Y) / q**1.5


class Counts(Loss):
    """The Poisson deviance, as a loss that says nothing of its columns."""

    name = "counts"
    kinds = frozenset({"continuous"})
    values, derivative, hessian = Poisson.values, Poisson.derivative, Poisson.hessian
    elements, second = Poisson.elements, Poisson.second


class HalfSquared(ColumnLoss):
    """½(y - s)²: quadratic, so it may say that moments tell all of it."""

    name = "half_squared"
    kinds = frozenset({"continuous"})
    quadratic = True

    def elements(self, Y, S):
        return (Y - S) ** 2 / 2

    def derivative(self, Y, S):
        return S - Y

    def second(self, Y, S):
        return np.ones_like(S)


# the same losses once more, as plain functions of targets and scores that share no code with them
PLAIN = {
    "huber": lambda Y, S: scipy.special.huber(0.5, Y - S).sum(axis=1),
    "log_cosh": lambda Y, S: (np.abs(Y - S) + np.log((1 + np.exp(-2 * np.abs(Y - S))) / 2)).sum(1),
    "poisson": lambda Y, S: scipy.special.kl_div(Y, np.exp(np.minimum(S, 50))).sum(axis=1),
    "pinball": lambda Y, S: np.where(Y > S, 0.3 * (Y - S), 0.7 * (S - Y)).sum(axis=1),
    "length": lambda Y, S: np.hypot(np.linalg.norm(Y - S, axis=1), 1) - 1,
    "half_squared": lambda Y, S: 0.5 * np.square(Y - S).sum(axis=1),
}
LOSSES = {
    "huber": Huber(0.5),
    "log_cosh": LogCosh(),
    "poisson": Poisson(),
    "pinball": Pinball(),
    "length": Length(),
    "half_squared": HalfSquared(),
}


def best_loss(name, X, Y, *, intercept=True, ridges=0.0, weights=None):
    """The least mean loss plus ridge term of a linear predictor: scipy, with no code of ours.

    Derivatives are differences; the pinball loss, a linear programme, is solved as one.
    """
    w = np.ones(len(X)) if weights is None else weights
    w, ridges = w / w.sum(), ridges * np.ones(X.shape[1])
    unit = np.sqrt(ridges) if name == "pinball" else X.std(axis=0)
    unit, total = np.where(unit > 1e-9, unit, 1.0), 0.0
    A = np.hstack([X / unit, np.ones((len(X), 1))]) if intercept else X / unit
    on = np.append(ridges / unit**2, [0.0] * intercept)
    parts = [Y] if name == "length" else Y.T[:, :, None]
    for y in parts:
        if name == "pinball":
            total += _least_pinball(A, y[:, 0], w, on)
            continue
        m = y.shape[1]

        def objective(v, y=y, m=m):
            V = v.reshape(-1, m)
            return w @ PLAIN[name](y, A @ V) + (on[:, None] * V**2).sum() / 2

        def slope(v, y=y, m=m):
            V, h = v.reshape(-1, m), 1e-6
            S, G = A @ V, np.zeros((len(A), m))
            for j in range(m):
                step = h * np.eye(m)[j]
                G[:, j] = w * (PLAIN[name](y, S + step) - PLAIN[name](y, S - step)) / (2 * h)
            return (A.T @ G + on[:, None] * V).ravel()

        options = {"maxiter": 3000, "gtol": 1e-9}
        start = np.zeros(A.shape[1] * m)
        total += scipy.optimize.minimize(
            objective, start, jac=slope, method="BFGS", options=options
        ).fun
    return total


def _least_pinball(A, y, w, on):
    """min w·(0.3 u + 0.7 v) + ½‖on·θ‖² with u - v = y - Aθ, as the dual quadratic programme."""
    # maximise y·a - ½‖(Aᵀa) on‖² over -0.7 w <= a <= 0.3 w, with Aᵀa = 0 where there is no ridge
    free = A[:, on == 0]
    charged = A[:, on > 0]

    def objective(a):
        c = charged.T @ a
        return -(y @ a) + c @ c / 2, -y + charged @ c

    bounds = list(zip(-0.7 * w, 0.3 * w, strict=True))
    constraint = {"type": "eq", "fun": lambda a: free.T @ a, "jac": lambda a: free.T}
    found = scipy.optimize.minimize(
        objective,
        np.zeros(len(y)),
        jac=True,
        bounds=bounds,
        constraints=[constraint] if free.shape[1] else [],
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )
    return -found.fun


@dataclass(frozen=True)
class RandomProjector(Solver):
    """The best of some random subspaces: a solver of one's own."""

    tries: int = 3

    name = "random"
    needs = Needs(smooth=True)

    def solve(self, game, options):
        problem, history, best = game.problem, [], None
        for step in range(1, (options.max_iter or self.tries) + 1):
            d = game.moments.n_features
            U = np.linalg.qr(options.rng.standard_normal((d, game.rank)))[0]
            problem.set_erasure(Erasure(U, U.T))
            value = fit_predictor(problem, tol=1e-8).value
            history.append(Step(step, value))
            if best is None or value > best[0]:
                best = value, U
            if options.callback is not None and options.callback(history[-1]):
                break
        return SolveResult(best[1], best[0], self.name, StopReason.MAX_ITER, tuple(history))
