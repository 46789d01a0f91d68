"""Which rows were seen: a small sketch that recognises them again, in any order and chunking.

Every row has a 64-bit hash of its values as float32. A sketch keeps the smallest of them, so the
sketch of a union follows from the sketches of its parts, and a row of small hash is recognised
exactly. Up to `SIZE` distinct rows the sketch is complete. Beside each hash stands how many rows
had it: tables repeat values, and a new person may have the numbers of one that was seen.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import BadArtifact
from expunge.parallel import blocks, map_spans

__all__ = ["Fingerprint", "singles"]

SIZE = 2048  # hashes kept
PEEK = 4  # columns that decide which rows are worth hashing whole
WHOLE = 128  # columns up to which all of them do: few columns of a table tell kinds of rows apart
KEYS = 2  # the rule above; sketches of old versions, without a number, peek whatever the width
MOST = 2**16 - 1  # rows counted of one hash
TINY = np.finfo(np.float32).tiny  # numbers below have fewer digits

Hashes = NDArray[np.uint64]
Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Fingerprint:
    """The smallest row hashes of a set of rows.

    Attributes
    ----------
    n : int
        Rows seen.
    keys : uint64 array
        Sorted selection keys, at most `SIZE`: a hash of the row, or of a few columns of a wide one.
    hashes : uint64 array
        The hash of the whole row, beside each key.
    counts : int array or None
        How many rows had that hash, at most 65,535; None in sketches of old versions.
    old_keys : bool
        Whether keys are of a few columns whatever the width.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.fingerprint import Fingerprint
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> seen = Fingerprint.of(X[:4])
    >>> seen.known(X)
    array([ True,  True,  True,  True, False, False])
    """

    n: int
    keys: Hashes
    hashes: Hashes
    counts: Counts | None = None
    old_keys: bool = False

    @classmethod
    def of(cls, X: NDArray[Any]) -> Fingerprint:
        """Fingerprint of the rows of `X` (n x d)."""
        keys, count = _all_keys(X), SIZE
        while True:  # more rows are needed only where rows repeat
            best = _smallest(keys, count)
            found = cls._of_some(X, keys, best)._trimmed()
            if found.keys.size == SIZE or best.size == keys.size:
                return found
            count *= 4

    @classmethod
    def _of_some(cls, X: NDArray[Any], keys: Hashes, rows: NDArray[np.intp]) -> Fingerprint:
        """All rows counted, of which some are hashed whole."""
        parts = [_hash(X[rows[lo:hi]], X.shape[1]) for lo, hi in blocks(0, rows.size, 8192)]
        hashes = np.concatenate([np.zeros(0, np.uint64), *parts])
        return cls(X.shape[0], keys[rows], hashes, np.ones(rows.size, dtype=np.int64))

    def extended(self, X: NDArray[Any]) -> Fingerprint:
        """Fingerprint of these rows and those of `X` (n x d): what merging with theirs gives.

        Once the sketch is full, rows of a larger key than all of its own are not hashed.
        """
        if self.keys.size < SIZE:
            return self.merge(Fingerprint.of(X))
        keys = _all_keys(X)
        return self.merge(Fingerprint._of_some(X, keys, np.flatnonzero(keys <= self.keys[-1])))

    def merge(self, other: Fingerprint) -> Fingerprint:
        """Fingerprint of both sets of rows together."""
        counts = None
        if self.counts is not None and other.counts is not None:
            counts = np.concatenate([self.counts, other.counts])
        return Fingerprint(
            self.n + other.n,
            np.concatenate([self.keys, other.keys]),
            np.concatenate([self.hashes, other.hashes]),
            counts,
        )._trimmed()

    def _trimmed(self) -> Fingerprint:
        """The `SIZE` smallest, each once: equal rows take one place."""
        order = np.lexsort((self.hashes, self.keys))
        keys, hashes = self.keys[order], self.hashes[order]
        new = np.ones(keys.size, dtype=bool)
        new[1:] = (keys[1:] != keys[:-1]) | (hashes[1:] != hashes[:-1])
        counts = self.counts
        if counts is not None and counts.size:
            counts = np.add.reduceat(counts[order], np.flatnonzero(new))[:SIZE]
        return Fingerprint(self.n, keys[new][:SIZE], hashes[new][:SIZE], counts)

    @property
    def complete(self) -> bool:
        """Whether every row seen is in the sketch, so that no row can go unrecognised."""
        return self.n <= SIZE or self.keys.size < SIZE

    def known(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows of `X` are among those in the sketch."""
        found = np.zeros(X.shape[0], dtype=bool)
        for lo, hi in blocks(0, X.shape[0], 8192):
            candidates = lo + np.flatnonzero(np.isin(_keys(X[lo:hi], self.old_keys), self.keys))
            found[candidates] = np.isin(_hash(X[candidates], X.shape[1]), self.hashes)
        return found

    def decides(self, X: NDArray[Any]) -> NDArray[np.bool_]:
        """Of which rows of `X` the sketch can tell whether they were seen: those of small key.

        Where rows share a key, as those of a wide table whose middle columns are constant do, the
        hash of the whole row decides: the sketch keeps the smallest pairs of key and hash.
        """
        if self.complete:
            return np.ones(X.shape[0], dtype=bool)
        decided = np.zeros(X.shape[0], dtype=bool)
        for lo, hi in blocks(0, X.shape[0], 8192):
            keys = _keys(X[lo:hi], self.old_keys)
            decided[lo:hi] = keys < self.keys[-1]
            tied = lo + np.flatnonzero(keys == self.keys[-1])
            decided[tied] = _hash(X[tied], X.shape[1]) <= self.hashes[-1]
        return decided

    def repeated(self) -> float:
        """Estimated share of new rows like these that equal a row seen by chance.

        Good and Turing: as many as there are rows seen whose values were seen more than once. A
        sketch of an old version, without counts, gives a lower bound if it is complete, else 0.
        """
        if self.counts is not None:
            return float(1 - np.sum(self.counts == 1) / max(int(self.counts.sum()), 1))
        return 1 - self.keys.size / self.n if self.complete and self.n else 0.0

    def to_meta(self) -> dict[str, Any]:
        """JSON form: the number of rows, a short digest for people, the sketch and its counts.

        Counts are left out where no row repeats.
        """
        raw = self.keys.astype("<u8").tobytes() + self.hashes.astype("<u8").tobytes()
        digest = hashlib.sha256(self.n.to_bytes(8, "little") + raw).hexdigest()[:16]
        sketch = base64.b64encode(raw).decode()
        meta: dict[str, Any] = {"n": self.n, "digest": digest, "sketch": sketch}
        if not self.old_keys:
            meta["keys"] = KEYS
        if self.counts is not None:
            few = np.minimum(self.counts, MOST).astype("<u2").tobytes()
            single = bool(np.all(self.counts == 1))
            meta["counts"] = "" if single else base64.b64encode(few).decode()
        return meta

    @classmethod
    def from_meta(cls, meta: Mapping[str, Any]) -> Fingerprint:
        """The fingerprint that `to_meta` wrote.

        Parameters
        ----------
        meta : mapping

        Returns
        -------
        Fingerprint

        Raises
        ------
        BadArtifact
            When it is damaged.
        """
        try:
            found = cls._stored(meta)
            whole = type(meta["n"]) is int and found.keys.size <= min(found.n, SIZE)
            if whole and all(meta[key] == value for key, value in found.to_meta().items()):
                return found
        except (TypeError, KeyError, ValueError, OverflowError):
            pass
        raise BadArtifact("the fingerprint of the rows it was fitted on is damaged")

    @classmethod
    def _stored(cls, meta: Mapping[str, Any]) -> Fingerprint:
        both = np.frombuffer(base64.b64decode(meta["sketch"]), dtype="<u8").astype(np.uint64)
        size, counts = len(both) // 2, None
        if "counts" in meta:
            stored = np.frombuffer(base64.b64decode(meta["counts"]), dtype="<u2")
            counts = stored.astype(np.int64) if stored.size else np.ones(size, dtype=np.int64)
        return cls(int(meta["n"]), both[:size], both[size:], counts, "keys" not in meta)


