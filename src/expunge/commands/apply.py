"""`expunge apply`: clean a file of vectors by a saved erasure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from expunge.addresses import where_of
from expunge.commands.engines import Engine, Scheduler
from expunge.commands.options import (
    Concepts,
    DropColumns,
    Dtype,
    ErasureFile,
    Memory,
    Normalize,
    Resume,
    VectorNames,
    Vectors,
)
from expunge.commands.output import JsonFile, check_folder, check_target, show_text, write_json
from expunge.errors import InputError

__all__ = ["EXAMPLES", "apply"]

EXAMPLES = """\b
Examples:
  expunge apply gender.safetensors people.parquet -o clean.parquet
  expunge apply gender.safetensors shards/ -o clean/            a folder of files
  expunge apply gender.safetensors shards/ -o clean/ --resume   after an interruption
  expunge apply gender.safetensors emb.npy -o clean.npy --normalize --dtype float16
  expunge apply gender.safetensors glove.txt -o clean.bin       word2vec, binary
  expunge apply gender.safetensors people.parquet --in-place
  expunge apply gender.safetensors shards/ -o clean/ --engine dask --scheduler local
  expunge apply gender.safetensors s3://store/people -o s3://store/clean --engine dask

\b
Clean everything that is compared: queries by the same erasure as documents.
The input is not changed, unless --in-place says so.
"""
REMINDER = (
    "Vectors that are compared must all be cleaned: queries by the same erasure as documents. "
    "For a cosine index add --normalize."
)

Out = Annotated[
    Path | None,  # or an Address
    typer.Option(
        "--out",
        "-o",
        metavar="CLEAN",
        parser=where_of,
        show_default=False,
        help="The new file; its ending says its format. Of a folder: a new folder. May be an "
        "address.",
    ),
]
InPlace = Annotated[
    bool, typer.Option("--in-place", help="Replace VECTORS, once all is written beside it.")
]


def apply(
    erasure: ErasureFile,
    vectors: Vectors,
    out: Out = None,
    concept: Concepts = None,
    vector_names: VectorNames = None,
    normalize: Normalize = False,
    dtype: Dtype = None,
    drop_columns: DropColumns = False,
    resume: Resume = False,
    in_place: InPlace = False,
    memory: Memory = "1GB",
    engine: Engine = "files",
    scheduler: Scheduler = None,
    json_file: JsonFile = None,
) -> None:
    """Clean a file of vectors by a saved erasure; all other columns stay as they are.

    --concept is for erasures that have to be told it (oracle-leace, quadratic-leace).
    """
    from expunge.commands.engines import check_shared, engine_of
    from expunge.commands.erasure_files import check_order, load_erasure
    from expunge.commands.guard import say
    from expunge.commands.labelled_table import names_of, open_known
    from expunge.commands.row_bar import row_bar
    from expunge.files import rewrite
    from expunge.likeness import unlikeness
    from expunge.rows.chunked import ChunkedRows

    check_target(json_file, streams=True)
    if out is None and not in_place:
        raise InputError(
            "There is nothing to write to", "no -o", "Write -o CLEAN, or --in-place to replace it"
        )
    check_folder(out)
    check_order(erasure, vectors)
    found = load_erasure(erasure)
    file = open_known(vectors, names_of(vector_names), found.columns)
    _check_width(found, file, erasure)
    needed = bool(getattr(found, "needs_concept", False))
    strange = unlikeness(found, file)
    if strange:
        say(
            f"warning: these vectors do not look like those that {erasure} was fitted on: "
            f"{strange}. Is it the same model, and are both normalised or neither?"
        )
    terms: dict[str, Any] = {
        "dtype": dtype,
        "normalize": normalize,
        "drop": drop_columns,
        "resume": resume,
        "memory": memory,
    }
    with engine_of(engine, scheduler) as rows_of, row_bar("cleaning") as tell:
        if rows_of is not None:
            check_shared(out, scheduler)
            rows = rows_of(file)
            labels = _labels(concept, rows, vectors.name, needed=needed)
            known = _known(labels, rows, found)
            path = rows.write(found, out, known, in_place=in_place, **terms)
        else:
            labels = _labels(concept, ChunkedRows(file, memory), vectors.name, needed=needed)
            path = rewrite(
                file, found, out, concept=labels, in_place=in_place, progress=tell, **terms
            )
    result = {
        "erasure": str(erasure),
        "file": str(vectors),
        "out": str(path),
        "n_rows": file.n,
        "n_features": file.d,
        "rank": found.rank,
        "looks_different": strange or None,
    }
    write_json(json_file, "apply", result)
    show_text(f"{file.n:,} vectors cleaned ({found.rank} of {file.d} dimensions): {path}")
    show_text(REMINDER)


def _check_width(found: Any, file: Any, erasure: Path) -> None:
    if file.d != found.n_features:
        raise InputError(
            f"{erasure} is for vectors of width {found.n_features}",
            f"width {file.d} in {file.path}",
            "Take the vectors it was fitted for, or name their column by --vectors",
        )


def _known(labels: Any, rows: Any, found: Any) -> Any:
    """The concept over the labels of the erasure, for one that has to be told."""
    from expunge.inputs import check_known

    if labels is None:
        return None
    return check_known(labels, rows, kind=found.kind, labels=found.labels)


def _labels(concept: list[str] | None, rows: Any, where: str, *, needed: bool) -> Any:
    """The concept of each row, for an erasure that has to be told."""
    from expunge.commands.label_files import read_labels

    if not needed:
        if concept:
            raise InputError(
                "This erasure does not have to be told the concept",
                f"--concept {concept[0]}",
                "Leave it out",
            )
        return None
    if not concept:
        raise InputError(
            "This erasure has to be told the concept of every row",
            "no --concept",
            "Write --concept COLUMN, or a file of labels",
        )
    named = dict(read_labels(what, rows, where, "--concept") for what in concept)
    return named if len(named) > 1 else next(iter(named.values()))
