"""Gender in biographies: Section 5.2 of the paper and its Appendix D."""

from __future__ import annotations

from expunge.reproduce.bios.biographies import load
from expunge.reproduce.bios.figures import pictures
from expunge.reproduce.bios.measurements import PARTS
from expunge.reproduce.bios.tables import findings, tables
from expunge.reproduce.runner.declaration import Experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = Experiment(
    name="bios",
    title="Gender in biographies",
    about=(
        "Short biographies are encoded by a language model: as it is, fine-tuned to predict the "
        "profession, and fine-tuned against a gender adversary. RLACE and INLP remove K directions "
        "from the encodings. Measured on test rows: how well gender and profession can be "
        "predicted, and how the true positive rates of women and men differ. Two genders are what "
        "the data have, not all there are."
    ),
    load=load,
    parts=PARTS,
    tables=tables,
    pictures=pictures,
    findings=findings,
    runs=3,
    quick_runs=1,
    options={
        "encoder": "a Hugging Face model, by name or folder; MiniLM by default",
        "pooling": "cls or mean",
        "steps": "batches of ten to fine-tune on",
        "professions": "those to use, with commas between",
        "max_length": "tokens read of a text, 128 by default",
    },
    packages=("torch", "transformers"),
)
