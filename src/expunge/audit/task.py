"""What a predictor makes of rows: a task before and after, bits about a concept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from expunge.audit.parity import class_columns
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.inputs import as_matrix, check_number, check_rng, check_rows
from expunge.linalg import Array
from expunge.parallel import blocks
from expunge.rows.base import GlmPass
from expunge.rows.dense import DenseRows

__all__ = ["BitsLeft", "TaskDamage", "bits_left", "task_damage"]

TOL = 1e-9  # of the regression
MAX_PASSES = 300
DRAWN = 1 << 22  # rows drawn at once


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


@dataclass(frozen=True)
class BitsLeft:
    """Bits per row that a probe gains about a concept.

    Attributes
    ----------
    bits : float
        Entropy of the labels minus the cross-entropy of the probe; never below 0.
    gain : float
        The same difference without the floor. Below 0 the probe is worse than a constant answer.
    entropy, cross_entropy : float
        In bits per row.
    low, high : float or None
        Confidence limits of `bits`, with the same floor; None when only a mean loss was given.
    """

    bits: float
    gain: float
    entropy: float
    cross_entropy: float
    low: float | None
    high: float | None

    def __float__(self) -> float:
        return self.bits

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
    >>> from expunge.audit.task import task_damage
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
    A, B, A_test, B_test = (
        check_rows(X, name=name, least=1).X for X, name in zip(given, names, strict=True)
    )
    sizes = train.n_samples, train.n_samples, test.n_samples, test.n_samples
    widths = A.shape[1], B.shape[1], A.shape[1], B.shape[1]
    for X, name, n, d in zip((A, B, A_test, B_test), names, sizes, widths, strict=True):
        if X.shape != (n, d):
            raise InputError(
                f"{name} does not go with the task or the training rows",
                f"shape {X.shape}, not {(n, d)}",
                "Pass one row per entry of the task, in the columns of the training rows",
            )
    test = _in_labels_of(train, test)
    order = check_rng(random_state).permutation(train.n_samples)
    one_each = order[np.unique(train.values[order], return_index=True)[1]]
    used = np.unique(np.concatenate([one_each, order[:max_rows]]))
    fitted = train.take(used)
    first = _held_out(DenseRows(A[used]), fitted, DenseRows(A_test), test, alpha)
    second = _held_out(DenseRows(B[used]), fitted, DenseRows(B_test), test, alpha)
    return TaskDamage(
        accuracy_before=first.accuracy,
        accuracy_after=second.accuracy,
        cross_entropy_before=first.value,
        cross_entropy_after=second.value,
        majority=float(np.mean(test.values == np.bincount(train.values).argmax())),
        n_train=len(used),
        n_test=test.n_samples,
    )


def bits_left(
    losses: Any,
    y: Any,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    random_state: Any = 0,
) -> BitsLeft:
    """Bits per row that a probe gains about classes, over a constant answer on the same rows.

    It is the entropy of the labels minus the probe's cross-entropy, floored at 0: a probe can
    always be replaced by the constant answer. With one loss per row the limits come from a
    bootstrap of the rows. Each row gains -log p̂(y) - loss, with p̂ the share of its class; that p̂
    is estimated too changes the mean gain to second order only, so it is held fixed.

    Parameters
    ----------
    losses : float or array of shape (n,)
        Held-out cross-entropy of a probe in nats: its mean, or row by row.
    y : array of shape (n,)
        Classes of the held-out rows.
    level : float
        Of the confidence limits.
    resamples : int
    random_state : int, Generator or None

    Returns
    -------
    BitsLeft

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.task import bits_left
    >>> bits_left(np.log(2), [0, 1, 0, 1]).bits
    0.0
    >>> bits_left(0.0, [0, 1, 0, 1]).bits
    1.0
    """
    (labels,) = class_columns(y=y)
    loss = np.asarray(as_matrix(losses, name="losses"), dtype=np.float64)
    if loss.shape not in ((), (labels.n_samples,)) or not np.isfinite(loss).all():
        raise InputError(
            "losses must be one finite number, or one for each entry of y",
            f"losses of shape {loss.shape} for {labels.n_samples} labels",
            "Pass the mean loss in nats, or the losses row by row",
        )
    check_number(level, "level", least=0, most=1, strict=True)
    check_number(resamples, "resamples", least=1, whole=True)
    shares = np.bincount(labels.values, minlength=labels.width) / labels.n_samples
    surprise = -np.log2(shares[labels.values])
    gains = surprise - loss / np.log(2)
    gain = float(gains.mean())
    low = high = None
    if loss.ndim:
        means = _resampled_means(gains, resamples, check_rng(random_state))
        tail = (1 - level) / 2
        low, high = (max(float(q), 0.0) for q in np.quantile(means, [tail, 1 - tail]))
    return BitsLeft(
        bits=max(gain, 0.0),
        gain=gain,
        entropy=float(surprise.mean()),
        cross_entropy=float(loss.mean() / np.log(2)),
        low=low,
        high=high,
    )


def _in_labels_of(train: Concept, test: Concept) -> Concept:
    """The task of the held-out rows over the labels of the training rows."""
    known = {label: code for code, label in enumerate(train.labels)}
    if unknown := [label for label in test.labels if label not in known]:
        raise InputError(
            "task_test has classes that task_train does not have",
            repr(unknown[:5]),
            "Drop those rows",
        )
    codes = np.array([known[label] for label in test.labels], dtype=np.intp)
    return Concept("classes", codes[test.values], train.labels)


def _held_out(
    rows: DenseRows, task: Concept, test_rows: DenseRows, test: Concept, alpha: float
) -> GlmPass:
    """Loss and accuracy on held-out rows of a regression on the training rows."""
    loss = loss_for("cross_entropy", task.kind, task.width)
    moments = rows.moments(task)
    found = fit_predictor(
        Problem(rows, task, loss, moments, alpha=alpha), tol=TOL, max_passes=MAX_PASSES
    )
    return test_rows.glm_pass(loss, found.coef, found.intercept, test, center=moments.mean_x)


def _resampled_means(values: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Means of as many values, drawn with replacement."""
    means = np.empty(resamples)
    n = len(values)
    for lo, hi in blocks(0, resamples, max(DRAWN // n, 1)):
        means[lo:hi] = values[rng.integers(0, n, (hi - lo, n))].mean(axis=1)
    return means
