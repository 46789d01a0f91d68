"""All solvers by name. To add one: a file with a subclass of `Solver`, and its line here."""

from __future__ import annotations

from collections.abc import Callable

from expunge.errors import InputError
from expunge.game.closed_form import ClosedForm
from expunge.game.descent_ascent import DescentAscent
from expunge.game.solver import Game, Solver
from expunge.game.subspace_ascent import SubspaceAscent

__all__ = ["SOLVERS", "check_solver", "solver_for"]

SOLVERS: dict[str, Callable[[], Solver]] = {
    "closed_form": ClosedForm,
    "descent_ascent": DescentAscent,
    "subspace_ascent": SubspaceAscent,
}


def check_solver(solver: str | Solver) -> None:
    """Refuse what is neither "auto", nor a name, nor a solver."""
    if isinstance(solver, Solver) or (
        isinstance(solver, str) and (solver == "auto" or solver in SOLVERS)
    ):
        return
    names = ", ".join(map(repr, ("auto", *sorted(SOLVERS))))
    raise InputError(
        "Unknown solver", repr(solver), f"Pass one of {names}, or a Solver object with its settings"
    )


def solver_for(solver: str | Solver, game: Game) -> Solver:
    """The solver of that name; "auto" takes the closed form where it is exact.

    Parameters
    ----------
    solver : str or Solver
        "auto", a key of `SOLVERS`, or an object that is used as it is.
    game : Game
        What it is to play.

    Returns
    -------
    Solver

    Raises
    ------
    InputError
        For an unknown name.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.game.losses import loss_for
    >>> from expunge.game.predictor import Problem
    >>> from expunge.game.solver import Game, SolveOptions
    >>> from expunge.game.solvers import solver_for
    >>> from expunge.inputs import check_concept, check_rows
    >>> X, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]]), [0, 0, 1, 1]
    >>> rows, concept = check_rows(X), check_concept(y, 4)
    >>> loss = loss_for("auto", concept.kind, concept.width)
    >>> game = Game.on(Problem(rows, concept, loss, rows.moments(concept)), rank=1)
    >>> solver_for("auto", game).run(game, SolveOptions()).basis.ravel()
    array([1., 0.])
    """
    check_solver(solver)
    if isinstance(solver, Solver):
        return solver
    if solver == "auto":
        return ClosedForm() if game.rank >= game.null.rank else SubspaceAscent()
    return SOLVERS[solver]()
