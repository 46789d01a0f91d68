"""Loss, accuracy and damage against the number of erased directions, in one sweep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.game.closed_form import closed_form
from expunge.game.losses import Loss, loss_for
from expunge.game.predictor import Predictor, Problem, fit_predictor
from expunge.game.subspace_ascent import SubspaceAscent, subspace_ascent
from expunge.inputs import ConceptType, check_concept, check_rank, check_rows, check_weights
from expunge.linalg import Array
from expunge.plotting import new_axes
from expunge.progress import Progress
from expunge.rows.base import Rows

__all__ = ["PathPoint", "RankPath", "rank_path"]


@dataclass(frozen=True)
class PathPoint:
    """One rank of a path.

    Attributes
    ----------
    rank : int
    loss : float
        Mean loss of the best predictor on the erased rows.
    accuracy : float
        Its accuracy on them.
    variance_kept : float
        Share of the total variance of x that the erasure leaves.
    test_loss, test_accuracy : float or None
        Of the same predictor on held-out rows, if any were given.
    solver : str
    """

    rank: int
    loss: float
    accuracy: float
    variance_kept: float
    test_loss: float | None
    test_accuracy: float | None
    solver: str


@dataclass(frozen=True)
class RankPath:
    """What erasing K directions leaves and costs, for a range of K.

    Attributes
    ----------
    points : tuple of PathPoint
        Rank 0, nothing erased, first.
    erasures : tuple of Erasure
        In the same order.
    bound : float
        Loss of a predictor that ignores x.
    majority : float
        Accuracy of one that always answers the commonest class (nan for a continuous concept).
    """

    points: tuple[PathPoint, ...]
    erasures: tuple[Erasure, ...]
    bound: float
    majority: float

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return {
            "bound": self.bound,
            "majority": self.majority,
            "points": [asdict(point) for point in self.points],
        }

    def __str__(self) -> str:
        lines = [f"{'rank':>4}  {'loss':>8}  {'accuracy':>8}  {'held out':>8}  {'variance':>8}"]
        for p in self.points:
            held = "" if p.test_accuracy is None else f"{p.test_accuracy:.1%}"
            lines.append(
                f"{p.rank:>4}  {p.loss:>8.4f}  {p.accuracy:>8.1%}  {held:>8}  "
                f"{p.variance_kept:>8.1%}"
            )
        return "\n".join(
            [*lines, f"ignoring x: loss {self.bound:.4f}, accuracy {self.majority:.1%}"]
        )

    def plot(self, ax: Any = None) -> Any:
        """Accuracy and variance kept against the rank, on matplotlib axes (made if not given).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            ax = new_axes()
        ranks = [p.rank for p in self.points]
        ax.plot(ranks, [p.accuracy for p in self.points], "o-", label="accuracy, rows of the fit")
        if self.points[0].test_accuracy is not None:
            held = [p.test_accuracy for p in self.points]
            ax.plot(ranks, held, "s--", label="accuracy, held-out rows")
        kept = [p.variance_kept for p in self.points]
        ax.plot(ranks, kept, "^:", color="0.5", label="share of variance kept")
        ax.axhline(self.majority, color="0.3", linewidth=1, label="commonest class")
        ax.set_xlabel("erased directions K")
        ax.set_ylabel("accuracy of the best linear predictor")
        ax.set_ylim(0, 1.03)
        ax.legend(frameon=False)
        return ax


def rank_path(
    X: Any,
    y: Any,
    *,
    ranks: Iterable[int],
    X_test: Any = None,
    y_test: Any = None,
    loss: str | Loss = "cross_entropy",
    fit_intercept: bool = True,
    alpha: float = 1e-4,
    concept_type: ConceptType = "auto",
    sample_weight: Any = None,
    tol: float = 1e-6,
    random_state: Any = None,
    verbose: bool = False,
) -> RankPath:
    """Loss, accuracy and damage of the best erasure of every rank.

    Each rank starts from the last one with the strongest remaining direction added; the better of
    that and a few fresh starts is kept.

    Parameters
    ----------
    X : array or frame of shape (n, d)
    y : array of shape (n,) or (n, m)
        The concept.
    ranks : iterable of int
        Ranks to visit, 1 to d - 1; at and above the concept's own they are exact.
    X_test, y_test : optional
        Held-out rows to score the predictors on.
    loss, fit_intercept, alpha, concept_type, tol, random_state
        As in `RLACE`.
    sample_weight : array of shape (n,), optional
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    RankPath
        With `plot()` for the picture and `str()` for the table.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(300, 5)) + 2 * np.eye(5)[y]
    >>> path = ex.rank_path(X, y, ranks=[1, 2])
    >>> [p.solver for p in path.points]
    ['none', 'subspace_ascent', 'closed_form']
    >>> path.points[2].loss > path.points[1].loss > path.points[0].loss
    True
    """
    rows = check_rows(X)
    weights = check_weights(sample_weight, rows.n_samples)
    concept = check_concept(y, rows.n_samples, concept_type=concept_type).with_weight(weights)
    wanted = sorted({int(check_rank(rank, rows.n_features)) for rank in ranks})
    sweep = _Sweep(rows, concept, weights, loss, fit_intercept, alpha, tol, random_state)
    test = _held_out(X_test, y_test, concept, rows.n_features)
    points, erasures = [sweep.point(0, test)], [sweep.erasure()]
    with Progress("rank path", len(wanted), verbose) as progress:
        for count, rank in enumerate(wanted, 1):
            sweep.advance(rank)
            points.append(sweep.point(rank, test))
            erasures.append(sweep.erasure())
            progress.update(count, f"rank {rank}, accuracy {points[-1].accuracy:.1%}")
    return RankPath(
        tuple(points), tuple(erasures), sweep.problem.null.value, _majority(concept, weights)
    )


