"""Parts of faces that share no person, and classes of equal size in each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from expunge.reproduce.faces.labelled_faces import Faces
from expunge.reproduce.runner.declaration import SkipPart

__all__ = ["FaceRows", "FacesSplit", "balanced", "dealt", "split_faces"]

Index = NDArray[np.intp]

PARTS, FIT_PARTS = 10, 7  # seven tenths of the people for the fit
FEWEST = 10  # faces of each class in each part


@dataclass(frozen=True, eq=False)
class FaceRows:
    """Numbers of some faces, and whether they have the concept.

    Attributes
    ----------
    index : int array of shape (n,)
    y : int array of shape (n,)
        1 with, 0 without.
    """

    index: Index
    y: Index

    def __len__(self) -> int:
        return len(self.index)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> FaceRows:
        """Some of them."""
        return FaceRows(self.index[rows], self.y[rows])


@dataclass(frozen=True, eq=False)
class FacesSplit:
    """Faces to fit on and faces of other people, with the classes as they are."""

    fit: FaceRows
    held_out: FaceRows


def dealt(y: Index, person: Index, parts: int, rng: np.random.Generator) -> Index:
    """Deal people out to parts so that each gets about as many faces of both classes.

    Those with many faces of class 1 come first, and each goes to the part that has fewest such
    faces; of equal ones the random order decides. People with class 0 only follow likewise.

    Parameters
    ----------
    y : int array of shape (n,)
        0 or 1.
    person : int array of shape (n,)
    parts : int
    rng : numpy.random.Generator

    Returns
    -------
    int array of shape (n,)
        The part of every face.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.faces.people_split import dealt
    >>> person = np.repeat(np.arange(6), 2)
    >>> y = np.repeat([1, 0], 6)
    >>> part = dealt(y, person, 3, np.random.default_rng(0))
    >>> np.bincount(part, weights=y), bool(np.all(part[::2] == part[1::2]))
    (array([2., 2., 2.]), True)
    """
    people, who = np.unique(person, return_inverse=True)
    having = np.bincount(who, weights=y)
    lacking = np.bincount(who) - having
    order = rng.permutation(len(people))
    order = order[np.lexsort((-lacking[order], -having[order]))]
    part_of = np.empty(len(people), dtype=np.intp)
    filled = np.zeros((parts, 2))
    for one in order:
        key = filled[:, 0] + 1e-9 * filled[:, 1] if having[one] else filled[:, 1]
        part = int(key.argmin())
        part_of[one] = part
        filled[part] += having[one], lacking[one]
    return part_of[who]


def balanced(rows: FaceRows, rng: np.random.Generator, most: int | None = None) -> FaceRows:
    """As many faces with as without: a random sample of the larger class is kept.

    Parameters
    ----------
    rows : FaceRows
    rng : numpy.random.Generator
    most : int, optional
        Faces of each class at the most.

    Returns
    -------
    FaceRows
    """
    classes = [np.flatnonzero(rows.y == label) for label in (0, 1)]
    size = min(len(found) for found in classes)
    size = size if most is None else min(size, most)
    kept = [rng.choice(found, size, replace=False) for found in classes]
    return rows.take(np.sort(np.concatenate(kept)))


def split_faces(faces: Faces, concept: str, rng: np.random.Generator) -> FacesSplit:
    """The labelled faces of a concept in two parts without a common person.

    Returns
    -------
    FacesSplit
        Where people are not known every face is taken for another person.

    Raises
    ------
    SkipPart
        With the counts, when there are no labels or too few faces of a class.
    """
    if concept not in faces.labels:
        raise SkipPart("the data have no labels")
    labels = faces.labels[concept]
    index = np.flatnonzero(~np.isnan(labels))
    rows = FaceRows(index, labels[index].astype(np.intp))
    person = index if faces.person is None else faces.person[index]
    part = dealt(rows.y, person, PARTS, rng)
    fit = np.isin(part, rng.permutation(PARTS)[:FIT_PARTS])
    split = FacesSplit(rows.take(fit), rows.take(~fit))
    smallest = min(np.bincount(part.y, minlength=2).min() for part in (split.fit, split.held_out))
    if smallest < FEWEST:
        having = rows.y == 1
        raise SkipPart(
            f"{having.sum():,} faces of {len(np.unique(person[having])):,} people with it and "
            f"{(~having).sum():,} of {len(np.unique(person[~having])):,} without: too few for two "
            f"parts without a common person and {FEWEST} faces of each class"
        )
    return split
