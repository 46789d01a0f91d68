"""Arguments in the wrong order: said to be such, as what is wrong with each of them misleads."""

from __future__ import annotations

from typing import Any

from expunge.errors import InputError

__all__ = ["no_eraser", "refuse_swapped"]

MAPS = ("erasure_", "conditional_erasure_", "transform")


def refuse_swapped(X: Any, y: Any) -> None:
    """Refuse labels in the place of rows, with rows in the place of labels.

    Parameters
    ----------
    X, y : anything

    Raises
    ------
    InputError

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.inputs.swapped import refuse_swapped
    >>> refuse_swapped(np.ones((3, 2)), [0, 1, 0])
    >>> refuse_swapped([0, 1, 0], np.ones((3, 2)))
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: The arguments look swapped: labels come where rows are wanted, and rows where labels are. Received 3 values, then an array of shape (3, 2). Pass the rows first, then their labels: (X, y).
    """  # noqa: E501
    first, second = _shape(X), _shape(y)
    if len(first) == 1 and len(second) == 2 and first[0] == second[0] > 0:
        raise InputError(
            "The arguments look swapped: labels come where rows are wanted, and rows where labels "
            "are",
            f"{first[0]:,} values, then an array of shape {second}",
            "Pass the rows first, then their labels: (X, y)",
        )


def no_eraser(problem: str, first: Any, others: tuple[Any, ...], remedy: str) -> InputError:
    """What to say of a first argument that is no eraser: where another one is, of the order.

    Parameters
    ----------
    problem : str
    first : object
    others : tuple
        What was passed after it.
    remedy : str
        Where no other is one either.

    Returns
    -------
    InputError
    """
    if any(hasattr(other, name) for other in others for name in MAPS if not _shape(other)):
        problem += ": the arguments look swapped"
        remedy = "Pass the eraser first, then the rows and their labels: (eraser, X, y)"
    return InputError(problem, type(first).__name__, remedy)


def _shape(values: Any) -> tuple[int, ...]:
    """Of an array, a frame, a series, a tensor or a flat list; empty of anything else."""
    if isinstance(values, list | tuple):
        flat = all(isinstance(value, str | int | float) for value in values)
        return (len(values),) if flat else ()
    try:
        shape = values.shape
    except (AttributeError, RuntimeError):  # nested tensors have none
        return ()
    known = isinstance(shape, tuple) and all(isinstance(size, int) for size in shape)
    return tuple(shape) if known else ()
