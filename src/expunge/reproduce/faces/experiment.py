"""Concepts in the pixels of faces: Section 5.3 of the paper and its Appendix F.1."""

from __future__ import annotations

from expunge.reproduce.faces.figures import pictures
from expunge.reproduce.faces.labelled_faces import load
from expunge.reproduce.faces.measurements import PARTS
from expunge.reproduce.faces.tables import findings, tables
from expunge.reproduce.runner.declaration import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="faces",
    title="Concepts in the pixels of faces",
    about=(
        "Grey faces of 50 x 50 pixels are rows of 2,500 numbers. One direction is removed from "
        "them for each of the concepts glasses, smile, mustache, beard, bald and hat, as far as "
        "the data have labels. What a linear probe still finds is measured on faces of other "
        "people, and the faces are shown before and after."
    ),
    load=load,
    parts=PARTS,
    tables=tables,
    pictures=pictures,
    findings=findings,
    runs=5,
    quick_runs=2,
    options={"images": "how many images of a CelebA folder to read at the most (30000)"},
)
