"""`expunge fit`: find what to erase in a file of vectors, and save it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expunge.commands.engines import Engine, Scheduler
from expunge.commands.options import (
    Concepts,
    GroupColumn,
    Memory,
    Missing,
    Pair,
    Seed,
    Settings,
    Task,
    TypeOfConcept,
    Unlabelled,
    VectorNames,
    Vectors,
    Weights,
    WordColumn,
    WordFiles,
)
from expunge.commands.output import (
    JsonFile,
    check_target,
    check_targets,
    console,
    printable,
    write_json,
)
from expunge.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from expunge.addresses import Where
    from expunge.commands.labelled_table import LabelledTable
    from expunge.erasers.base import BaseEraser
    from expunge.maps import Map

__all__ = ["EXAMPLES", "fit", "render"]

EXAMPLES = """\b
Examples:
  expunge fit people.parquet --concept gender -o gender.safetensors
  expunge fit people.parquet -c gender -c country --method leace -o both.safetensors
  expunge fit emb.npy --concept labels.csv:gender --weights w.npy -o gender.safetensors
  expunge fit people.csv --vectors 'e*' -c age --concept-type continuous -o age.safetensors
  expunge fit people.parquet -c gender --task job --method splince -o gender.safetensors
  expunge fit glove.txt --pair he,she -o gender.safetensors
  expunge fit vectors.bin --words male.txt,female.txt --method inlp --rank 8 -o g.safetensors
  expunge fit labelled.parquet -c gender --unlabelled all.parquet -o gender.safetensors
  expunge fit people.parquet -c gender --missing unlabelled --groups person -o g.safetensors
  expunge fit shards/ -c gender --engine dask --scheduler tcp://host:8786 -o g.safetensors
  expunge fit s3://store/people -c gender --engine dask --scheduler local -o g.safetensors
  expunge fit people.parquet -c gender --set scale=std --set alpha=1e-3 -o gender.safetensors
