"""`expunge rank-path`: what the best erasure of every rank leaves and costs."""

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
    TypeOfConcept,
    VectorNames,
    Vectors,
    Weights,
    WordColumn,
    WordFiles,
)
from expunge.commands.output import JsonFile, check_target, console, show_text, write_json
from expunge.errors import InputError

__all__ = ["EXAMPLES", "parse_ranks", "rank_path"]

EXAMPLES = """\b
Examples:
  expunge rank-path people.parquet --concept profession --ranks 1-10
  expunge rank-path people.parquet -c profession --ranks 1,2,5,auto --holdout 0.3
  expunge rank-path glove.txt --pair he,she --ranks 1-4 --set loss=hinge
"""
MORE = ("loss", "fit_intercept", "alpha", "tol", "leak")
DEFAULT = 10

Ranks = Annotated[
    str | None,
    typer.Option(
        "--ranks", "-r", metavar="LIST", help="As 1-10 or 1,2,5,auto; from 1 to 10 by default."
    ),
]
HoldOut = Annotated[
    float,
    typer.Option(
        "--holdout", metavar="SHARE", help="Share of the rows to hold out and to probe on."
    ),
]


def rank_path(
    vectors: Vectors,
    concept: Concepts = None,
    ranks: Ranks = None,
    holdout: HoldOut = 0.0,
    weights: Weights = None,
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
    """Show loss, accuracy and damage against the number of erased directions.

    --set takes loss, fit_intercept, alpha, tol and leak.
    """
    import numpy as np

    import expunge as ex
    from expunge.commands.labelled_table import Asked, held_out_rows, table_to_erase
    from expunge.commands.method_settings import check_settings, parse_settings
    from expunge.commands.wording import as_options
    from expunge.files.budget import check_memory

    check_target(json_file, streams=True)
    more = parse_settings(settings or [])
    check_settings(more, MORE, "rank-path")
    wanted = None if ranks is None else parse_ranks(ranks)
    asked = Asked(
        concept or (),
        vector_names,
        memory,
        weights=weights,
        pair=pair,
        words=words,
        word_column=word_column,
        missing=missing,
    )
    table = table_to_erase(vectors, asked, "rank-path")
    if wanted is None:
        wanted = list(range(1, min(DEFAULT, table.rows.n_features - 1) + 1))
    left, held = held_out_rows(table.rows.n_samples, holdout, seed), None
    if left.any():
        budget = check_memory(memory)
        held = table.take(np.flatnonzero(left), budget)
        table = table.take(np.flatnonzero(~left), budget)
    result = ex.rank_path(
        table.rows,
        table.concept,
        ranks=wanted,  # type: ignore[arg-type]  # checked by the function
        X_test=None if held is None else held.rows,
        y_test=None if held is None else held.concept,
        concept_type=concept_type,  # type: ignore[arg-type]
        sample_weight=table.weights,
        random_state=seed,
        verbose=console(stderr=True).is_terminal,
        **more,
    )
    write_json(json_file, "rank-path", {"file": str(vectors), **result.to_dict()})
    show_text(as_options(str(result)))


def parse_ranks(text: str) -> list[int | str]:
    """Ranks from ranges and numbers with commas between.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of int and "auto"

    Examples
    --------
    >>> from expunge.commands.rank_path import parse_ranks
    >>> parse_ranks("1-3,8,auto")
    [1, 2, 3, 8, 'auto']
    """
    from expunge.commands.method_settings import parse_rank

    found: list[int | str] = []
    for part in text.split(","):
        first, sign, last = part.strip().partition("-")
        if sign and first and last:
            low, high = parse_rank(first), parse_rank(last)
            if isinstance(low, str) or isinstance(high, str) or low > high:
                raise InputError("--ranks takes ranges as 1-10", repr(part), "Write 1-10, say")
            found += range(low, high + 1)
        else:
            found.append(parse_rank(part))
    return found
