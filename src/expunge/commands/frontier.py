"""`expunge frontier`: what the strongest probe still reads against what erasers cost."""

from __future__ import annotations

from typing import Annotated

import typer

from expunge.commands.options import (
    Concepts,
    GroupColumn,
    Memory,
    Missing,
    Pair,
    Seed,
    Settings,
    TypeOfConcept,
    VectorNames,
    Vectors,
    WordColumn,
    WordFiles,
)
from expunge.commands.output import JsonFile, check_target, console, show_text, write_json

__all__ = ["EXAMPLES", "frontier"]

EXAMPLES = """\b
Examples:
  expunge frontier people.parquet --concept gender
  expunge frontier people.parquet -c gender --probes default     a sixth of the time
  expunge frontier people.parquet -c gender --method leace,inlp --json frontier.json
  expunge audit gender.safetensors fresh.parquet -c gender --frontier frontier.json
"""
MORE = ("fit_size", "confidence")

Methods = Annotated[
    list[str] | None,
    typer.Option(
        "--method",
        "-m",
        metavar="NAME",
        help="A method; several of growing cost by default. May be repeated, or have commas.",
    ),
]
Probes = Annotated[
    str,
    typer.Option("--probes", metavar="KIND", help="thorough, default (faster) or nonlinear."),
]


def frontier(
    vectors: Vectors,
    concept: Concepts = None,
    method: Methods = None,
    groups: GroupColumn = None,
    probes: Probes = "thorough",
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
    """Fit erasers of growing cost and say what the strongest probe still reads on new rows.

    --set takes fit_size and confidence.
    """
    import expunge as ex
    from expunge.commands.labelled_table import Asked, table_to_erase
    from expunge.commands.method_settings import check_settings, find_methods, parse_settings
    from expunge.commands.wording import as_options

    check_target(json_file, streams=True)
    more = parse_settings(settings or [])
    check_settings(more, MORE, "A frontier")
    erasers = find_methods(method)
    asked = Asked(
        concept or (),
        vector_names,
        memory,
        groups=groups,
        pair=pair,
        words=words,
        word_column=word_column,
        missing=missing,
    )
    table = table_to_erase(vectors, asked, "A frontier")
    result = ex.frontier(
        table.rows,
        table.concept,
        erasers,
        groups=table.groups,
        probes=probes,
        concept_type=concept_type,  # type: ignore[arg-type]  # checked by the function
        random_state=seed,
        verbose=console(stderr=True).is_terminal,
        **more,
    )
    write_json(json_file, "frontier", {"file": str(vectors), **result.to_dict()})
    show_text(as_options(str(result)))