"""


def _methods() -> list[str]:
    from expunge.commands.method_settings import method_names

    return method_names()


Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="FILE",
        help="Where to save the erasure (.safetensors).",
        show_default=False,
    ),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="rlace, leace, splince, sal, mean-projection, inlp, rayleigh-eraser, pair-pca, "
        "oracle-leace, quadratic-leace or fold.",
        autocompletion=_methods,
    ),
]
Rank = Annotated[
    str | None,
    typer.Option("--rank", "-r", metavar="K", help="Directions to erase; auto: as many as needed."),
]
Strength = Annotated[
    float | None,
    typer.Option("--strength", metavar="S", help="From 0 (nothing) to 1 (all of it, the default)."),
]
HoldOut = Annotated[
    float,
    typer.Option(
        "--holdout",
        metavar="SHARE",
        help="Share of the rows to leave out, for an audit on rows that were not fitted; "
        "'expunge audit' finds them again.",
    ),
]


def fit(
    vectors: Vectors,
    out: Out,
    concept: Concepts = None,
    method: Method = "rlace",
    rank: Rank = None,
    strength: Strength = None,
    concept_type: TypeOfConcept = "auto",
    task: Task = None,
    weights: Weights = None,
    vector_names: VectorNames = None,
    missing: Missing = "error",
    unlabelled: Unlabelled = None,
    groups: GroupColumn = None,
    pair: Pair = None,
    words: WordFiles = None,
    word_column: WordColumn = "word",
    holdout: HoldOut = 0.0,
    settings: Settings = None,
    seed: Seed = 0,
    memory: Memory = "1GB",
    engine: Engine = "files",
    scheduler: Scheduler = None,
    json_file: JsonFile = None,
) -> None:
    """Find what to erase in a file of vectors, save it, and print the certificate."""
    from expunge.commands.engines import engine_of
    from expunge.commands.erasure_files import check_erasure_name, map_of_fit, with_meta
    from expunge.commands.guard import say
    from expunge.commands.info import describe
    from expunge.commands.labelled_table import Asked, names_of, open_table, pool_of_table
    from expunge.commands.method_settings import make_eraser, parse_settings
    from expunge.commands.row_bar import row_bar
    from expunge.files import open_file
    from expunge.likeness import first_rows

    check_erasure_name(out)
    check_targets(out, inputs=[vectors])
    check_target(json_file, streams=True)
    eraser = make_eraser(
        method,
        parse_settings(settings or []),
        rank=rank,
        strength=strength,
        concept_type=concept_type,
        seed=seed,
    )
    asked = Asked(
        concept or (),
        vector_names,
        memory,
        task=task,
        weights=weights,
        pair=pair,
        words=words,
        word_column=word_column,
        missing=missing,
        groups=groups,
        pools=True,
    )
    _check_labels(eraser, asked.concepts or pair or words, task)
    with engine_of(engine, scheduler) as rows_of, row_bar(f"fitting {name_of(eraser)}") as tell:
        asked = replace(asked, rows_of=rows_of)
        table, left = _without_held_out(open_table(vectors, asked, tell), holdout, seed, memory)
        for note in table.notes:
            say(note)
        more: dict[str, Any] = {} if table.groups is None else {"groups": table.groups}
        if (pool := pool_of_table(table, unlabelled, asked)) is not None:
            more["unlabelled"] = pool
        given = {"concept": table.concept, "sample_weight": table.weights, **more}
        eraser.fit(table.rows, table.task, **given)
    found = map_of_fit(eraser)
    if found.columns is None and table.chosen is not None:  # of some rows only
        found = with_meta(found, columns=table.chosen.to_meta())
    if left is not None:
        found = with_meta(found, held_out=left)
    if pair or words:  # a few words are labelled, and all words are to be cleaned
        every = open_file(vectors, table.chosen or names_of(vector_names))
        found = with_meta(found, rows=first_rows(every))
    found.save(out)
    certificate = eraser.certificate_
    result = {
        "file": str(vectors),
        "out": str(out),
        "held_out": left,
        "notes": list(table.notes),
        "pool": found.meta.get("pool"),
        "certificate": None if certificate is None else certificate.to_dict(),
        **describe(found),
    }
    write_json(json_file, "fit", result)
    render(eraser, found, table, out, console(), left, vector_names)


def name_of(eraser: BaseEraser) -> str:
    """What the method is called."""
    return type(eraser).__name__


def render(
    eraser: BaseEraser,
    found: Map,
    table: LabelledTable,
    out: Path,
    screen: Console,
    held_out: dict[str, Any] | None = None,
    vector_names: list[str] | None = None,
) -> None:
    """Print what was fitted, the certificate, and what to do next.

    Parameters
    ----------
    eraser : fitted eraser
    found : Erasure or ConditionalErasure
    table : LabelledTable
    out : Path
        Where it was saved.
    screen : Console
    held_out : dict, optional
        Which rows were left out.
    vector_names : list of str, optional
        What the user called the vectors.
    """
    from expunge.commands.info import vectors_said
    from expunge.commands.wording import to_type

    n, d = table.rows.n_samples, found.n_features

    def name(path: Where | str) -> str:
        return printable(str(path), screen.encoding)

    def typed(argument: Where | str) -> str:
        return name(to_type(argument))

    def say(text: str, style: str = "") -> None:
        screen.print(text, style=style or None, soft_wrap=True)

    say(
        f"{type(eraser).__name__} erases {found.rank} of {d} dimensions, found on {n:,} rows of "
        f"{name(table.path)}" + (f" ({held_out['rows']:,} others left out)" if held_out else "")
    )
    if found.columns is not None and not found.columns.lists:
        say(f"Vectors: {printable(vectors_said(found.columns.names), screen.encoding)}")
    if eraser.pool_ is not None:
        say(str(eraser.pool_))
    elif pool := found.meta.get("pool"):
        say(f"{pool['n_pool']:,} rows without labels were folded by their predicted class")
    certificate = eraser.certificate_
    if certificate is not None:
        say("Certificate (on the rows of the fit)", "bold")
        text = printable(str(certificate).replace("\n", "\0"), screen.encoding)
        for line in text.replace("\\x00", "\n").split("\n"):
            screen.print(line, style="green" if certificate.erased else "red")
    say(f"Saved to {name(out)}")
    clean = table.path.with_name(f"clean-{table.path.name}")
    told = " --concept COLUMN" if getattr(found, "needs_concept", False) else ""
    if vector_names and found.columns is None:
        told += f" --vectors {typed(','.join(vector_names))}"
    say(f"Next: expunge apply {typed(out)} {typed(table.path)}{told} -o {typed(clean)}", "bold")


def _check_labels(eraser: BaseEraser, concept: Any, task: str | None) -> None:
    name, needed = type(eraser).__name__, eraser.__sklearn_tags__().target_tags.required
    if needed and not concept:
        raise InputError(
            f"{name} has to know what to erase",
            "no --concept",
            "Write --concept COLUMN, or for word vectors --pair he,she",
        )
    if task is not None and "task_covariance_kept" not in eraser.guarantees:
        raise InputError(
            f"{name} does not look at a task", f"--task {task}", "Take --method splince"
        )


def _without_held_out(
    table: LabelledTable, share: float, seed: int, memory: str
) -> tuple[LabelledTable, dict[str, Any] | None]:
    import numpy as np

    from expunge.commands.labelled_table import held_out_rows
    from expunge.files.budget import check_memory

    n = table.rows.n_samples
    left = held_out_rows(n, share, seed)
    if not left.any():
        return table, None
    kept = table.take(np.flatnonzero(~left), check_memory(memory))
    return kept, {"share": share, "seed": seed, "rows": int(left.sum()), "of": n}
