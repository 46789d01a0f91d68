"""Types of numbers as files name them, among them bfloat16, which NumPy does not know.

A bfloat16 is the upper half of a float32. It is read as float32 without loss, and written rounded
to the nearest, to even where two are as near.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError

__all__ = ["array_type", "check_type", "decoded", "encoded", "stored_type", "widened"]

BFLOAT = "bfloat16"
FLOATS = ("float16", BFLOAT, "float32", "float64")


def array_type(kind: str) -> np.dtype[Any]:
    """The type of an array that holds numbers of this kind.

    Parameters
    ----------
    kind : str
        The name of a type of NumPy, or "bfloat16".

    Returns
    -------
    dtype

    Examples
    --------
    >>> from expunge.files.number_types import array_type
    >>> array_type("bfloat16"), array_type("float16")
    (dtype('float32'), dtype('float16'))
    """
    return np.dtype(np.float32) if kind == BFLOAT else np.dtype(kind)


def stored_type(kind: str) -> np.dtype[Any]:
    """The type of the bytes in a file, the lowest first.

    Parameters
    ----------
    kind : str

    Returns
    -------
    dtype
    """
    return np.dtype("<u2") if kind == BFLOAT else np.dtype(kind).newbyteorder("<")


def check_type(dtype: Any) -> str:
    """The name of a floating type.

    Parameters
    ----------
    dtype : str or dtype
        "float16", "bfloat16", "float32" or "float64", or what NumPy calls so.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.files.number_types import check_type
    >>> check_type(np.float32), check_type("bfloat16")
    ('float32', 'bfloat16')
    """
    try:
        name = BFLOAT if str(dtype) == BFLOAT else np.dtype(dtype).name
    except TypeError:
        name = ""
    if name not in FLOATS:
        raise InputError(
            "dtype must be a floating type", repr(dtype), f"Pass one of {', '.join(FLOATS)}"
        )
    return name


def decoded(values: NDArray[Any], kind: str) -> NDArray[Any]:
    """Numbers as they came from a file, as an array of `array_type(kind)`.

    Parameters
    ----------
    values : array of `stored_type(kind)`, or of the other order of bytes
    kind : str

    Returns
    -------
    array of the same shape

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.files.number_types import decoded
    >>> decoded(np.array([0x3F80], "<u2"), "bfloat16")
    array([1.], dtype=float32)
    """
    if kind == BFLOAT:
        return (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return values.astype(array_type(kind), copy=False)


def encoded(values: NDArray[Any], kind: str) -> NDArray[Any]:
    """Numbers as they go to a file: what `decoded` reads.

    Parameters
    ----------
    values : array
        Finite.
    kind : str

    Returns
    -------
    array of `stored_type(kind)`, in C order

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.files.number_types import encoded
    >>> encoded(np.array([1.0, 1.00390625]), "bfloat16")  # the second is half way: to even
    array([16256, 16256], dtype=uint16)
    """
    if kind == BFLOAT:
        bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
        odd = (bits >> np.uint32(16)) & np.uint32(1)
        return ((bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)).astype("<u2")
    return np.ascontiguousarray(values, dtype=stored_type(kind))


def widened(kind: str, held: tuple[str, ...]) -> str | None:
    """The narrowest of the types a file can hold that keeps every number, or None.

    Parameters
    ----------
    kind : str
    held : tuple of str
        The narrow ones first.

    Returns
    -------
    str or None

    Examples
    --------
    >>> from expunge.files.number_types import widened
    >>> widened("bfloat16", ("float16", "float32")), widened("float64", ("float32",))
    ('float32', None)
    """
    if kind in held:
        return kind
    need = array_type(kind)
    return next((k for k in held if k != BFLOAT and np.can_cast(need, array_type(k), "safe")), None)
