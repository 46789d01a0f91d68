"""Faces with labels: the embedded ORL set, an .npz file, or a folder of CelebA.

An .npz file holds

- ``images``: (n, h, w), (n, h, w, 3) or (n, h * h); see `grey_pixels`;
- the labels: an array of n for each concept it has, by the name of the concept (``glasses``) or of
  the CelebA attribute (``Eyeglasses``; ``No_Beard`` is turned round), with 0 and 1, -1 and 1, false
  and true, or probabilities, nan where there is none; or ``attr_prob`` (n, a) with ``attr_names``
  (a) of CelebA's. Probabilities are labels where they are above 0.8 or below 0.2, or above and
  below the two numbers of ``thresholds``;
- if known, ``person_id`` (n): who is in the image.
"""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.data import load_orl_faces
from expunge.errors import InputError
from expunge.linalg import Array
from expunge.reproduce.faces.grey_images import Pixels, grey_pixels
from expunge.reproduce.runner.declaration import LoadedData, RunSettings

__all__ = ["ATTRIBUTES", "CONCEPTS", "Faces", "load", "read_npz", "truth"]

# concept -> CelebA's attribute, and whether that one says the opposite
ATTRIBUTES = {
    "glasses": ("Eyeglasses", False),
    "smile": ("Smiling", False),
    "mustache": ("Mustache", False),
    "beard": ("No_Beard", True),
    "bald": ("Bald", False),
    "hat": ("Wearing_Hat", False),
}
CONCEPTS = tuple(ATTRIBUTES)
THRESHOLDS = (0.2, 0.8)  # probabilities between them are no label
PEOPLE = ("person_id", "subject")
IMAGES, QUICK_IMAGES = 30_000, 3_000  # read from a folder


@dataclass(frozen=True, eq=False)
class Faces:
    """Grey faces with labels.

    Attributes
    ----------
    pixels : uint8 array of shape (n, 2500)
    labels : mapping from concept to float array of shape (n,)
        1 with, 0 without, nan where it is not known; concepts without labels are not there.
    person : int array of shape (n,), or None
        Who is in the image, from 0, if that is known.
    """

    pixels: Pixels
    labels: Mapping[str, Array]
    person: NDArray[np.intp] | None

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def n_people(self) -> int | None:
        """Number of different people, if they are known."""
        return None if self.person is None else len(np.unique(self.person))

    def digest(self) -> str:
        """A digest of everything."""
        digest = hashlib.sha256(np.ascontiguousarray(self.pixels).tobytes())
        for concept in sorted(self.labels):
            digest.update(concept.encode() + self.labels[concept].tobytes())
        if self.person is not None:
            digest.update(self.person.astype("<i8").tobytes())
        return digest.hexdigest()[:16]


def load(path: Path | None, settings: RunSettings) -> LoadedData:
    """The embedded faces, the file at `path`, or the CelebA folder there.

    Parameters
    ----------
    path : path, optional
    settings : RunSettings
        Its option "images" is how many of a folder are read at the most.

    Returns
    -------
    LoadedData
        With `Faces`.
    """
    if path is None:
        faces, source = _embedded(), "ORL faces (images: AT&T Laboratories Cambridge)"
        differs = "400 faces of 40 people and the one concept glasses instead of CelebA"
    elif path.is_dir():
        from expunge.reproduce.faces.celeba import read_celeba

        faces = read_celeba(path, _most_images(settings))
        source, differs = f"CelebA, {len(faces):,} faces", ""
    else:
        faces, source, differs = read_npz(path), path.name, "other faces than those of CelebA"
    return LoadedData(faces, source, faces.digest(), differs, _facts(faces))


def read_npz(path: Path) -> Faces:
    """Faces from an .npz file as this module describes it."""
    try:
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files if _is_wanted(name)}
            names = sorted(stored.files)
    except (OSError, EOFError, TypeError, ValueError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            "The faces cannot be read",
            f"{path} ({error})",
            "Name an .npz file, or a folder with CelebA",
        ) from error
    if "images" not in arrays:
        raise InputError("There are no images in the file", f"arrays {names}", "Add images")
    pixels = grey_pixels(arrays["images"])
    low, high = _thresholds(arrays)
    labels = {}
    for concept in CONCEPTS:
        values, opposite = _labels_of(concept, arrays)
        if values is not None:
            found = truth(values, concept, len(pixels), low=low, high=high)
            labels[concept] = 1 - found if opposite else found
    if not labels:
        raise InputError(
            "There are no labels for any concept in the file",
            f"arrays {names}",
            f"Add an array for one of {', '.join(CONCEPTS)}",
        )
    return Faces(pixels, labels, _people(arrays, len(pixels)))


