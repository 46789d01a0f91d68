"""What is done to one partition of rows, wherever it lies: pure functions that can be sent there.

Each gives something small, which merges with that of other partitions. None changes what it is
given, so that whoever runs them may run them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce, wraps
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from expunge.blockmath import NUMPY
from expunge.concept import Concept, Kind, Label
from expunge.errors import InputError
from expunge.linalg import Array
from expunge.parallel import SPAN, alone
from expunge.rows.finite import refuse_nan
from expunge.rows.linear_model import Sums, glm_sums, hessian_sums
from expunge.rows.reading import Reader

if TYPE_CHECKING:
    from expunge.game.losses import Loss

__all__ = [
    "Model",
    "Place",
    "ReadingJob",
    "add_up",
    "codes_of",
    "glm_part",
    "hessian_part",
    "join_readers",
    "named_error",
    "read_part",
    "take_part",
    "work_part",
]

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Place:
    """Which partition this is.

    Attributes
    ----------
    number : int
        From 0.
    start : int
        The number of its first row among all.
    """

    number: int
    start: int


@dataclass(frozen=True)
class ReadingJob:
    """What a reading is asked for; see `Rows.read`."""

    kind: Kind
    labels: tuple[Label, ...]
    second: bool = True
    by_class: bool = False
    recognise: bool = True
    task_kind: Kind = "continuous"
    task_labels: tuple[Label, ...] = ()


@dataclass(frozen=True)
class Model:
    """A linear model and its loss; see `Rows.glm_pass`."""

    loss: Loss
    coef: Array
    intercept: Array
    center: Array | None
    kind: Kind
    labels: tuple[Label, ...]
    single: bool = False


def _alone(work: Callable[P, T]) -> Callable[P, T]:
    """In one thread: partitions already occupy the cores."""

    @wraps(work)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with alone():
            return work(*args, **kwargs)

    run.by_blocks = True  # type: ignore[attr-defined]  # of its first argument
    return run


def _blocks(X: Any) -> Iterator[tuple[int, NDArray[Any]]]:
    """The rows of a partition as they come, with the number of the first among these."""
    return iter([(0, X)]) if isinstance(X, np.ndarray) else X.blocks()


def named_error(error: InputError, place: Place) -> InputError:
    """The same error with the number of the partition.

    Parameters
    ----------
    error : InputError
    place : Place

    Returns
    -------
    InputError

    Examples
    --------
    >>> from expunge.errors import InputError
    >>> from expunge.rows.part_sums import Place, named_error
    >>> print(named_error(InputError("X is odd", "row 7", "Mend it"), Place(2, 5)))
    X is odd. Received row 7, in partition 2 (which begins at row 5). Mend it.
    """
    where = f"{error.received}, in partition {place.number} (which begins at row {place.start})"
    return InputError(error.problem, where, error.remedy)


def _concept(kind: Kind, values: Any, labels: tuple[Label, ...], n: int) -> Concept:
    """The concept of a partition; there may be none."""
    if values is None:
        return Concept.none(n)
    return Concept(kind, np.asarray(values, np.intp if kind == "classes" else np.float64), labels)


def _weights(weights: Any) -> Array | None:
    return None if weights is None else np.asarray(weights, dtype=np.float64)


def codes_of(values: NDArray[Any], labels: tuple[Label, ...]) -> NDArray[Any]:
    """Labels as codes, in as few bytes as hold them.

    Parameters
    ----------
    values : array of shape (k,)
    labels : tuple
        All of them, sorted.

    Returns
    -------
    array of unsigned integers of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.rows.part_sums import codes_of
    >>> codes_of(np.array(["m", "f"], dtype=object), ("f", "m"))
    array([1, 0], dtype=uint8)
    """
    known = np.array(labels)
    found = np.asarray(values).astype(str) if known.dtype.kind == "U" else np.asarray(values)
    codes = np.searchsorted(known, found)
    return codes.astype(np.min_scalar_type(max(len(labels) - 1, 0)))


@_alone
def read_part(
    X: Any,
    values: Any,
    weights: Any,
    task: Any,
    look: NDArray[np.intp],
    job: ReadingJob,
    place: Place,
) -> Reader:
    """What one partition tells; see `Rows.read`.

    Parameters
    ----------
    X : array of shape (k, d), or what gives it by blocks
    values, weights, task : arrays of length k, or None
        Of the concept, the weights and the task of these rows.
    look : array of row numbers in this partition
    job : ReadingJob
    place : Place

    Returns
    -------
    Reader
        That has forgotten the rows.

    Raises
    ------
    InputError
        For NaN, with the row and the partition.
    """
    concept = _concept(job.kind, values, job.labels, len(X))
    other = None if task is None else _concept(job.task_kind, task, job.task_labels, len(X))
    w = _weights(weights)
    reader = Reader(NUMPY, concept, w, job.second, other, job.by_class, look, job.recognise)
    for lo, block in _blocks(X):
        try:
            try:
                reader.see(lo, block)
            except InputError:
                refuse_nan(block, "X", place.start + lo)  # with the number of the row among all
                raise
        except InputError as error:
            raise named_error(error, place) from None
    return reader.without_rows()


def join_readers(readers: Sequence[Reader]) -> Reader:
    """One reader that has seen what each of these saw, in order."""
    return reduce(Reader.joined, readers)


@_alone
def glm_part(X: Any, model: Model, values: Any, weights: Any) -> Sums:
    """Sums of a linear model over one partition; see `glm_sums`."""
    concept, w = _concept(model.kind, values, model.labels, len(X)), _weights(weights)
    parts = [
        glm_sums(
            block,
            model.loss,
            model.coef,
            model.intercept,
            concept.take(slice(lo, lo + len(block))),
            None if w is None else w[lo : lo + len(block)],
            center=model.center,
            single=model.single,
        )
        for lo, block in _blocks(X)
    ]
    return add_up(parts)


@_alone
def hessian_part(X: Any, model: Model, values: Any, weights: Any) -> Sums:
    """Second derivatives over one partition, and the sum of the weights; see `hessian_sums`."""
    w = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=np.float64)
    concept = _concept(model.kind, values, model.labels, len(X))
    parts: list[Sums] = []
    for lo, block in _blocks(X):
        here = slice(lo, lo + len(block))
        some = hessian_sums(
            block,
            model.loss,
            model.coef,
            model.intercept,
            concept.take(here),
            w[here],
            center=model.center,
        )
        parts = [add_up([*parts, (some, float(w[here].sum()))])]
    return parts[0]


def add_up(parts: Sequence[Sums]) -> Sums:
    """Sums over all of these, in order."""
    return tuple(reduce(np.add, sums) for sums in zip(*parts, strict=True))


@_alone
def work_part(X: Any, work: Any, place: Place) -> list[tuple[int, Any]]:
    """What a function gives of each block of a partition; see `Rows.each_block`."""
    return [
        (place.start + lo + at, work(place.start + lo + at, np.asarray(block[at : at + SPAN])))
        for lo, block in _blocks(X)
        for at in range(0, len(block), SPAN)
    ]


def take_part(X: NDArray[Any], index: NDArray[np.intp]) -> NDArray[Any]:
    """Some rows of a partition."""
    return np.asarray(X[index])
