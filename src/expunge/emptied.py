"""Columns of which an erasure leaves nothing: a constant is written in their place.

Where a column is the concept (or a function of columns that are), all of it is taken away. What
float64 leaves is rounding, and rounding follows what was taken: who scales that column by its
spread of 1e-16, or splits it by a tree, reads the concept. So such a column j is given a
coordinate of its own,

    I - M = left right = [left without rows J | e_J + left right_J] [right without columns J ; e_J],

the same map on all rows where nothing was left, and a row e_j in both factors tells whoever applies
them that the result is the center.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from expunge.linalg import Array, regression
from expunge.moments import Moments

__all__ = [
    "emptied_columns",
    "emptied_when_told",
    "nothing_left",
    "with_emptied_columns",
    "without_digits",
]

NOTHING = 1e-6  # of its spread that is left of an emptied column, at most
ORTHOGONAL = 1e-12  # by which the factors of a projector may differ
ROUNDING = 1e-9  # of all that is read: directions below this are the rounding of others
LAST = 1e-14  # of its spread that rounding writes to a column, or reads of it
DIGITS = 1e-12  # entries of a direction below this, where nothing varies, are rounding


def emptied_columns(left: Array, right: Array) -> NDArray[np.intp]:
    """Columns to which factors of a map say that a constant is written.

    Parameters
    ----------
    left : array of shape (d, r)
    right : array of shape (r, d)

    Returns
    -------
    array of numbers of columns, ascending

    Examples
    --------
    >>> from numpy import array
    >>> from expunge.emptied import emptied_columns
    >>> emptied_columns(array([[0.5], [1.0]]), array([[0.0, 1.0]]))
    array([1])
    """
    lone = np.flatnonzero((right != 0).sum(axis=1) == 1)  # coordinates that read one column
    at = np.abs(right[lone]).argmax(axis=1)
    whole = (right[lone, at] == 1) & (left[at, lone] == 1) & ((left[at] != 0).sum(axis=1) == 1)
    return np.sort(at[whole])


def without_digits(left: Array, right: Array, moments: Moments) -> tuple[Array, Array]:
    """Factors that leave columns alone where rounding alone would write to them.

    Scaled by its spread of 1e-17, a constant column would show all that was taken from the others;
    so would one of few values, whose equals differ in the last digit then.

    Parameters
    ----------
    left : array of shape (d, r)
    right : array of shape (r, d)
    moments : Moments
        Of the rows.

    Returns
    -------
    left, right : arrays

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Moments
    >>> from expunge.emptied import without_digits
    >>> moments = Moments.of(np.array([[1.0, 5.0], [2.0, 5.0]]), [0, 1])
    >>> without_digits(np.array([[1.0], [1e-17]]), np.array([[1.0, 1e-17]]), moments)
    (array([[1.],
           [0.]]), array([[1., 0.]]))
    """
    size = np.abs(left).max(axis=0, initial=0.0)
    constant = (moments.squares == 0)[:, None] & (np.abs(left) <= DIGITS * size)
    spread = np.sqrt(moments.squares / moments.weight)[:, None]
    reach = np.abs(right) @ spread[:, 0]
    written = (np.abs(left) * reach <= LAST * spread) & (spread > 0)
    read = (np.abs(right.T) * spread <= LAST * reach) & (spread > 0)
    if np.array_equal(left, right.T):
        written = read = written & read
    left = np.where(constant | written, 0.0, left)
    return left, np.where((constant & (np.abs(right.T) <= DIGITS) | read).T, 0.0, right)


def with_emptied_columns(left: Array, right: Array, moments: Moments) -> tuple[Array, Array]:
    """Factors of the same map on the rows of a fit that name the columns of which nothing is left.

    Parameters
    ----------
    left : array of shape (d, r)
    right : array of shape (r, d)
    moments : Moments
        Of the rows.

    Returns
    -------
    left, right : arrays
        The same ones where something is left of every column. Of an orthogonal projector they stay
        one. They have more directions where one of the columns is told by others.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> y = np.arange(100) % 2
    >>> X = np.column_stack([y - 0.5, y + np.sin(np.arange(100))])
    >>> clean = ex.LEACE().fit(X, y).transform(X)
    >>> np.unique(clean[:, 0]), len(np.unique(clean[:, 1]))
    (array([0.]), 100)
    """
    spread = np.sqrt(moments.squares / moments.weight)
    gone = nothing_left(left, right, moments)
    if not gone.any():
        return left, right
    rest, others = np.where(gone[:, None], 0.0, left), np.where(gone, 0.0, right)
    U, sizes, _ = np.linalg.svd(others * spread, full_matrices=False)
    U = U[:, sizes > ROUNDING * np.linalg.norm(right * spread, 2)]
    own = np.flatnonzero(gone)
    alone = np.eye(len(left))[own]
    found = np.hstack([rest @ U, alone.T + rest @ right[:, own]]), np.vstack([U.T @ others, alone])
    lost = (rest - rest @ U @ U.T) @ others * spread
    same = bool(np.all(np.abs(lost).max(axis=1) <= ROUNDING * spread))
    if same and np.array_equal(left, right.T):  # oblique directions would make it no projector
        same = bool(np.abs(found[0] - found[1].T).max() <= ORTHOGONAL)
    return found if same else (left, right)


def nothing_left(left: Array, right: Array, moments: Moments) -> NDArray[np.bool_]:
    """Whether a column that varied no longer does, after a map of these factors.

    Parameters
    ----------
    left : array of shape (d, r)
    right : array of shape (r, d)
    moments : Moments
        Of the rows before it.

    Returns
    -------
    array of shape (d,)
    """
    spread = np.sqrt(moments.squares / moments.weight)
    varied = spread > 0
    if moments.xx is not None:
        S = moments.cov_xx
        T = S - left @ (right @ S)  # M Σ
        after = np.diag(T) - np.einsum("ij,ij->i", T @ right.T, left)
        reach = spread + np.abs(left) @ (np.abs(right) @ spread)
        after, off = np.maximum(after, 0.0), 4 * moments.eps * reach**2  # by which sums may be off
        sure = varied & (after + off <= NOTHING**2 * spread**2)
        if sure.any():
            return np.asarray(sure)
    # without covariances, or with those of float32: columns that are told by themselves alone ...
    near = varied & (np.abs(1 - np.einsum("ij,ji->i", left, right)) <= NOTHING)
    rows = _some_rows(left, right, near)
    near[near] = np.abs(rows) @ spread <= NOTHING * spread[near]
    return np.asarray(near | _nothing_of_the_concept(left, right, moments, spread))


def _nothing_of_the_concept(
    left: Array, right: Array, moments: Moments, spread: Array
) -> NDArray[np.bool_]:
    """... and functions of the concept, x_j = B_j z, in which nothing of it is left: M B = 0.

    B is Sxz Szz⁺. What other columns bring must be nothing, too.
    """
    B = regression(moments.xz, moments.zz)
    unexplained = moments.squares - np.einsum("ij,ij->i", B, moments.xz)
    told = (spread > 0) & (unexplained <= NOTHING**2 * moments.squares)
    rows = _some_rows(left, right, told)
    kept = rows[:, told] @ B[told]
    own = np.einsum("ij,jk,ik->i", kept, moments.zz, kept) / moments.weight
    brought = np.abs(rows[:, ~told]) @ spread[~told]
    told[told] = np.sqrt(np.maximum(own, 0.0)) + brought <= NOTHING * spread[told]
    return np.asarray(told)


def _some_rows(left: Array, right: Array, some: NDArray[np.bool_]) -> Array:
    """Rows of M = I - left right, without the others."""
    rows = -left[some] @ right
    rows[np.arange(len(rows)), np.flatnonzero(some)] += 1.0
    return np.asarray(rows)


def emptied_when_told(shift: Array, maps: Array | None, moments: Moments) -> Array | None:
    """Columns of which nothing is left beyond what the concept predicts of them.

    Sums of squares about the prediction B z are Sxx - B Szx for B = Sxz Szz⁺. Where matrices
    follow, they must bring nothing of other columns.

    Parameters
    ----------
    shift : array of shape (d, m)
        B.
    maps : array of shape (c, d, d) or None
    moments : Moments
        Of the rows.

    Returns
    -------
    array of shape (d,) or None
        1 for such a column, 0 for others; None if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Moments
    >>> from expunge.emptied import emptied_when_told
    >>> z = np.array([0.0, 1.0, 2.0, 3.0])
    >>> moments = Moments.of(np.column_stack([2 * z, z**2]), z)
    >>> emptied_when_told(moments.xz / moments.zz, None, moments)
    array([1., 0.])
    """
    left = moments.squares - np.einsum("ij,ij->i", shift, moments.xz)
    gone = (moments.squares > 0) & (left <= NOTHING**2 * moments.squares)
    if maps is not None:
        others = np.sqrt(np.where(gone, 0.0, moments.squares))
        brought = (np.abs(maps) @ others).max(axis=0)
        gone &= brought <= NOTHING * np.sqrt(moments.squares)
    return gone.astype(np.float64) if gone.any() else None