class _Sweep:
    """The state of a sweep: the current subspace and the predictor it leaves."""

    def __init__(
        self,
        rows: Rows,
        concept: Concept,
        weights: Array | None,
        loss: str | Loss,
        fit_intercept: bool,
        alpha: float,
        tol: float,
        random_state: Any,
    ) -> None:
        self.moments = rows.moments(concept, weights)
        self.alpha, self.tol = alpha, tol
        self.rng = np.random.default_rng(0 if random_state is None else random_state)
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

    def erasure(self) -> Erasure:
        """The current erasure."""
        center = self.moments.mean_x if self.problem.fit_intercept else None
        return Erasure(
            self.U, self.U.T, center, meta={"method": "rank_path", "solver": self.solver}
        )

    def _train(self, U: Array) -> Predictor:
        self.problem.alpha = self.alpha
        self.problem.set_erasure(Erasure(U, U.T))
        return fit_predictor(self.problem, tol=1e-8)

    def advance(self, rank: int) -> None:
        """Move to a larger rank."""
        null = self.problem.null
        if rank >= null.rank:
            self.U, self.solver = closed_form(null, self.moments, rank), "closed_form"
        else:
            warm = self._ascend(rank, self._extended(rank))
            fresh = self._ascend(rank, None)
            self.U, self.solver = max(warm, fresh, key=lambda r: r.value).basis, "subspace_ascent"
        self.found = self._train(self.U)

    def _ascend(self, rank: int, start: Array | None) -> Any:
        self.problem.alpha = self.alpha
        return subspace_ascent(
            self.problem,
            rank,
            settings=SubspaceAscent(explore=1),
            tol=self.tol,
            rng=self.rng,
            start=start,
        )

    def _extended(self, rank: int) -> Array:
        """The current subspace and the strongest directions of XᵀR outside it."""
        G = self.found.raw_gradient
        G = G - self.U @ (self.U.T @ G)
        pool = np.hstack([G, self.problem.null.directions])
        pool = pool - self.U @ (self.U.T @ pool)
        more = np.linalg.svd(pool, full_matrices=False)[0][:, : rank - self.U.shape[1]]
        return np.linalg.qr(np.hstack([self.U, more]))[0]

    def point(self, rank: int, test: tuple[Rows, Concept] | None) -> PathPoint:
        """The record of the current rank."""
        kept = 1.0
        if self.U.size and self.moments.trace_xx > 0:
            assert self.moments.xx is not None
            kept -= (
                float(np.einsum("ij,ij->", self.U, self.moments.xx @ self.U))
                / self.moments.trace_xx
            )
        held = None
        if test is not None:
            coef = self.problem.erase_transposed(self.found.coef)
            held = test[0].glm_pass(
                self.problem.loss, coef, self.found.intercept, test[1], center=self.problem.center
            )
        return PathPoint(
            rank=rank,
            loss=self.found.loss,
            accuracy=self.found.accuracy,
            variance_kept=kept,
            test_loss=None if held is None else held.value,
            test_accuracy=None if held is None else held.accuracy,
            solver=self.solver,
        )


def _held_out(X: Any, y: Any, concept: Concept, d: int) -> tuple[Rows, Concept] | None:
    """Held-out rows with their concept in the codes of the fit."""
    if X is None and y is None:
        return None
    if X is None or y is None:
        raise InputError(
            "X_test and y_test belong together", "one without the other", "Pass both or neither"
        )
    rows = check_rows(X, name="X_test", least=1)
    if rows.n_features != d:
        raise InputError(
            f"X_test has {rows.n_features} features, but X has {d}",
            f"shape ({rows.n_samples}, {rows.n_features})",
            "Pass the same columns",
        )
    test = check_concept(y, rows.n_samples, concept_type=concept.kind, name="y_test", whole=False)
    if concept.kind != "classes":
        return rows, test
    unknown = [label for label in test.labels if label not in concept.labels]
    if unknown:
        raise InputError(
            "y_test has classes that y does not have", repr(unknown[:5]), "Drop those rows"
        )
    codes = np.array([concept.labels.index(label) for label in test.labels])
    return rows, Concept("classes", codes[test.values], concept.labels)


def _majority(concept: Concept, weights: Array | None) -> float:
    """Accuracy of always answering the commonest class, or value of each label."""
    if concept.kind == "continuous":
        return float("nan")
    Z: NDArray[Any] = concept.columns()
    share = np.average(Z, axis=0, weights=weights)
    return float(share.max() if concept.kind == "classes" else np.maximum(share, 1 - share).mean())
