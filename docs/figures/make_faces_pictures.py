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
WIDTH, STEPS = 880, 40  # pixels, and steps of grey that are kept
PICTURES = {"faces-glasses": ("faces_glasses", "L"), "directions": ("faces_directions", "RGB")}


def main() -> None:
    """Repeat the experiment, then shrink its figures."""
    with tempfile.TemporaryDirectory() as folder:
        done = reproduce("faces", Path(folder) / "out", runs=1)
        for name, (kept, mode) in PICTURES.items():
            with Image.open(done.out / "figures" / f"{name}.png") as image:
                height = round(WIDTH * image.height / image.width)
                small = image.convert(mode).resize((WIDTH, height), Image.Resampling.LANCZOS)
            if mode == "L":
                small = small.point([round(v * STEPS / 255) * 255 // STEPS for v in range(256)])
            small.save(HERE / f"{kept}.png", optimize=True)


if __name__ == "__main__":
    main()
