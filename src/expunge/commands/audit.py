"""`expunge audit`: what a saved erasure leaves of a concept, measured on a table with labels."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expunge.addresses import Where, where_of
from expunge.commands.engines import Engine, Scheduler
from expunge.commands.options import (
    Concepts,
    ErasureFile,
    IdColumn,
    Memory,
    Missing,
    Pair,
    Seed,
    Task,
    TypeOfConcept,
    VectorNames,
    Vectors,
    WordColumn,
    WordFiles,
)
from expunge.commands.output import (
    JsonFile,
    check_page_name,
    check_target,
    check_targets,
    console,
    show_text,
    write_json,
)
from expunge.errors import InputError

if TYPE_CHECKING:
    from expunge.audit import Audit
    from expunge.commands.labelled_table import Asked, LabelledTable

__all__ = ["EXAMPLES", "audit"]

NEARLY_ALL = 0.95  # of the rows that should be those of the fit
FOUND = 1  # exit code, if asked for

EXAMPLES = """\b
Examples:
  expunge audit gender.safetensors fresh.parquet --concept gender --report report.html
  expunge audit gender.safetensors test.npy --concept test_labels.csv:gender
  expunge audit gender.safetensors test.parquet --train train.parquet -c gender --task job
  expunge audit gender.safetensors glove.txt --pair he,she --report report.html
  expunge audit gender.safetensors fresh.parquet -c gender --fail-if-found   for scripts
  expunge audit gender.safetensors s3://store/fresh -c gender --engine dask

