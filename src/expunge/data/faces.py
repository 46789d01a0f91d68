"""The embedded faces: the ORL set with a glasses label. Images: AT&T Laboratories Cambridge."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["OrlFaces", "load_orl_faces"]


@dataclass(frozen=True, eq=False)
class OrlFaces:
    """The ORL faces, ten of each of 40 people.

    Attributes
    ----------
    images : uint8 array of shape (400, 50, 50)
        Grey values.
    person_id : int array of shape (400,)
        From 1 to 40.
    glasses : int array of shape (400,)
        1 where the person wears glasses.
    """

    images: NDArray[np.uint8]
    person_id: NDArray[np.int64]
    glasses: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.images)


def load_orl_faces() -> OrlFaces:
    """The ORL faces at 50 x 50 pixels, with a glasses label; a fresh copy on every call.

    When using these images, please give credit to AT&T Laboratories Cambridge.

    Returns
    -------
    OrlFaces

    References
    ----------
    Samaria, Harter (1994), Parameterisation of a stochastic model for human face identification,
    IEEE Workshop on Applications of Computer Vision.

    Examples
    --------
    >>> from expunge.data import load_orl_faces
    >>> faces = load_orl_faces()
    >>> faces.images.shape, int(faces.glasses.sum())
    ((400, 50, 50), 119)
    """
    with (
        files("expunge.data").joinpath("orl_faces.npz").open("rb") as stream,
        np.load(stream, allow_pickle=False) as stored,
    ):
        return OrlFaces(
            images=_pixels(stored["steps"]),
            person_id=stored["person_id"].astype(np.int64),
            glasses=stored["glasses"].astype(np.int64),
        )


def _pixels(steps: NDArray[Any]) -> NDArray[np.uint8]:
    """Images from the differences of neighbouring pixels, modulo 256."""
    lines = np.cumsum(steps, axis=2, dtype=np.uint8)
    return np.cumsum(lines, axis=1, dtype=np.uint8)
