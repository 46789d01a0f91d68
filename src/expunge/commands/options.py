"""Arguments and options that several commands take, each said once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expunge.addresses import where_of

__all__ = [
    "Concepts",
    "DropColumns",
    "Dtype",
    "ErasureFile",
    "GroupColumn",
    "IdColumn",
    "Memory",
    "Missing",
    "Normalize",
    "Pair",
    "Resume",
    "Seed",
    "Settings",
    "Task",
    "TypeOfConcept",
    "Unlabelled",
    "VectorNames",
    "Vectors",
    "Weights",
    "WordColumn",
    "WordFiles",
]

Vectors = Annotated[
    Path,  # or an Address, which offers what is asked of a path here
    typer.Argument(
        metavar="VECTORS",
        parser=where_of,
        help="A file of vectors (.parquet .npy .npz .arrow .feather .safetensors .csv .tsv .txt "
        ".vec .bin), or a folder of such files. Of parquet files also an address, as s3://b/people.",
        show_default=False,
    ),
]
ErasureFile = Annotated[
    Path,
    typer.Argument(metavar="ERASURE", help="A saved erasure (.safetensors).", show_default=False),
]
Concepts = Annotated[
    list[str] | None,
    typer.Option(
        "--concept",
        "-c",
        metavar="WHAT",
        help="What to erase: a column of VECTORS, or a file of labels (.npy; .txt with one per "
        "line; .csv with one column, or file.csv:column). May be repeated.",
    ),
]
TypeOfConcept = Annotated[
    str,
    typer.Option(
        "--concept-type", metavar="KIND", help="auto, classes, labels (0/1 columns) or continuous."
    ),
]
Task = Annotated[
    str | None,
    typer.Option("--task", metavar="WHAT", help="Classes of a task: a column or a file of labels."),
]
Weights = Annotated[
    str | None,
    typer.Option("--weights", metavar="WHAT", help="Weight of each row: a column or a file."),
]
IdColumn = Annotated[
    str | None,
    typer.Option("--ids", metavar="WHAT", help="Who or what a row belongs to: a column or a file."),
]
GroupColumn = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="WHAT",
        help="What rows belong to, where several belong to one (a person): a column or a file.",
    ),
]
Unlabelled = Annotated[
    str | None,
    typer.Option(
        "--unlabelled",
        metavar="FILE",
        help="A file of more rows like these, without labels: with few labels they make erasure "
        "hold better on new rows.",
    ),
]
VectorNames = Annotated[
    list[str] | None,
    typer.Option(
        "--vectors",
        metavar="NAME",
        help="Which column holds the vectors; several, as e0,e1,e2 or 'e*', for one column per "
        "entry. Found by itself where there is no doubt.",
    ),
]
Missing = Annotated[
    str,
    typer.Option(
        "--missing",
        metavar="HOW",
        help="Rows without a label: 'error' refuses them, 'drop' leaves them out, and for fit and "
        "plan 'unlabelled' lets them help.",
    ),
]
Pair = Annotated[
    str | None,
    typer.Option(
        "--pair",
        metavar="A,B",
        help="Of word vectors: label words by their place on the line between two words, 7,500 "
        "from each end.",
    ),
]
WordFiles = Annotated[
    str | None,
    typer.Option(
        "--words",
        metavar="FILE,FILE",
        help="Of word vectors: a list of words for each class, one per line.",
    ),
]
WordColumn = Annotated[
    str, typer.Option("--word-column", metavar="NAME", help="The column that holds the words.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any other parameter, as alpha=1e-3 or shrinkage=auto. May be repeated.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="S", help="Of all that is random.")]
Memory = Annotated[
    str, typer.Option("--memory", metavar="SIZE", help="About how much to use, as 512MB.")
]
Normalize = Annotated[
    bool, typer.Option("--normalize", help="Scale every new vector to length 1 (cosine indexes).")
]
Dtype = Annotated[
    str | None,
    typer.Option(
        "--dtype", metavar="TYPE", help="float16, bfloat16, float32 or float64; else as it is."
    ),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on where an interrupted run on a folder left off.")
]
DropColumns = Annotated[
    bool,
    typer.Option("--drop-columns", help="Columns that the new format cannot hold may be lost."),
]