\b
The exit code is 0 when the audit ran, whatever it found; with --fail-if-found it is 1
when linear probes find the concept on fresh rows beyond what sampling error explains.
"""

Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write the audit as a page, e.g. report.html."),
]
Train = Annotated[
    Path | None,  # or an Address
    typer.Option(
        "--train",
        metavar="FILE",
        parser=where_of,
        show_default=False,
        help="The rows of the fit, if you have them.",
    ),
]
TrainConcepts = Annotated[
    list[str] | None,
    typer.Option(
        "--train-concept",
        metavar="WHAT",
        help="The labels of --train, if --concept is a file of labels. May be repeated.",
    ),
]
Fresh = Annotated[
    bool,
    typer.Option("--fresh", help="Trust that no row of VECTORS was in the fit, whatever repeats."),
]
Probes = Annotated[
    str,
    typer.Option(
        "--probes",
        metavar="KIND",
        help="default, linear, nonlinear, or thorough: the hardest too, in minutes.",
    ),
]
FrontierFile = Annotated[
    Path | None,
    typer.Option(
        "--frontier",
        metavar="FILE",
        help="What 'expunge frontier --json FILE' wrote, to be drawn in the report.",
    ),
]
FailIfFound = Annotated[
    bool, typer.Option("--fail-if-found", help="Exit with 1 if linear probes find the concept.")
]


def audit(
    erasure: ErasureFile,
    vectors: Vectors,
    concept: Concepts = None,
    report: Report = None,
    train: Train = None,
    train_concept: TrainConcepts = None,
    task: Task = None,
    ids: IdColumn = None,
    fresh: Fresh = False,
    probes: Probes = "default",
    frontier: FrontierFile = None,
    concept_type: TypeOfConcept = "auto",
    vector_names: VectorNames = None,
    missing: Missing = "error",
    pair: Pair = None,
    words: WordFiles = None,
    word_column: WordColumn = "word",
    fail_if_found: FailIfFound = False,
    seed: Seed = 0,
    memory: Memory = "1GB",
    engine: Engine = "files",
    scheduler: Scheduler = None,
    json_file: JsonFile = None,
) -> None:
    """Measure what a saved erasure leaves of a concept, on a table with labels.

    VECTORS are vectors as they were before the erasure, best of rows that were not in the fit.
    """
    import expunge as ex
    from expunge.commands.engines import engine_of
    from expunge.commands.erasure_files import check_order, load_erasure
    from expunge.commands.guard import say
    from expunge.commands.labelled_table import Asked, open_table
    from expunge.commands.row_bar import row_bar
    from expunge.commands.wording import as_options

    check_targets(report, inputs=[erasure, vectors, train, frontier])
    check_page_name(report)
    check_target(json_file, streams=True)
    if report is not None:
        _check_report()
    if not (concept or pair or words):
        raise InputError(
            "An audit has to know the concept of the rows",
            "no --concept",
            "Write --concept COLUMN, or for word vectors --pair he,she",
        )
    check_order(erasure, vectors)
    found, traced = load_erasure(erasure), _read_frontier(frontier)
    asked = Asked(
        concept or (),
        vector_names,
        memory,
        known=found.columns,
        task=task,
        ids=ids,
        pair=pair,
        words=words,
        word_column=word_column,
        missing=missing,
    )
    with engine_of(engine, scheduler) as rows_of:
        asked = replace(asked, rows_of=rows_of)
        with row_bar("reading") as tell:
            tested = open_table(vectors, asked, tell)
            fitted = _opened_train(train, train_concept, asked)
        if fitted is None:
            fitted, tested = _parted(found.meta, tested, memory)
        for table in (fitted, tested):
            for note in () if table is None else table.notes:
                say(note)
        done = ex.audit(
            found,
            None if fitted is None else fitted.rows,
            None if fitted is None else fitted.concept,
            tested.rows,
            tested.concept,
            task=_both(fitted, tested, "task"),
            ids=_both(fitted, tested, "ids"),
            words=_both(fitted, tested, "words"),
            fresh=fresh,
            probes=probes,
            frontier=traced,
            concept_type=concept_type,  # type: ignore[arg-type]  # checked by the function
            random_state=seed,
            verbose=console(stderr=True).is_terminal,
        )
    if report is not None:
        done.to_html(report)
    named = {"erasure_file": str(erasure), "file": str(vectors)}
    write_json(json_file, "audit", {**named, **done.to_dict()})
    show_text(as_options(str(done)))
    if report is not None:
        show_text(f"\nThe page with pictures: open {report} in a browser")
    if fail_if_found and _is_found(done):
        raise typer.Exit(FOUND)


def _read_frontier(path: Path | None) -> Any:
    if path is None:
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(
            "--frontier takes a file of numbers",
            f"{path}: {error}",
            "Write one with expunge frontier --json FILE",
        ) from error


def _is_found(done: Audit) -> bool:
    """Whether linear probes find more than sampling error of the fit can be an excuse for.

    Where their limits do not tell, it may be one; where nothing is known of the fit, there is none.
    """
    explained = done.verdict.explained
    excused = explained is None and done.residue is not None
    return done.verdict.linear == "found" and not explained and not excused


def _opened_train(
    train: Where | None, train_concept: list[str] | None, asked: Asked
) -> LabelledTable | None:
    from expunge.commands.labelled_table import open_table

    if train is None:
        if train_concept:
            raise InputError(
                "--train-concept belongs to --train", "no --train", "Write --train FILE too"
            )
        return None
    if train_concept:
        asked = replace(asked, concepts=train_concept, concept_option="--train-concept")
    return open_table(train, asked)


def _parted(
    meta: dict[str, Any], table: LabelledTable, memory: str
) -> tuple[LabelledTable | None, LabelledTable]:
    """Rows of the fit and rows that it left out, if the fingerprint says this is its table."""
    import numpy as np

    from expunge.audit.fresh import share_of_fit
    from expunge.commands.labelled_table import held_out_rows
    from expunge.files.budget import check_memory

    left: Any = meta.get("held_out")
    try:
        same = left["of"] == table.rows.n_samples
        out = held_out_rows(table.rows.n_samples, left["share"], left["seed"])
    except (TypeError, KeyError, ValueError):
        return None, table
    if not same or out.all() or not out.any():
        return None, table
    budget = check_memory(memory)
    fitted = replace(table.take(np.flatnonzero(~out), budget), notes=())
    if (share_of_fit(fitted.rows, meta) or 0.0) < NEARLY_ALL:
        return None, table
    tested = table.take(np.flatnonzero(out), budget)
    note = f"the fit left out {out.sum():,} of {len(out):,} such rows: these are audited on"
    return fitted, replace(tested, notes=(*tested.notes, note))


def _both(fitted: LabelledTable | None, tested: LabelledTable, name: str) -> Any:
    own = getattr(tested, name)
    if own is None or fitted is None:
        return own
    return getattr(fitted, name), own


def _check_report() -> None:
    """Ask for what the page needs before the work is done."""
    from expunge.optional import require

    for package in ("jinja2", "plotly.offline"):
        require(package, "report")
