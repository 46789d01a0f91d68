"""`expunge info`: what a saved erasure is and what made it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from expunge.commands.output import JsonFile, check_target, console, printable, write_json
from expunge.number_text import short

if TYPE_CHECKING:
    from rich.console import Console

    from expunge.maps import Map

__all__ = ["EXAMPLES", "describe", "info", "render", "vectors_said"]

EXAMPLES = """\b
Examples:
  expunge info gender.safetensors
  expunge info gender.safetensors --json /dev/stdout
"""

LABELS_SHOWN = 12
COLUMNS_SHOWN = 8
UNKNOWN = "not recorded"

File = Annotated[Path, typer.Argument(metavar="FILE", help="A saved erasure (.safetensors).")]


def info(file: File, json_file: JsonFile = None) -> None:
    """Show what a saved erasure is and what made it."""
    from expunge.commands.erasure_files import load_erasure

    check_target(json_file, streams=True)
    described = describe(load_erasure(file))
    write_json(json_file, "info", {"file": str(file), **described})
    render(described, console())


def describe(erasure: Map) -> dict[str, Any]:
    """What is known of an erasure, as plain values; None where nothing was recorded.

    Examples
    --------
    >>> from expunge import Erasure
    >>> from expunge.commands.info import describe
    >>> found = describe(Erasure([[1.0], [0.0]], [[1.0, 0.0]], meta={"method": "RLACE"}))
    >>> found["method"], found["rank"], found["orthogonal"], found["solver"]
    ('RLACE', 1, True, None)
    >>> found["needs_concept"]
    False
    """
    meta = erasure.meta
    concept, fingerprint = _mapping(meta.get("concept")), _mapping(meta.get("fingerprint"))
    return {
        "method": meta.get("method"),
        "solver": meta.get("solver"),
        "rank": erasure.rank,
        "n_features": erasure.n_features,
        "vectors": None if erasure.columns is None else list(erasure.columns.names),
        "orthogonal": getattr(erasure, "is_orthogonal", None),
        "projection": getattr(erasure, "projection", None),
        "needs_concept": bool(getattr(erasure, "needs_concept", False)),
        "concept": {"kind": concept.get("kind"), "labels": concept.get("labels")},
        "n_rows": meta.get("n"),
        "n_unlabelled": _mapping(meta.get("pool")).get("n_pool"),
        "held_out": dict(_mapping(meta.get("held_out"))) or None,
        "kept": dict(_mapping(meta.get("kept"))) or None,
        "fingerprint": fingerprint.get("digest"),
        "parameters": dict(_mapping(meta.get("parameters"))),
        "versions": dict(_mapping(meta.get("versions"))),
        "date": meta.get("date"),
        "steps": [_mapping(step).get("method") for step in _sequence(meta.get("steps"))],
    }


def vectors_said(columns: Sequence[Any] | None) -> str:
    """Which columns the vectors are, the first few by name; empty where nobody knows.

    Examples
    --------
    >>> from expunge.commands.info import vectors_said
    >>> vectors_said(["age", "hours"]), vectors_said(["embedding"])
    ('2 columns: age, hours', 'the column embedding')
    """
    names = list(map(str, columns or ()))
    if len(names) < 2:
        return f"the column {names[0]}" if names else ""
    more = f", and {len(names) - COLUMNS_SHOWN} more" if len(names) > COLUMNS_SHOWN else ""
    return f"{len(names):,} columns: {', '.join(names[:COLUMNS_SHOWN])}{more}"


def render(described: Mapping[str, Any], screen: Console) -> None:
    """Print what `describe` found, one thing a line."""
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in _lines(described):
        grid.add_row(name, Text(printable(value, screen.encoding)))
    screen.print(grid)


def _lines(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    concept = found["concept"]
    lines = [
        ("method", _said(found["method"])),
        ("solver", _said(found["solver"])),
        ("rank", f"{found['rank']} of {found['n_features']} features"),
        ("vectors", vectors_said(found["vectors"]) or UNKNOWN),
        ("projection", _projection(found)),
        ("concept", _concept(concept["kind"], concept["labels"])),
        ("rows fitted", _rows(found)),
        ("kept", _kept(found["kept"])),
        ("fingerprint", _said(found["fingerprint"])),
        ("parameters", _pairs(found["parameters"])),
        ("versions", _pairs(found["versions"])),
        ("date", _said(found["date"])),
    ]
    if found["steps"]:
        lines.insert(1, ("steps", " then ".join(map(_said, found["steps"]))))
    return lines


def _concept(kind: Any, labels: Any) -> str:
    names = [str(label) for label in _sequence(labels)]
    if kind is None or not names:
        return _said(kind)
    more = f", and {len(names) - LABELS_SHOWN} more" if len(names) > LABELS_SHOWN else ""
    return f"{_said(kind)}: {', '.join(names[:LABELS_SHOWN])}{more}"


def _projection(found: Mapping[str, Any]) -> str:
    if found["needs_concept"]:
        return "none: each row is moved by its own concept, which has to be told"
    if found["projection"] is not None:
        return str(found["projection"])
    return "orthogonal" if found["orthogonal"] else "oblique"


def _rows(found: Mapping[str, Any]) -> str:
    left = _mapping(found["held_out"]).get("rows")
    more = f" ({left:,} others of the table were left out)" if isinstance(left, int) else ""
    pool = found["n_unlabelled"]
    helped = f", and {pool:,} without labels" if isinstance(pool, int) else ""
    return _count(found["n_rows"]) + helped + more


def _kept(kept: Any) -> str:
    share = _mapping(kept).get("variance")
    if not isinstance(share, int | float):
        return UNKNOWN
    columns, total = (_said(_mapping(kept).get(key)) for key in ("columns", "of"))
    return f"{short(100 * share, 3)} % of the variance, {columns} of {total} columns"


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in values.items()) or UNKNOWN


def _count(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else _said(value)


def _said(value: Any) -> str:
    return UNKNOWN if value is None else str(value)


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _sequence(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
