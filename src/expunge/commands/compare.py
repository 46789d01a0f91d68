"""`expunge compare`: methods side by side on a table with labels."""

from __future__ import annotations

from typing import Annotated

import typer

from expunge.commands.options import (
    Concepts,
    Memory,
    Missing,
    Pair,
    Seed,
    Settings,
    Task,
    TypeOfConcept,
    VectorNames,
    Vectors,
    WordColumn,
    WordFiles,
)
from expunge.commands.output import JsonFile, check_target, console, show_text, write_json

__all__ = ["EXAMPLES", "compare"]

EXAMPLES = """\b
Examples:
  expunge compare people.parquet --concept gender
  expunge compare people.parquet -c gender --method rlace --method leace --probes linear
  expunge compare people.parquet -c gender --task job --rank 1 --rank 5 --runs 5
  expunge compare glove.txt --pair he,she --method rlace,inlp --set test_size=0.5
"""
MORE = ("test_size", "confidence", "leak")

Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="A method; all that apply by default. May be repeated, or have commas.",
    ),
]
Ranks = Annotated[
    list[str] | None,
    typer.Option(
        "--rank", "-r", metavar="K", help="A number, or auto: the concept's own. May be repeated."
    ),
]
Runs = Annotated[int, typer.Option("--runs", metavar="N", help="Splits of the rows.")]
Probes = Annotated[
    str,
    typer.Option(
        "--probes",
        metavar="KIND",
        help="default, linear (faster), nonlinear, or thorough (the hardest too, far slower).",
    ),
]


def compare(
    vectors: Vectors,
    concept: Concepts = None,
    method: Methods = None,
    rank: Ranks = None,
    task: Task = None,
    runs: Runs = 3,
    probes: Probes = "default",
    concept_type: TypeOfConcept = "auto",
    vector_names: VectorNames = None,
    missing: Missing = "error",
    pair: Pair = None,
    words: WordFiles = None,
    word_column: WordColumn = "word",
    settings: Settings = None,
    seed: Seed = 0,
    memory: Memory = "1GB",
    json_file: JsonFile = None,
) -> None:
    """Fit methods on the same rows and probe each on rows that were held out.

    --set takes test_size, confidence and leak.
    """
    import expunge as ex
    from expunge.commands.labelled_table import Asked, table_to_erase
    from expunge.commands.method_settings import (
        check_settings,
        find_methods,
        parse_rank,
        parse_settings,
    )
    from expunge.commands.wording import as_options, renamed

    check_target(json_file, streams=True)
    more = parse_settings(settings or [])
    check_settings(more, MORE, "A comparison")
    methods = find_methods(method)
    ranks = [parse_rank(text) for part in rank or () for text in part.split(",")] or "auto"
    asked = Asked(
        concept or (),
        vector_names,
        memory,
        task=task,
        pair=pair,
        words=words,
        word_column=word_column,
        missing=missing,
    )
    table = table_to_erase(vectors, asked, "A comparison")
    with renamed("ranks", "rank"):
        result = ex.compare(
            table.rows,
            table.concept,
            methods,
            ranks,  # type: ignore[arg-type]  # checked by the function
            table.task,
            runs,
            probes=probes,
            concept_type=concept_type,  # type: ignore[arg-type]
            random_state=seed,
            verbose=console(stderr=True).is_terminal,
            **more,
        )
    write_json(json_file, "compare", {"file": str(vectors), **result.to_dict()})
    show_text(as_options(str(result)))
