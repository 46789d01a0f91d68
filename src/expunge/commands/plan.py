"""`expunge plan`: how many labels erasure that holds on new rows asks for."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from expunge.commands.options import (
    Concepts,
    GroupColumn,
    Memory,
    Missing,
    Seed,
    TypeOfConcept,
    VectorNames,
    Vectors,
)
from expunge.commands.output import JsonFile, check_target, show_text, write_json
from expunge.errors import InputError

__all__ = ["EXAMPLES", "plan"]

EXAMPLES = """\b
Examples:
  expunge plan pilot.parquet --concept gender --target 0.55
  expunge plan pilot.parquet -c gender --unlabelled 1000000
  expunge plan people.parquet -c gender --missing unlabelled --groups person
"""

Target = Annotated[
    float,
    typer.Option(
        "--target",
        metavar="SHARE",
        help="Balanced accuracy that a linear probe on new rows is to stay below.",
    ),
]
Pool = Annotated[
    str | None,
    typer.Option(
        "--unlabelled", metavar="FILE|N", help="A file of rows without labels, or how many."
    ),
]


def plan(
    vectors: Vectors,
    concept: Concepts = None,
    target: Target = 0.55,
    unlabelled: Pool = None,
    concept_type: TypeOfConcept = "auto",
    vector_names: VectorNames = None,
    missing: Missing = "error",
    groups: GroupColumn = None,
    seed: Seed = 0,
    memory: Memory = "1GB",
    json_file: JsonFile = None,
) -> None:
    """Say how many labels keep a linear probe on new rows below a target, from a pilot sample."""
    from expunge.commands.guard import say
    from expunge.commands.labelled_table import Asked, open_table, pool_of_table
    from expunge.planning import plan_labels

    check_target(json_file, streams=True)
    if not concept:
        raise InputError("A plan needs labels", "no --concept", "Write --concept COLUMN")
    asked = Asked(concept, vector_names, memory, missing=missing, groups=groups, pools=True)
    table = open_table(vectors, asked)
    for note in table.notes:
        say(note)
    pool: Any = None
    if unlabelled is not None and unlabelled.replace("_", "").isdecimal():
        pool = int(unlabelled) + (0 if table.unlabelled is None else table.unlabelled.n_samples)
    else:
        pool = pool_of_table(table, unlabelled, asked)
    found = plan_labels(
        table.rows,
        table.concept,
        target,
        unlabelled=pool,
        groups=table.groups,
        concept_type=concept_type,
        random_state=seed,
    )
    write_json(json_file, "plan", {"file": str(vectors), **found.to_dict()})
    show_text(str(found))
