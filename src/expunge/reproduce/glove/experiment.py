"""Gender in static word vectors: Section 5.1 of the paper and its Appendices C.2, E and F."""

from __future__ import annotations

from expunge.reproduce.glove.figures import pictures
from expunge.reproduce.glove.labelled_words import load
from expunge.reproduce.glove.measurements import PARTS
from expunge.reproduce.glove.tables import findings, tables
from expunge.reproduce.runner.declaration import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="glove",
    title="Gender in word vectors",
    about=(
        "Words at either end of the line from he to she are labelled male-biased or "
        "female-biased. RLACE (the paper's descent-ascent, and the closed form), INLP and PCA of "
        "ten definitional pairs remove K directions; what is left of gender and what else has "
        "changed is measured on other words. A word's label is a property of its vector, not of "
        "people."
    ),
    load=load,
    parts=PARTS,
    tables=tables,
    pictures=pictures,
    findings=findings,
    runs=10,
    quick_runs=2,
    parallel=True,
)
