"""Which rows probes look at: stratified samples, folds, and rows that belong together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.given import AuditedRows
from expunge.audit.repeats import by_chance, row_hashes
from expunge.concept import Concept
from expunge.rows.base import Rows

__all__ = ["fold_numbers", "groups_of", "stratified", "too_few", "untaught"]

SORTED = 16  # labels, the rarest that vary, by which rows are dealt out
FEWEST = 10  # rows to cross-fit on
ROUNDS = 1000  # moves of groups before one gives up


def too_few(part: AuditedRows) -> str:
    """Why the rows cannot be cross-fitted; empty if they can."""
    concept, groups = part.concept, groups_of(part.before, part.ids)
    if len(part) < FEWEST:
        return f"{FEWEST} rows are the fewest to probe"
    different = len(part) if groups is None else len(np.unique(groups))
    if different < FEWEST:
        what = ("row" if part.ids is None else "id") + ("" if different == 1 else "s")
        return f"there are {different} different {what} among them: too few to probe"
    if concept.kind == "classes":
        if int(np.sum(np.bincount(concept.values) >= 2)) < 2:
            return "they have fewer than two classes with two rows each: too few to probe"
        return ""
    if np.all(concept.values == concept.values[0]):
        return "the concept is the same on all of them"
    if concept.kind == "labels":
        having = concept.values.sum(axis=0)
        if not np.any((having >= 2) & (len(part) - having >= 2)):
            return "no label has two rows with it and two without: too few to probe"
    return ""


def stratified(concept: Concept, size: int, seed: int) -> NDArray[np.intp]:
    """Sorted numbers of at most `size` rows with the class shares of all rows.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.sampling import stratified
    >>> from expunge.concept import Concept
    >>> y = Concept("classes", np.arange(100) % 4 // 3, ("a", "b"))
    >>> np.bincount(y.values[stratified(y, 20, 0)])
    array([15,  5])
    """
    n = concept.n_samples
    if n <= size:
        return np.arange(n)
    order = _by_concept(concept, seed)  # equal steps through rows sorted by class keep the shares
    steps = ((np.arange(size) + 0.5) * n / size).astype(np.intp)
    return np.sort(order[steps])


def _by_concept(concept: Concept, seed: int) -> NDArray[np.intp]:
    """Numbers of the rows in random order, but sorted by class, or by labels, the rarest first."""
    order = np.random.default_rng(seed).permutation(concept.n_samples)
    if concept.kind == "continuous":
        return order
    values = concept.values[order]
    if concept.kind == "classes":
        return order[np.argsort(values, kind="stable")]
    rarer = np.minimum(values.sum(axis=0), len(values) - values.sum(axis=0))
    rarest_last = np.argsort(-rarer, kind="stable")
    rarest_last = rarest_last[rarer[rarest_last] > 0][-SORTED:]
    return order[np.lexsort(values[:, rarest_last].T)] if rarest_last.size else order


def groups_of(rows: Rows, ids: NDArray[Any] | None = None) -> NDArray[np.intp] | None:
    """Which rows belong together: those of one id; without ids, copies of one row.

    Parameters
    ----------
    rows : rows of shape (n, d)
        Before erasure.
    ids : array of shape (n,), optional

    Returns
    -------
    int array of shape (n,), or None
        None where every row stands alone, as in a table whose rows repeat by chance.
    """
    if ids is None:
        ids = row_hashes(rows)
        if len(np.unique(ids)) == len(ids) or by_chance(rows):
            return None
    return np.asarray(np.unique(ids, return_inverse=True)[1].reshape(-1), dtype=np.intp)


def fold_numbers(
    concept: Concept, count: int, seed: int, groups: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """The fold of every row: classes and rare labels are dealt out evenly, groups stay together.

    Parameters
    ----------
    concept : Concept
    count : int
        Folds, if there are so many groups.
    seed : int
    groups : int array of shape (n,), optional

    Returns
    -------
    int array of shape (n,)
    """
    n = concept.n_samples
    order = _by_concept(concept, seed)
    dealt = np.empty(n, dtype=np.intp)
    dealt[order] = np.arange(n) % count
    if groups is None or np.all(groups == groups[0]):
        return dealt
    _, first, which = np.unique(groups, return_index=True, return_inverse=True)
    which = which.reshape(-1)
    fold = dealt[first]  # of each group
    has = [np.unique(which[rows]) for _, rows in _each_value(concept)]  # groups of each value
    fold = _apart(fold, [mine for mine in has if len(mine) > 1], count, seed)
    if np.all(fold == fold[0]):
        fold = np.arange(len(fold)) % 2
    return np.asarray(np.unique(fold[which], return_inverse=True)[1].reshape(-1), dtype=np.intp)


def _apart(
    fold: NDArray[np.intp], several: list[NDArray[np.intp]], count: int, seed: int
) -> NDArray[np.intp]:
    """Folds of groups, changed until no value has all of its groups in one, if that is found."""
    rng = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        stuck = [mine for mine in several if np.all(fold[mine] == fold[mine[0]])]
        if not stuck:
            break
        mine = stuck[rng.integers(len(stuck))]
        moved = rng.permutation(mine)[::2]
        fold[moved[: len(mine) - 1]] = (fold[mine[0]] + rng.integers(1, max(count, 2))) % count
    return fold


def untaught(concept: Concept, folds: NDArray[np.intp]) -> list[str]:
    """Classes and labels that no probe tested on their rows has met: all lie in one fold.

    Parameters
    ----------
    concept : Concept
    folds : int array of shape (n,)

    Returns
    -------
    list of str

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.sampling import untaught
    >>> from expunge.concept import Concept
    >>> y = Concept("classes", np.array([0, 0, 0, 1, 1]), ("a", "b"))
    >>> untaught(y, np.array([0, 1, 0, 1, 1])), untaught(y, np.array([0, 1, 0, 0, 1]))
    (['b'], [])
    """
    each = _each_value(concept)
    found = [name for name, has in each if len(has) > 1 and len(np.unique(folds[has])) == 1]
    return list(dict.fromkeys(found))


def _each_value(concept: Concept) -> Iterator[tuple[str, NDArray[np.intp]]]:
    """Names and rows of each class, or of each label, with it and without it."""
    if concept.kind == "continuous":
        return
    for j, name in enumerate(map(str, concept.labels)):
        if concept.kind == "classes":
            yield name, np.flatnonzero(concept.values == j)
        else:
            yield name, np.flatnonzero(concept.values[:, j])
            yield name, np.flatnonzero(concept.values[:, j] == 0)
