"""The kinds of map that erase, and how to get one from whatever holds it."""

from __future__ import annotations

from typing import Any

from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from expunge.conditional import ConditionalErasure
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs.swapped import no_eraser
from expunge.nonlinear_erasure import NonlinearErasure

__all__ = ["Map", "RowMap", "as_erasure", "as_map", "as_row_map"]

RowMap = Erasure | NonlinearErasure  # what needs nothing but the row
Map = RowMap | ConditionalErasure


def as_map(erasure: Any, others: tuple[Any, ...] = ()) -> Map:
    """The map of an erasure or a fitted eraser.

    Parameters
    ----------
    erasure : Erasure, ConditionalErasure, NonlinearErasure or fitted eraser
    others : tuple
        What was passed after it, where the eraser may be in the wrong place.

    Returns
    -------
    Erasure, ConditionalErasure or NonlinearErasure

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.maps import as_map
    >>> as_map(ex.LEACE().fit([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0], [5.0, 0.0]], [0, 0, 1, 1]))
    Erasure(rank 1 of 2 features, oblique, by LEACE)
    """
    if isinstance(erasure, Map):
        return erasure
    if not isinstance(erasure, type) and hasattr(erasure, "fit") and hasattr(erasure, "transform"):
        check_is_fitted(erasure)
        for name in ("erasure_", "conditional_erasure_"):
            found = getattr(erasure, name, None)
            if isinstance(found, Map):
                return found
    problem, remedy = (
        "This is not an erasure",
        "Pass an Erasure, a ConditionalErasure or a fitted eraser",
    )
    if isinstance(erasure, type):
        raise InputError(problem, f"the class {erasure.__name__}", remedy)
    raise no_eraser(problem, erasure, others, remedy)


def as_erasure(erasure: Any) -> Erasure:
    """The affine map of an erasure or a fitted eraser, where a matrix is needed.

    Parameters
    ----------
    erasure : Erasure or fitted eraser

    Returns
    -------
    Erasure

    Raises
    ------
    InputError
        For anything else, for a map that has to be told the concept of each row, and for one
        that is not linear.

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.maps import as_erasure
    >>> as_erasure(ex.Erasure([[1.0]], [[1.0]]))
    Erasure(rank 1 of 1 features, orthogonal)
    """
    found = as_row_map(erasure)
    if isinstance(found, NonlinearErasure):
        noun = found.noun[0].upper() + found.noun[1:]
        raise InputError(
            f"{noun} is not linear, so no matrix does what it does",
            type(found).__name__,
            "Transform the rows themselves, or take LEACE()",
        )
    return found


def as_row_map(erasure: Any) -> RowMap:
    """The map of an erasure or a fitted eraser, where nothing but the row is known.

    Parameters
    ----------
    erasure : Erasure, NonlinearErasure or fitted eraser

    Returns
    -------
    Erasure or NonlinearErasure

    Raises
    ------
    InputError
        For anything else, and for a map that has to be told the concept of each row.

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.maps import as_row_map
    >>> as_row_map(ex.OracleLEACE().fit([[0.0, 1.0], [1.0, 0.0], [4.0, 1.0]], [0, 0, 1]))
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: A map that needs the concept of each row cannot stand here. Received ConditionalErasure. Take LEACE, which does not need it.
    """  # noqa: E501
    try:
        found = as_map(erasure)
    except NotFittedError as error:
        raise InputError(
            "The eraser is not fitted, so there is no erasure",
            type(erasure).__name__,
            "Call fit first",
        ) from error
    if isinstance(found, ConditionalErasure):
        raise InputError(
            "A map that needs the concept of each row cannot stand here",
            type(found).__name__,
            "Take LEACE, which does not need it",
        )
    return found
