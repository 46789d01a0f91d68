"""Rows to hold out from a fit, so that all of them are fresh."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from expunge.audit.repeats import by_chance, numbered
from expunge.audit.sampling import stratified
from expunge.concept import Concept
from expunge.rows.base import Rows

__all__ = ["held_out"]


def held_out(
    rows: Rows,
    concepts: Sequence[Concept],
    share: float,
    seed: int,
    groups: NDArray[np.intp] | None = None,
) -> NDArray[np.intp]:
    """Sorted numbers of about `share` of the rows, with the class shares of all.

    Copies of a row stay together, so that none is held out while another is in the fit. Every class
    keeps a row in the rest.

    Parameters
    ----------
    rows : rows of shape (n, d)
    concepts : sequence of Concept
        The first is the one whose shares are kept.
    share : float
    seed : int
    groups : int array of shape (n,), optional
        Rows that stay together; by default copies of a row.

    Returns
    -------
    int array

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.held_out import held_out
    >>> from expunge.concept import Concept
    >>> from expunge.inputs import check_rows
    >>> X = np.repeat(np.random.default_rng(0).normal(size=(50, 1)), 4, axis=0)
    >>> test = held_out(check_rows(X), [Concept("classes", np.arange(200) % 2, (0, 1))], 0.3, 0)
    >>> len(test), np.intersect1d(X[test], np.delete(X, test)).size
    (60, 0)
    """
    n = rows.n_samples
    group = groups
    if group is None:
        group = np.arange(n) if by_chance(rows) else numbered(rows)
    test = np.zeros(n, dtype=bool)
    repeated = np.bincount(group)[group] > 1
    single = np.flatnonzero(~repeated)
    if count := round(share * len(single)):
        test[single[stratified(concepts[0].take(single), count, seed)]] = True
    test |= _some_groups(group, repeated, concepts[0], share, seed)
    for concept in concepts:
        if concept.kind == "classes":
            lacking = np.setdiff1d(concept.values, concept.values[~test])
            test &= ~np.isin(group, group[np.isin(concept.values, lacking)])
    return np.flatnonzero(test)


def _some_groups(
    group: NDArray[np.intp],
    repeated: NDArray[np.bool_],
    concept: Concept,
    share: float,
    seed: int,
) -> NDArray[np.bool_]:
    """Which rows belong to the groups drawn: in random order those that still fit in."""
    codes = concept.values if concept.kind == "classes" else np.zeros(len(group), dtype=np.intp)
    width = int(codes.max()) + 1
    names, place = np.unique(group[repeated], return_inverse=True)
    counts = np.zeros((len(names), width))
    np.add.at(counts, (place.reshape(-1), codes[repeated]), 1)
    room = share * counts.sum(axis=0) + 0.5
    drawn = []
    for at in np.random.default_rng(seed).permutation(len(names)):
        if np.all(counts[at] <= room):
            room = room - counts[at]
            drawn.append(names[at])
    return np.isin(group, drawn) & repeated