def singles(X: NDArray[Any]) -> NDArray[np.float32]:
    """Rows as float32, by which copies of any type are known again: -0 becomes 0.

    Rows that float32 cannot hold would all be alike; their numbers have a ninth root that it can.

    Parameters
    ----------
    X : array of shape (n, d)

    Returns
    -------
    float32 array of shape (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.fingerprint import singles
    >>> singles(np.array([[-0.0, 0.5], [1e90, 0.0], [-1e-90, 0.0]])).round(12)
    array([[ 0.e+00,  5.e-01],
           [ 1.e+10,  0.e+00],
           [-1.e-10,  0.e+00]], dtype=float32)
    """
    with np.errstate(over="ignore", under="ignore"):
        found = np.array(X, dtype=np.float32, order="C")
    if X.dtype == np.float64 and found.size:
        lost = np.flatnonzero(np.abs(found[:, 0]) < TINY)
        lost = lost[(np.abs(found[lost]) < TINY).all(axis=1)]
        if not -np.inf < found.min() <= found.max() < np.inf:
            lost = np.union1d(lost, np.flatnonzero(~np.isfinite(found).all(axis=1)))
        found[lost] = np.cbrt(np.cbrt(X[lost]))
    found += np.float32(0)  # -0 becomes 0
    return found


def _all_keys(X: NDArray[Any]) -> Hashes:
    return np.concatenate(map_spans(lambda lo, hi: _keys(X[lo:hi]), X.shape[0], PEEK))


def _keys(X: NDArray[Any], old: bool = False) -> Hashes:
    """Hash of the row, or of neighbouring columns amid a wide one, which share a cache line or two.

    Rows are a fair sample of all, whatever their columns mean, if it is of the whole row.
    """
    if X.shape[1] <= WHOLE and not old:
        return _hash(X, X.shape[1])
    first = max(0, (X.shape[1] - PEEK) // 2)
    part = X[:, first : first + PEEK]
    return _hash(part, part.shape[1])


def _smallest(keys: Hashes, count: int) -> NDArray[np.intp]:
    if keys.size <= count:
        return np.arange(keys.size)
    return np.flatnonzero(keys <= np.partition(keys, count - 1)[count - 1])


def _hash(X: NDArray[Any], width: int) -> Hashes:
    """Multiply-and-mix hash of rows as float32, so that float64 and float32 copies agree."""
    values = singles(X)
    with np.errstate(over="ignore"):
        odd = 2 * _mix(np.arange(1, width + 1, dtype=np.uint64)) + np.uint64(1)
        bits = values.view(np.uint32).astype(np.uint64) + np.uint64(1)
        if width > PEEK:
            return _mix((bits * odd).sum(axis=1, dtype=np.uint64))
        return _mix(sum((bits[:, j] * odd[j] for j in range(1, width)), start=bits[:, 0] * odd[0]))


def _mix(h: Hashes) -> Hashes:
    """The finishing steps of a 64-bit hash: shifts and odd multiplications."""
    with np.errstate(over="ignore"):
        for shift, factor in ((33, 0xFF51AFD7ED558CCD), (29, 0xC4CEB9FE1A85EC53)):
            h = (h ^ (h >> np.uint64(shift))) * np.uint64(factor)
        return np.asarray(h ^ (h >> np.uint64(32)))
