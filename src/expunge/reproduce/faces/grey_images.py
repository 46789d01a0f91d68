"""Grey images of 50 x 50 pixels from images of any size, by Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["PIXELS", "SIDE", "Pixels", "grey_file", "grey_pixels"]

SIDE = 50
PIXELS = SIDE * SIDE

Pixels = NDArray[np.uint8]


def grey_pixels(images: NDArray[Any]) -> Pixels:
    """Images as rows of 2,500 grey values.

    Parameters
    ----------
    images : array of shape (n, h, w), (n, h, w, 3) or (n, h * h)
        Whole numbers from 0 to 255, or floats from 0 to 1 or from 0 to 255.

    Returns
    -------
    uint8 array of shape (n, 2500)
        Images that are not 50 x 50 are reduced to it whatever their shape: every new pixel is the
        mean of the area it covers. Colours become their luma.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.faces.grey_images import grey_pixels
    >>> images = np.zeros((1, 100, 100))
    >>> images[:, :50] = 1
    >>> grey_pixels(images).reshape(50, 50)[[0, 24, 25, 49], 0]
    array([255, 255,   0,   0], dtype=uint8)
    """
    images = _as_bytes(images)
    if images.ndim == 2:
        side = round(images.shape[1] ** 0.5)
        if side * side != images.shape[1]:
            raise _bad_shape(images)
        images = images.reshape(-1, side, side)
    if images.ndim not in (3, 4) or (images.ndim == 4 and images.shape[3] != 3) or not images.size:
        raise _bad_shape(images)
    if images.shape[1:] != (SIDE, SIDE):
        image_of = require("PIL.Image", "reproduce").fromarray
        images = np.stack([_reduced(image_of(image)) for image in images])
    return images.reshape(-1, PIXELS)


def grey_file(path: Path) -> Pixels:
    """The image in a file, as `grey_pixels` makes it.

    Returns
    -------
    uint8 array of shape (2500,)
    """
    pillow = require("PIL.Image", "reproduce")
    try:
        with pillow.open(path) as image:
            return _reduced(image).reshape(PIXELS)
    except OSError as error:
        raise InputError(
            "An image cannot be read", f"{path} ({error})", "Mend it or take it out of the list"
        ) from error


def _reduced(image: Any) -> Pixels:
    """One Pillow image, grey and 50 x 50."""
    box = require("PIL.Image", "reproduce").Resampling.BOX
    return np.asarray(image.convert("L").resize((SIDE, SIDE), box), dtype=np.uint8)


def _as_bytes(images: NDArray[Any]) -> Pixels:
    """Grey values from 0 to 255, rounded."""
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "iuf" or not np.isfinite(images).all():
        raise InputError(
            "Images must be finite numbers", f"type {images.dtype}", "Pass grey values as uint8"
        )
    most = images.max(initial=0)
    if images.min(initial=0) < 0 or most > 255:
        raise InputError(
            "Grey values must be from 0 to 255, or floats from 0 to 1",
            f"values from {images.min()} to {most}",
            "Scale the images",
        )
    unit = 255 if images.dtype.kind == "f" and most <= 1 else 1
    return np.asarray(np.rint(images * unit), dtype=np.uint8)


def _bad_shape(images: NDArray[Any]) -> InputError:
    return InputError(
        "Images must have the shape (n, h, w), (n, h, w, 3) or, of squares, (n, h * h)",
        f"shape {images.shape}",
        "Reshape them",
    )
