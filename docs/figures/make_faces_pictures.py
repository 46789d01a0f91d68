"""Draw the pictures of faces for the documentation, from a run on the embedded set.

Run as ``python docs/figures/make_faces_pictures.py`` (``pip install -e '.[reproduce]'``). Images:
AT&T Laboratories Cambridge.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from PIL import Image

from expunge.reproduce import reproduce

HERE = Path(__file__).parent
WIDTH, COLOURS = 960, 48
PICTURES = {"faces-glasses": "faces_glasses", "directions": "faces_directions"}


def main() -> None:
    """Repeat the experiment, then shrink its figures."""
    with tempfile.TemporaryDirectory() as folder:
        done = reproduce("faces", Path(folder) / "out", runs=1)
        for name, kept in PICTURES.items():
            with Image.open(done.out / "figures" / f"{name}.png") as image:
                height = round(WIDTH * image.height / image.width)
                small = image.convert("RGB").resize((WIDTH, height), Image.Resampling.LANCZOS)
            small = small.quantize(COLOURS, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
            small.save(HERE / f"{kept}.png", optimize=True)


if __name__ == "__main__":
    main()
