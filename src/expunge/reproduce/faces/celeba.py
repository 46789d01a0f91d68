"""The CelebA folder: aligned images, the list of attributes, and who is who if it is there."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.linalg import Array
from expunge.reproduce.faces.grey_images import grey_file
from expunge.reproduce.faces.labelled_faces import ATTRIBUTES, CONCEPTS, Faces, truth

__all__ = ["read_celeba"]

# names and folders of the release, and of the copies that go round
LISTS = ("list_attr_celeba.txt", "list_attr_celeba.csv")
IDENTITIES = ("identity_CelebA.txt",)
IMAGES = ("img_align_celeba/img_align_celeba", "img_align_celeba")
FOLDERS = (".", "Anno", "Img")
SEED = 0


def read_celeba(folder: Path, most: int) -> Faces:
    """Faces from a folder with CelebA.

    Parameters
    ----------
    folder : path
        With list_attr_celeba.txt or .csv and img_align_celeba, and identity_CelebA.txt if splits
        are to keep people apart; as released (Anno, Img) or all in one place.
    most : int
        Images to read at the most; of more, a random sample, always the same.

    Returns
    -------
    Faces
    """
    names, values = _attributes(_find(folder, LISTS, "The list of attributes"))
    images = _find(folder, IMAGES, "The folder of images")
    rows = np.random.default_rng(SEED).permutation(len(names))[:most]
    rows.sort()
    chosen = [names[row] for row in rows]
    labels = {}
    for concept in CONCEPTS:
        if ATTRIBUTES[concept][0] in values:
            found = truth(values[ATTRIBUTES[concept][0]], concept, len(names))[rows]
            labels[concept] = 1 - found if ATTRIBUTES[concept][1] else found
    pixels = np.stack([grey_file(images / name) for name in chosen])
    return Faces(pixels, labels, _people(folder, chosen))


def _find(folder: Path, names: tuple[str, ...], what: str) -> Path:
    found = _look(folder, names)
    if found is None:
        raise InputError(
            f"{what} of CelebA is not there",
            f"the folder {folder}",
            f"Put {' or '.join(names)} into it",
        )
    return found


def _look(folder: Path, names: tuple[str, ...]) -> Path | None:
    places = [folder / inner / name for inner in FOLDERS for name in names]
    return next((place for place in places if place.exists()), None)


def _attributes(path: Path) -> tuple[list[str], dict[str, Array]]:
    """Names of the images, and the attributes that are concepts of ours, -1 and 1."""
    wanted = {attribute for attribute, _ in ATTRIBUTES.values()}
    lines = _lines(path)
    heads = next(lines, [])
    places = {head: place for place, head in enumerate(heads) if head in wanted}
    names: list[str] = []
    columns: dict[str, list[float]] = {head: [] for head in places}
    try:
        for line in lines:
            names.append(line[0])
            for head, place in places.items():
                columns[head].append(float(line[place]))
    except (IndexError, ValueError) as error:
        raise InputError(
            "A line of the list of attributes cannot be read",
            f"{path.name}, image {len(names)} ({error})",
            "Fetch the list again",
        ) from error
    if not names or not columns:
        raise InputError(
            "The list of attributes has no images or none of the attributes needed",
            f"{path.name} with {len(names)} images and {len(columns)} attributes",
            f"It must have some of {', '.join(sorted(wanted))}",
        )
    return names, {head: np.array(column) for head, column in columns.items()}


def _lines(path: Path) -> Iterator[list[str]]:
    """The heads, with one for the name of the image, then a line for each image."""
    with path.open(encoding="utf-8", newline="") as stream:
        if path.suffix == ".csv":
            yield from (line for line in csv.reader(stream) if line)
            return
        next(stream, None)  # the number of images
        yield ["image_id", *next(stream, "").split()]
        yield from (line.split() for line in stream if line.strip())


def _people(folder: Path, names: list[str]) -> NDArray[np.intp] | None:
    """Who is in each image, if the list is there and knows them all."""
    path = _look(folder, IDENTITIES)
    if path is None:
        return None
    lines = (line.split() for line in path.read_text().splitlines())
    known = {line[0]: line[1] for line in lines if len(line) > 1}
    missing = [name for name in names if name not in known]
    if missing:
        raise InputError(
            "The list of people does not know every image",
            f"{path.name} without {missing[0]} and {len(missing) - 1} others",
            "Fetch the list again, or take it away",
        )
    return np.unique([known[name] for name in names], return_inverse=True)[1].astype(np.intp)
