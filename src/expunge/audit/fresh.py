"""Which rows the eraser has not seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.fingerprint import Fingerprint
from expunge.parallel import blocks

__all__ = ["Freshness", "fresh_rows", "row_hashes", "share_of_fit"]


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
        tell, while it did recognise others that are not among the training rows.
    fingerprint : bool
        Whether the erasure has a fingerprint at all.
    """

    fresh: NDArray[np.bool_]
    n_in_train: int
    n_known: int
    n_undecided: int
    fingerprint: bool

    def to_dict(self) -> dict[str, Any]:
        """The counts."""
        return {
            "n_fresh": int(self.fresh.sum()),
            "n_in_train": self.n_in_train,
            "n_known": self.n_known,
            "n_undecided": self.n_undecided,
            "fingerprint": self.fingerprint,
        }


def fresh_rows(X_test: NDArray[Any], X_train: NDArray[Any], meta: dict[str, Any]) -> Freshness:
    """Tell the test rows that neither the training rows nor the fingerprint know.

    Parameters
    ----------
    X_test, X_train : arrays of shape (n, d) and (m, d)
        Before erasure.
    meta : dict
        Of the erasure.

    Returns
    -------
    Freshness

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.fresh import fresh_rows
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> fresh_rows(X, X[:4], {}).fresh
    array([False, False, False, False,  True,  True])
    """
    seen = set(row_hashes(X_train))
    in_train = np.array([found in seen for found in row_hashes(X_test)], dtype=bool)
    known, decided = np.zeros(len(X_test), dtype=bool), np.ones(len(X_test), dtype=bool)
    sketches = list(_fingerprints(meta))
    for sketch in sketches:
        known |= sketch.known(X_test)
        decided &= sketch.decides(X_test)
    undecided = np.zeros(len(X_test), dtype=bool)
    if np.any(known & ~in_train):  # then the fit had rows that were not passed as X_train
        undecided = ~(decided | in_train | known)
    return Freshness(
        fresh=~(in_train | known | undecided),
        n_in_train=int(in_train.sum()),
        n_known=int(known.sum()),
        n_undecided=int(undecided.sum()),
        fingerprint=bool(sketches),
    )


def share_of_fit(X_train: NDArray[Any], meta: dict[str, Any]) -> float | None:
    """Share of the training rows that the erasure was fitted on; None where that is not known."""
    known, decided = 0, 0
    for sketch in _fingerprints(meta):
        can = sketch.decides(X_train)
        known += int((sketch.known(X_train) & can).sum())
        decided += int(can.sum())
    return known / decided if decided else None


def row_hashes(X: NDArray[Any]) -> Iterator[int]:
    """A hash of each row as float32, so that float64 and float32 copies agree.

    Parameters
    ----------
    X : array of shape (n, d)

    Yields
    ------
    int
    """
    for lo, hi in blocks(0, len(X)):
        with np.errstate(over="ignore"):
            part = np.ascontiguousarray(X[lo:hi], dtype=np.float32) + np.float32(0)  # -0 becomes 0
        yield from (hash(row.tobytes()) for row in part)


def _fingerprints(meta: dict[str, Any]) -> Iterator[Fingerprint]:
    """Of the erasure, and of the steps it was put together from."""
    if "fingerprint" in meta:
        yield Fingerprint.from_meta(meta["fingerprint"])
    for step in meta.get("steps", ()):
        yield from _fingerprints(step)
