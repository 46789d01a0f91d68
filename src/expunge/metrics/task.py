"""How well a task is solved from rows before and after a change."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.inputs import check_number, check_rng, check_rows, match_labels
from expunge.linalg import Array
from expunge.metrics.parity import class_columns
from expunge.rows.base import GlmPass, Rows

__all__ = ["TaskDamage", "task_damage"]

TOL = 1e-9  # of the regression
MAX_PASSES = 300
UNEVEN = 10.0  # times the spread of the narrowest column from which each has a unit of its own
ROUNDING = 32  # units in the last place of a column's numbers
WRITTEN = 1e-12  # of the widest spread, that rounding writes to a column that was constant


@dataclass(frozen=True)
class TaskDamage:
    """A task before and after, by logistic regression on held-out rows.

    Attributes
    ----------
    accuracy_before, accuracy_after : float
    cross_entropy_before, cross_entropy_after : float
        In nats per row.
    majority : float
        Accuracy of always answering the commonest class of the training rows.
    n_train, n_test : int
        Rows trained on and held out.
    """

    accuracy_before: float
    accuracy_after: float
    cross_entropy_before: float
    cross_entropy_after: float
    majority: float
    n_train: int
    n_test: int

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name."""
        return asdict(self)


def task_damage(
    before_train: Any,
    after_train: Any,
    task_train: Any,
    before_test: Any,
    after_test: Any,
    task_test: Any,
    *,
    alpha: float = 1e-2,
    max_rows: int = 20_000,
    random_state: Any = 0,
) -> TaskDamage:
    """How well a task is solved before and after, by logistic regression on held-out rows.

    Parameters
    ----------
    before_train, after_train : arrays of shape (n, d)
    task_train : array of shape (n,)
        Classes.
    before_test, after_test : arrays of shape (m, d)
        Held-out rows.
    task_test : array of shape (m,)
    alpha : float
        Ridge of the regression, relative to the mean variance of a column.
    max_rows : int
        Above this many training rows a random sample of this size is used, with at least one row
        of each class.
    random_state : int, Generator or None

    Returns
    -------
    TaskDamage

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.task import task_damage
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 3)) + 4 * np.outer(y, [1, 0, 0])
    >>> after = X * [0, 1, 1]
    >>> found = task_damage(X[:200], after[:200], y[:200], X[200:], after[200:], y[200:])
    >>> found.accuracy_before > 0.95, found.accuracy_after < 0.6
    (True, True)
    """
    check_number(alpha, "alpha", strict=True)
    check_number(max_rows, "max_rows", least=2, whole=True)
    (train,), (test,) = class_columns(task_train=task_train), class_columns(task_test=task_test)
    if train.width < 2:
        raise InputError(
            "The task has one class only", repr(train.labels[0]), "Pass rows of at least two"
        )
    names = ("before_train", "after_train", "before_test", "after_test")
    given = (before_train, after_train, before_test, after_test)
    A, B, A_test, B_test = every = [
        check_rows(X, name=name, least=1) for X, name in zip(given, names, strict=True)
    ]
    sizes = train.n_samples, train.n_samples, test.n_samples, test.n_samples
    widths = A.n_features, B.n_features, A.n_features, B.n_features
    for rows, name, n, d in zip(every, names, sizes, widths, strict=True):
        if (rows.n_samples, rows.n_features) != (n, d):
            raise InputError(
                f"{name} does not go with the task or the training rows",
                f"shape {(rows.n_samples, rows.n_features)}, not {(n, d)}",
                "Pass one row per entry of the task, in the columns of the training rows",
            )
    test = match_labels(
        test, "classes", train.labels, name="task_test", known_from="over the classes of task_train"
    )
    order = check_rng(random_state).permutation(train.n_samples)
    one_each = order[np.unique(train.values[order], return_index=True)[1]]
    used = np.unique(np.concatenate([one_each, order[:max_rows]]))
    fitted = train.take(used)
    rounding = _rounding(A.take(used), fitted, B)
    first, second = (
        _held_out(rows.take(used), fitted, tested, test, alpha, rounding)
        for rows, tested in ((A, A_test), (B, B_test))
    )
    return TaskDamage(
        accuracy_before=first.accuracy,
        accuracy_after=second.accuracy,
        cross_entropy_before=first.value,
        cross_entropy_after=second.value,
        majority=float(np.mean(test.values == np.bincount(train.values).argmax())),
        n_train=len(used),
        n_test=test.n_samples,
    )


def _rounding(before: Rows, task: Concept, after: Rows) -> Array:
    """The spread that rounding leaves of columns of which all was taken, or writes to constants."""
    moments = before.moments(task, second=False)
    spread = np.sqrt(moments.squares / moments.weight)
    own = ROUNDING * max(before.eps, after.eps) * (np.abs(moments.mean_x) + spread)
    return np.asarray(np.where(spread > 0, own, np.maximum(own, WRITTEN * spread.max())))


def _held_out(
    rows: Rows, task: Concept, test_rows: Rows, test: Concept, alpha: float, rounding: Array
) -> GlmPass:
    """Loss and accuracy on held-out rows of a regression on the training rows.

    Columns of uneven spread have a ridge each, as in an audit.
    """
    loss = loss_for("cross_entropy", task.kind, task.width)
    moments = rows.moments(task)
    spread, units = np.sqrt(moments.squares / moments.weight), None
    varied = spread > rounding
    if varied.any() and spread.max() > UNEVEN * spread[varied].min():
        units = np.where(varied, spread, spread.max())
    problem = Problem(rows, task, loss, moments, alpha=alpha, units=units)
    found = fit_predictor(problem, tol=TOL, max_passes=MAX_PASSES)
    return test_rows.glm_pass(loss, found.coef, found.intercept, test, center=moments.mean_x)
