"""Which rows the eraser has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.measures import exact_binomial
from expunge.audit.repeats import Hashes, by_chance, real_share, repeated, row_hashes
from expunge.fingerprint import Fingerprint
from expunge.rows.base import Rows

__all__ = ["Freshness", "fresh_by_ids", "fresh_rows", "share_of_fit", "trusted"]

FEW = 0.01  # share of rows of the fit among those a sketch cannot tell that bends no measure
SURE = 0.95  # confidence in it
RARELY = 0.05  # share of chance repeats that may be left out without bending the sample
ALL = 0.95  # share of rows of the fit from which on all of them are taken to be


@dataclass(frozen=True, eq=False)
class Freshness:
    """Which test rows are fresh, and how that is known.

    Attributes
    ----------
    fresh : bool array of shape (n,)
    n_in_train : int
        Test rows that are also among the training rows.
    n_known : int
        Test rows that the fingerprint of the erasure recognises.
    n_undecided : int
        Test rows left out because the fingerprint, which keeps a part of a large fit only, cannot
        tell, while so many of those it can tell are rows of the fit that some of these may be.
    fingerprint : bool
        Whether the erasure has a fingerprint at all.
    judged_by : {"values", "ids", "trust"}
        What rows were told apart by.
    n_repeats : int
        Fresh rows whose numbers a row of the fit has as well, as chance explains.
    repeats_expected : float
        Share of rows that chance alone repeats.
    unclear : bool
        Whether some test rows are rows of the fit and others only repeat their numbers, so that
        none can be called fresh.
    """

    fresh: NDArray[np.bool_]
    n_in_train: int = 0
    n_known: int = 0
    n_undecided: int = 0
    fingerprint: bool = False
    judged_by: str = "values"
    n_repeats: int = 0
    repeats_expected: float = 0.0
    unclear: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The counts, and how they were found."""
        plain = {key: value for key, value in vars(self).items() if key != "fresh"}
        return {"n_fresh": int(self.fresh.sum()), **plain}


def trusted(n: int, meta: dict[str, Any]) -> Freshness:
    """All rows are fresh, because the user says so.

    Parameters
    ----------
    n : int
    meta : dict
        Of the erasure.

    Returns
    -------
    Freshness
    """
    sketches = any(True for _ in fingerprints(meta))
    return Freshness(np.ones(n, dtype=bool), fingerprint=sketches, judged_by="trust")


def fresh_by_ids(
    ids_test: NDArray[Any], ids_train: NDArray[Any], meta: dict[str, Any]
) -> Freshness:
    """Tell the test rows whose ids no training row has.

    Parameters
    ----------
    ids_test, ids_train : arrays of shape (n,) and (m,)
    meta : dict
        Of the erasure.

    Returns
    -------
    Freshness

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.fresh import fresh_by_ids
    >>> fresh_by_ids(np.array([3, 4, 5]), np.array([1, 2, 3]), {}).fresh
    array([False,  True,  True])
    """
    there = np.isin(ids_test, ids_train)
    sketches = any(True for _ in fingerprints(meta))
    return Freshness(~there, int(there.sum()), fingerprint=sketches, judged_by="ids")


