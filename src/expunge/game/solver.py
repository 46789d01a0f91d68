"""What a solver is: an object with a name, a statement of what it needs, and `solve`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from expunge.errors import InputError
from expunge.game.losses import Loss
from expunge.game.null_model import NullModel, Observed
from expunge.game.problem import Problem
from expunge.game.result import Callback, SolveResult, StopReason
from expunge.linalg import Array
from expunge.moments import Moments
from expunge.rows.base import Rows
from expunge.rows.mapped import MappedRows

__all__ = ["Game", "Needs", "SolveOptions", "Solver"]

ORTHONORMAL = 1e-6  # how far from it a basis may be


@dataclass(frozen=True)
class Game:
    """One game to be solved: erase `rank` directions and leave the predictor the most loss.

    Attributes
    ----------
    rank : int
        K.
    loss : Loss
        As it was asked for; it may have a kink.
    moments : Moments
        Of the rows, often without Sxx; see `full_moments`.
    null : NullModel
        Of the loss; `null.rank` is the concept's own rank.
    fit_intercept : bool
    alpha : float
        Relative ridge of the predictor.
    observed : Observed or None
        The rows; None for a stream.
    units : array of shape (d,) or None
        Units of the columns in which the game is played, and in which moments and null model are.
    """

    rank: int
    loss: Loss
    moments: Moments
    null: NullModel
    fit_intercept: bool = True
    alpha: float = 1e-4
    observed: Observed | None = None
    units: Array | None = None

    @classmethod
    def on(cls, problem: Problem, rank: int) -> Game:
        """The game around the problem of a predictor, as it is.

        Parameters
        ----------
        problem : Problem
        rank : int

        Returns
        -------
        Game
        """
        observed = Observed(problem.rows, problem.concept, problem.weights)
        parts = (problem.loss, problem.moments, problem.null, problem.fit_intercept, problem.alpha)
        game = cls(rank, *parts, observed)
        vars(game)["problem"] = problem  # what the property would make anew
        return game

    @cached_property
    def full_moments(self) -> Moments:
        """The moments with Sxx, by one more pass where they were taken without."""
        if self.moments.xx is not None or self.observed is None:
            return self.moments
        seen = self.observed
        found = seen.rows.moments(seen.concept, seen.weights, second=True)
        return found if self.units is None else found.in_units(self.units)

    @cached_property
    def problem(self) -> Problem:
        """The predictor's problem on the rows, under the smooth form of the loss."""
        assert self.observed is not None, "a solver that needs rows says so in `needs`"
        seen = self.observed
        return Problem(
            seen.rows if self.units is None else _in_units(seen.rows, self.units),
            seen.concept,
            self.loss.smoothed,
            self.full_moments,
            weights=seen.weights,
            alpha=self.alpha,
            fit_intercept=self.fit_intercept,
        )


@dataclass(frozen=True)
class SolveOptions:
    """What `RLACE` has itself; a solver takes what it knows and leaves the rest.

    Attributes
    ----------
    rng : numpy.random.Generator
        The only source of chance.
    max_iter : int or None
        None is the solver's own number.
    tol : float
        Relative to the bound; 0 never stops early.
    step_size, batch_size, evaluate_every, restarts
        As in `RLACE`.
    callback : callable or None
        Called with each `Step`; a true answer stops.
    verbose : bool
        Whether to show a progress bar.
    """

    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    max_iter: int | None = None
    tol: float = 1e-6
    step_size: float = 0.005
    batch_size: int = 128
    evaluate_every: int = 1000
    restarts: int = 0
    callback: Callback | None = None
    verbose: bool = False


@dataclass(frozen=True)
class Needs:
    """What a solver cannot do without.

    Attributes
    ----------
    rows : bool
        The rows themselves; else moments, which a stream has too.
    smooth : bool
        A loss without a kink, or one that has a `smoothed` form.
    loss : tuple of str
        Methods of the loss that it calls.
    own_rank : bool
        At least as many directions as the concept's own rank.
    """

    rows: bool = True
    smooth: bool = True
    loss: tuple[str, ...] = ("values", "derivative", "hessian")
    own_rank: bool = False


class Solver(ABC):
    """A way to play the game. To plug in another, subclass it and give `name`, `needs`, `solve`.

    An object is passed as ``RLACE(solver=...)``; a line in `SOLVERS` gives it a name. What it needs
    is checked before it is run.
    """

    name: ClassVar[str]
    needs: ClassVar[Needs] = Needs()

    @abstractmethod
    def solve(self, game: Game, options: SolveOptions) -> SolveResult:
        """Orthonormal directions (d x K) to erase, with how they were found."""

    def caution(self, reason: StopReason) -> str:
        """What a user is warned of when it stopped for this reason; empty for nothing."""
        if reason is StopReason.INTERRUPTED:
            return "was interrupted; the best eraser so far is kept"
        return ""

    def run(self, game: Game, options: SolveOptions) -> SolveResult:
        """`solve`, between checks that it can be run and that it did what it should.

        Parameters
        ----------
        game : Game
        options : SolveOptions

        Returns
        -------
        SolveResult

        Raises
        ------
        InputError
            Before the first iteration, for a game the solver cannot play; after the last one, for a
            result that is no set of K orthonormal directions.
        """
        self._check_can_play(game)
        found = self.solve(game, options)
        shape = (game.moments.n_features, game.rank)
        U = np.asarray(found.basis)
        ok = U.shape == shape and np.allclose(U.T @ U, np.eye(game.rank), rtol=0, atol=ORTHONORMAL)
        if not ok:
            raise InputError(
                f"solver {self.name!r} did not return {game.rank} orthonormal directions",
                f"a basis of shape {U.shape}",
                f"Return a SolveResult whose basis has shape {shape} and orthonormal columns",
            )
        return found

    def _check_can_play(self, game: Game) -> None:
        """Refuse a pairing that cannot work, and name the missing piece."""
        needs, own = self.needs, game.null.rank
        if needs.own_rank and game.rank < own:
            raise InputError(
                f"solver={self.name!r} needs rank >= {own} for this concept",
                f"rank={game.rank}",
                f"Pass rank={own} or rank='auto' for the exact solution",
            )
        if needs.rows and game.observed is None:
            raise InputError(
                f"solver={self.name!r} needs the rows themselves, not only their moments",
                f"a stream by partial_fit with rank={game.rank}",
                f"Call fit on all rows, or take rank={own} or more with the closed form, which "
                "streams",
            )
        missing = [name for name in needs.loss if not hasattr(game.loss, name)]
        if missing:
            raise InputError(
                f"solver={self.name!r} needs a loss with {', '.join(missing)}",
                f"loss {game.loss.name!r}",
                f"Give it {', '.join(missing)}, or take another solver",
            )
        if needs.smooth and not game.loss.smoothed.smooth:
            raise InputError(
                f"solver={self.name!r} needs a smooth loss",
                f"loss {game.loss.name!r}, which has a kink and no smooth form in `smoothed`",
                f"Give it `smoothed`, or take rank={own} or more, which has a closed form",
            )


def _in_units(rows: Rows, units: Array) -> Rows:
    """The rows in other units, in their own type."""
    kind = rows.dtype if rows.dtype.kind == "f" else np.dtype(np.float64)
    return MappedRows(rows, lambda X, which: X / units.astype(kind), kind)
