"""The kinds of map that erase, and how to get one from whatever holds it."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from expunge.conditional import ConditionalErasure
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.fold_erasure import FoldErasure

__all__ = ["Map", "as_map"]

Map = Erasure | ConditionalErasure | FoldErasure


def as_map(erasure: Any) -> Map:
    """The map of an erasure or a fitted eraser.

    Parameters
    ----------
    erasure : Erasure, ConditionalErasure, FoldErasure or fitted eraser

    Returns
    -------
    Erasure, ConditionalErasure or FoldErasure

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
    raise InputError(
        "This is not an erasure",
        type(erasure).__name__
        if not isinstance(erasure, type)
        else f"the class {erasure.__name__}",
        "Pass an Erasure, a ConditionalErasure or a fitted eraser",
    )