def truth(
    values: NDArray[Any],
    name: str,
    n: int,
    *,
    low: float = THRESHOLDS[0],
    high: float = THRESHOLDS[1],
) -> Array:
    """Labels as 1, 0 and nan.

    Parameters
    ----------
    values : array of shape (n,)
        0 and 1, -1 and 1, false and true, or probabilities; nan where there is none.
    name : str
        Whose they are, for messages.
    n : int
        How many there must be.
    low, high : float
        Below and above which a probability is a label.

    Returns
    -------
    float array of shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.faces.labelled_faces import truth
    >>> truth(np.array([-1, 1, 1]), "glasses", 3)
    array([0., 1., 1.])
    >>> truth(np.array([0.9, 0.5, 0.1]), "glasses", 3)
    array([ 1., nan,  0.])
    """
    values = np.asarray(values)
    if values.shape != (n,) or values.dtype.kind not in "biuf":
        raise InputError(
            f"The labels of {name!r} must be one number for each of the {n:,} images",
            f"shape {values.shape}, type {values.dtype}",
            "Pass 0 and 1",
        )
    v = values.astype(np.float64)
    known = v[~np.isnan(v)]
    if np.isin(known, (-1, 1)).all():
        return (v + 1) / 2
    if known.min() < 0 or known.max() > 1:
        raise InputError(
            f"The labels of {name!r} are neither classes nor probabilities",
            f"values from {known.min():g} to {known.max():g}",
            "Pass 0 and 1, or probabilities",
        )
    return np.where(v > high, 1.0, np.where(v < low, 0.0, np.nan))


def _embedded() -> Faces:
    orl = load_orl_faces()
    person = np.asarray(orl.person_id - 1, dtype=np.intp)
    return Faces(grey_pixels(orl.images), {"glasses": orl.glasses.astype(np.float64)}, person)


def _most_images(settings: RunSettings) -> int:
    given = settings.options.get("images")
    if given is None:
        return QUICK_IMAGES if settings.quick else IMAGES
    if not given.isdecimal() or int(given) < 1:
        raise InputError("images must be a whole number", repr(given), f"Pass {IMAGES}, say")
    return int(given)


def _is_wanted(name: str) -> bool:
    attributes = [attribute for attribute, _ in ATTRIBUTES.values()]
    tables = ("attr_prob", "attr_names", "thresholds")
    return name in ("images", *tables, *PEOPLE, *CONCEPTS, *attributes)


def _labels_of(
    concept: str, arrays: Mapping[str, NDArray[Any]]
) -> tuple[NDArray[Any] | None, bool]:
    """The array of a concept, under its own name, its CelebA name, or in the table.

    And whether it says the opposite.
    """
    attribute, opposite = ATTRIBUTES[concept]
    if concept in arrays:
        return arrays[concept], False
    if attribute in arrays:
        return arrays[attribute], opposite
    return _column(attribute, arrays) if "attr_prob" in arrays else None, opposite


def _column(attribute: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any] | None:
    """One attribute of the table, if it is there."""
    table = arrays["attr_prob"]
    given = arrays.get("attr_names", np.array([])).tolist()
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in given]
    if table.ndim != 2 or table.shape[1] != len(names):
        raise InputError(
            "attr_names must name every column of attr_prob",
            f"{len(names)} names, shape {table.shape}",
            "Mend one of them",
        )
    return table[:, names.index(attribute)] if attribute in names else None


def _thresholds(arrays: Mapping[str, NDArray[Any]]) -> tuple[float, float]:
    given = np.asarray(arrays.get("thresholds", THRESHOLDS), dtype=np.float64)
    if given.shape != (2,) or not 0 <= given[0] <= given[1] <= 1:
        raise InputError(
            "thresholds must be two numbers from 0 to 1, the lower one first",
            str(given.tolist()),
            f"Pass {list(THRESHOLDS)}",
        )
    return float(given[0]), float(given[1])


def _people(arrays: Mapping[str, NDArray[Any]], n: int) -> NDArray[np.intp] | None:
    found = next((arrays[name] for name in PEOPLE if name in arrays), None)
    if found is None:
        return None
    if found.shape != (n,):
        raise InputError(
            f"person_id must be one number for each of the {n:,} images",
            f"shape {found.shape}",
            "Mend its length, or leave it out",
        )
    return np.unique(found, return_inverse=True)[1].astype(np.intp)


def _facts(faces: Faces) -> dict[str, Any]:
    """What the report says of the data."""
    people = faces.n_people
    facts: dict[str, Any] = {
        "Faces": len(faces),
        "People": people if people is not None else "not known: parts may share people",
    }
    for concept in CONCEPTS:
        y = faces.labels.get(concept)
        facts[f"Faces with / without {concept}"] = (
            "no labels" if y is None else f"{int((y == 1).sum()):,} / {int((y == 0).sum()):,}"
        )
    return facts
