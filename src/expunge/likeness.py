"""Whether vectors look like those that an erasure was fitted on: their mean and their scale."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.files.table import VectorFile
from expunge.maps import Map
from expunge.number_text import short

__all__ = ["ROWS", "first_rows", "unlikeness", "unlikeness_of_rows"]

ROWS = 4096  # looked at
SCALE = 2.0  # times as wide, or as narrow, are other vectors
FAR = 0.5  # of the spread of a row: how far the mean may move
NOISE = 3.0  # standard errors of a mean


def unlikeness(erasure: Map, file: VectorFile) -> str:
    """In which way the first vectors of a file differ from those of the fit; empty if they do not.

    Parameters
    ----------
    erasure : Erasure or ConditionalErasure
        One that does not say what it was fitted on is content with everything.
    file : VectorFile

    Returns
    -------
    str
    """
    X = next((np.asarray(X, dtype=np.float64) for _, X in file.blocks(ROWS)), None)
    return unlikeness_of_rows(erasure, X)


def unlikeness_of_rows(erasure: Map, X: NDArray[np.float64] | None) -> str:
    """The same of some rows.

    Compared are the mean, by its distance in spreads of a row around it, and that spread itself,
    with that of the median column beside it: few rows seldom have the far values of a column that
    outweighs the others.

    Parameters
    ----------
    erasure : Erasure or ConditionalErasure
    X : array of shape (n, d), or None
        Without any nothing is said.

    Returns
    -------
    str

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> from expunge.likeness import unlikeness_of_rows
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> e = ex.LEACE().fit(X, np.arange(200) % 2).erasure_
    >>> unlikeness_of_rows(e, X), unlikeness_of_rows(e, 5 * X)
    ('', 'they spread 5 times as far')
    """
    known = _known(erasure)
    if known is None or X is None or not np.isfinite(X).all():
        return ""
    mean, spread = known
    typical = float(np.linalg.norm(spread))
    if not typical > 0:
        return ""
    found = []
    here = X.std(axis=0)
    widest = max(typical, float(np.linalg.norm(here)))
    away = float(np.linalg.norm(X.mean(axis=0) - mean)) / widest
    if away > FAR + NOISE / np.sqrt(len(X)):
        found.append(f"their mean lies {short(away)} spreads from that of the fit")
    if len(X) > 1:
        ratio, varies = float(np.linalg.norm(here)) / typical, (spread > 0) & (here > 0)
        most = float(np.median(here[varies] / spread[varies])) if varies.any() else ratio
        if max(ratio, most) < 1 / SCALE or min(ratio, most) > SCALE:
            found.append(f"they spread {short(ratio)} times as far")
    return " and ".join(found)


def first_rows(file: VectorFile) -> dict[str, list[float]] | None:
    """What the first vectors of a file look like, as a fit records it of its rows.

    For a fit on a few rows of a file that is meant for all of them.

    Parameters
    ----------
    file : VectorFile

    Returns
    -------
    dict or None
        mean and spread of each column; None if there are no such numbers.
    """
    X = next((np.asarray(X, dtype=np.float64) for _, X in file.blocks(ROWS)), None)
    if X is None or not np.isfinite(X).all():
        return None
    return {
        name: [float(f"{value:.6g}") for value in values]
        for name, values in (("mean", X.mean(axis=0)), ("spread", X.std(axis=0)))
    }


def _known(erasure: Map) -> tuple[Any, Any] | None:
    """Mean and spread (d,) of the columns of the first fit, where they were recorded."""
    meta: Any = erasure.meta
    steps = meta.get("steps")
    first = steps[0] if isinstance(steps, list) and steps else meta
    rows: Any = first.get("rows") if isinstance(first, Mapping) else None
    try:
        found = [np.asarray(rows[name], dtype=np.float64) for name in ("mean", "spread")]
    except (TypeError, KeyError, ValueError):
        return None
    good = all(part.shape == (erasure.n_features,) and np.isfinite(part).all() for part in found)
    return (found[0], found[1]) if good else None