def fresh_rows(test: Rows, train: Rows | None, meta: dict[str, Any]) -> Freshness:
    """Tell the test rows that neither the training rows nor the fingerprint know.

    In a table new rows may repeat old numbers; see `expunge.audit.repeats`. Where chance explains
    all repeats, all rows are fresh. Where it does not, rows that repeat are left out if chance
    repeats are rare; else it is unclear which rows are fresh.

    Parameters
    ----------
    test : rows of shape (n, d)
        Before erasure.
    train : rows of shape (m, d) or None
    meta : dict
        Of the erasure.

    Returns
    -------
    Freshness

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.fresh import fresh_rows
    >>> from expunge.inputs import check_rows
    >>> X = np.random.default_rng(0).normal(size=(6, 2))
    >>> fresh_rows(check_rows(X), check_rows(X[:4]), {}).fresh
    array([False, False, False, False,  True,  True])
    """
    new = row_hashes(test)
    old = new[:0] if train is None else row_hashes(train)
    in_train = np.isin(new, old)
    known, decided = np.zeros(len(new), dtype=bool), np.ones(len(new), dtype=bool)
    sketches = list(fingerprints(meta))
    for sketch in sketches:
        own_known, own_decided = _asked(sketch, test)
        known |= own_known
        decided &= own_decided
    counts: dict[str, Any] = {
        "n_in_train": int(in_train.sum()),
        "n_known": int(known.sum()),
        "fingerprint": bool(sketches),
    }
    seen = in_train | known
    if seen.any() and by_chance(test):
        chance = (repeated(old), _chance(sketches, old, new))
        shares = (
            real_share(int(in_train.sum()), len(new), chance[0], len(old)),
            real_share(
                int((known & decided).sum()), int(decided.sum()), chance[1], _kept(sketches)
            ),
        )
        share = max(s or 0.0 for s in shares)
        counts["repeats_expected"] = max(chance)
        if share == 0:
            every = np.ones(len(new), dtype=bool)
            return Freshness(every, n_repeats=int(seen.sum()), **counts)
        if share < ALL and max(chance) > RARELY:
            return Freshness(np.zeros(len(new), dtype=bool), unclear=True, **counts)
    undecided = np.zeros(len(new), dtype=bool)
    told = decided & ~in_train  # rows of the fit among these were not passed as X_train
    if known[told].any() or np.any(known & ~in_train):
        of_those = exact_binomial(int(known[told].sum()), max(int(told.sum()), 1), SURE)
        if of_those.high > FEW:
            undecided = ~(decided | seen)
    return Freshness(~(seen | undecided), n_undecided=int(undecided.sum()), **counts)


def share_of_fit(rows: Rows, meta: dict[str, Any]) -> float | None:
    """Share of the rows that the erasure was fitted on; None where that is not known.

    Parameters
    ----------
    rows : rows of shape (n, d)
        Before erasure.
    meta : dict
        Of the erasure.

    Returns
    -------
    float or None
        Rows of a table that only repeat rows of the fit are not counted, as far as chance explains
        them.
    """
    sketches = list(fingerprints(meta))
    known, decided = 0, 0
    for sketch in sketches:
        sure, can = _asked(sketch, rows)
        known += int((sure & can).sum())
        decided += int(can.sum())
    if not decided:
        return None
    if known in (0, decided) or not by_chance(rows):
        return known / decided
    hashes = row_hashes(rows)
    chance = _chance(sketches, hashes[:0], hashes)
    return real_share(known, decided, chance, _kept(sketches))


def _asked(sketch: Fingerprint, rows: Rows) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rows a sketch knows, and of which it can tell; block by block."""
    known, decided = np.zeros((2, rows.n_samples), dtype=bool)
    for start, (sure, can) in rows.each_block(partial(_asked_of, sketch)):
        part = slice(start, start + len(sure))
        known[part], decided[part] = sure, can
    return known, decided


def _asked_of(
    sketch: Fingerprint, start: int, X: NDArray[Any]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    return sketch.known(X), sketch.decides(X)


def _chance(sketches: list[Fingerprint], old: Hashes, new: Hashes) -> float:
    """Share of new rows that repeat a row of the fit by chance, as far as that is known.

    Sketches of old versions have no counts. Fewer rows than the fit had then give a lower bound by
    the repeats among them.
    """
    bounds = [0.0]
    for sketch in sketches:
        bounds.append(sketch.repeated())
        if sketch.counts is None:
            bounds += [repeated(rows) for rows in (old, new) if len(rows) <= sketch.n]
    return max(bounds)


def _kept(sketches: list[Fingerprint]) -> int:
    """Rows that the smallest of the sketches stands for."""
    sizes = [s.keys.size if s.counts is None else int(s.counts.sum()) for s in sketches]
    return min(sizes, default=1)


def fingerprints(meta: dict[str, Any]) -> Iterator[Fingerprint]:
    """Of the erasure, and of the steps it was put together from."""
    if "fingerprint" in meta:
        yield Fingerprint.from_meta(meta["fingerprint"])
    for step in meta.get("steps", ()):
        yield from fingerprints(step)
