"""Classes that are called as missing values are: nan, None, NA. They count, but it is said."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import MissingAsClass

__all__ = ["caution_of_missing_words"]

WORDS = {  # what programs write for a value that is missing; not words of people, as none
    *("nan", "NaN", "NAN", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaT", "None", "null", "NULL", "")
}


def caution_of_missing_words(
    labels: Sequence[Any], codes: NDArray[Any], name: str, *, stacklevel: int
) -> None:
    """Warn of classes whose names say that the label is missing.

    Parameters
    ----------
    labels : sequence
        The classes.
    codes : int array of shape (n,)
        That of each row.
    name : str
        What to call the concept in messages.
    stacklevel : int
        As of `warnings.warn`.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from expunge.inputs.missing_words import caution_of_missing_words
    >>> with warnings.catch_warnings(record=True) as said:
    ...     warnings.simplefilter("always")
    ...     caution_of_missing_words(("f", "nan"), np.array([0, 1, 1]), "y", stacklevel=1)
    >>> str(said[0].message)[:59]
    'y has labels that look like missing ones, and are taken for'
    """
    found = [k for k, label in enumerate(labels) if isinstance(label, str) and label in WORDS]
    if not found:
        return
    counts = np.bincount(codes, minlength=len(labels))
    told = ", ".join(f"{labels[k]!r} in {counts[k]:,}" for k in found)
    warnings.warn(
        MissingAsClass(
            f"{name} has labels that look like missing ones, and are taken for classes: {told} of "
            f"{len(codes):,} rows. If they are missing, leave these rows out, or let the labels be "
            "empty in the table (None in an array), which is refused unless missing= says otherwise"
        ),
        stacklevel=stacklevel + 1,
    )
