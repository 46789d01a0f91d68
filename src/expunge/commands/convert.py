"""`expunge convert`: the same vectors in another format or type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from expunge.addresses import where_of
from expunge.commands.options import (
    DropColumns,
    Dtype,
    Memory,
    Normalize,
    Resume,
    VectorNames,
    Vectors,
)
from expunge.commands.output import JsonFile, check_folder, check_target, show_text, write_json

__all__ = ["EXAMPLES", "convert"]

EXAMPLES = """\b
Examples:
  expunge convert GoogleNews.bin.gz news.parquet
  expunge convert glove.6B.300d.txt glove.vec          word2vec, text
  expunge convert emb.parquet emb.npy --drop-columns   vectors alone
  expunge convert emb.npy half.npy --dtype float16
"""

Target = Annotated[
    Path,  # or an Address
    typer.Argument(
        metavar="OUT",
        parser=where_of,
        help="The new file; its ending says its format.",
        show_default=False,
    ),
]


def convert(
    vectors: Vectors,
    out: Target,
    vector_names: VectorNames = None,
    dtype: Dtype = None,
    normalize: Normalize = False,
    drop_columns: DropColumns = False,
    resume: Resume = False,
    memory: Memory = "1GB",
    json_file: JsonFile = None,
) -> None:
    """Write a file of vectors in another format or type, with its other columns."""
    from expunge.commands.labelled_table import names_of
    from expunge.commands.row_bar import row_bar
    from expunge.files import convert as write_anew
    from expunge.files import open_file

    check_target(json_file, streams=True)
    check_folder(out)
    file = open_file(vectors, names_of(vector_names))
    with row_bar("converting") as tell:
        path = write_anew(
            file,
            out,
            dtype=dtype,
            normalize=normalize,
            drop=drop_columns,
            resume=resume,
            memory=memory,
            progress=tell,
        )
    result = {"file": str(vectors), "out": str(path), "n_rows": file.n, "n_features": file.d}
    write_json(json_file, "convert", result)
    show_text(f"{file.n:,} vectors of width {file.d}: {path}")
