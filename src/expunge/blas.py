"""Products of BLAS that are added to an array in place, while other threads go on.

SciPy's own wrappers keep other threads of Python waiting. The same routines are offered to compiled
code by `scipy.linalg.cython_blas`; called through ctypes, they let them run.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from expunge.linalg import Array

__all__ = ["subtract_outer", "subtract_product"]


@cache
def _routine(name: str) -> tuple[Any, Any]:
    """A routine that is called with pointers, and its type of whole numbers."""
    from scipy import LowLevelCallable
    from scipy.linalg import cython_blas

    found = LowLevelCallable.from_cython(cython_blas, name)
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    address = pointer_of(found.function, found.signature.encode())
    arguments = found.signature.count(",") + 1
    kind = ctypes.c_int if " int *," in found.signature else ctypes.c_int64
    return ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * arguments)(address), kind


def subtract_outer(block: Array, x: Array, y: Array) -> None:
    """Take x yᵀ from a block, in place.

    Parameters
    ----------
    block : array of shape (k, d), float64 in C order
    x, y : arrays of shape (k,) and (d,), float64, contiguous

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.blas import subtract_outer
    >>> block = np.ones((2, 2))
    >>> subtract_outer(block, np.array([1.0, 2.0]), np.array([0.0, 1.0]))
    >>> block
    array([[ 1.,  0.],
           [ 1., -1.]])
    """
    _check(block, x, y)
    dger, whole = _routine("dger")
    k, d = (ctypes.byref(whole(size)) for size in block.shape)
    one, minus = ctypes.byref(whole(1)), ctypes.byref(ctypes.c_double(-1.0))
    # BLAS counts by columns: for it, this is the transposed block
    dger(d, k, minus, y.ctypes.data, one, x.ctypes.data, one, block.ctypes.data, d)


def subtract_product(block: Array, A: Array, B: Array) -> None:
    """Take A B from a block, in place.

    Parameters
    ----------
    block : array of shape (k, d), float64 in C order
    A, B : arrays of shape (k, r) and (r, d), float64 in C order

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.blas import subtract_product
    >>> block = np.eye(2)
    >>> subtract_product(block, np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]]))
    >>> block
    array([[ 1., -1.],
           [-1.,  1.]])
    """
    _check(block, A, B)
    if not len(B):
        return
    dgemm, whole = _routine("dgemm")
    k, d = (ctypes.byref(whole(size)) for size in block.shape)
    r, as_it_is = ctypes.byref(whole(len(B))), ctypes.byref(ctypes.c_char(b"N"))
    one, minus = ctypes.byref(ctypes.c_double(1.0)), ctypes.byref(ctypes.c_double(-1.0))
    to = block.ctypes.data
    dgemm(as_it_is, as_it_is, d, k, r, minus, B.ctypes.data, d, A.ctypes.data, r, one, to, d)


def _check(block: Array, left: Array, right: Array) -> None:
    """What would write to the wrong place if it were not so."""
    for A in (block, left, right):
        assert A.dtype == np.float64
        assert A.flags.c_contiguous
    assert block.flags.writeable
    assert block.shape == (left.shape[0], right.shape[-1])
    assert left.shape[1:] == right.shape[:-1]
