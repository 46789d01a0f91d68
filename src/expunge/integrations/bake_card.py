"""What a baked model says of itself: an entry of its configuration, and a model card."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from expunge._version import __version__
from expunge.erasure import Erasure

__all__ = ["model_card", "provenance"]


def provenance(way: str, erasures: Mapping[str, Erasure]) -> dict[str, Any]:
    """What was baked into a model, as JSON values.

    Parameters
    ----------
    way : {"stream", "modules"}
        One erasure for the whole stream, or erasures at the outputs of modules.
    erasures : mapping of str to Erasure
        By module.

    Returns
    -------
    dict

    Examples
    --------
    >>> import expunge as ex
    >>> from expunge.integrations.bake_card import provenance
    >>> e = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]], meta={"method": "LEACE", "n": 5})
    >>> provenance("modules", {"norm": e})["erasures"]
    [{'module': 'norm', 'rank': 1, 'method': 'LEACE', 'concept': None, 'rows': 5}]
    """
    return {
        "version": __version__,
        "way": way,
        "erasures": [
            {
                "module": name,
                "rank": erasure.rank,
                "method": erasure.meta.get("method"),
                "concept": erasure.meta.get("concept"),
                "rows": erasure.meta.get("n"),
            }
            for name, erasure in erasures.items()
        ],
    }


def model_card(baked: Mapping[str, Any], origin: str) -> str:
    """A model card in Markdown.

    Parameters
    ----------
    baked : mapping
        What `provenance` gives.
    origin : str
        Name of the model it was made from.

    Returns
    -------
    str
    """
    where = "its residual stream" if baked["way"] == "stream" else "the outputs of some modules"
    lines = [
        "---",
        "tags:",
        "- concept-erasure",
        "---",
        "",
        f"# {origin}, with a concept erased",
        "",
        f"Made by expunge {baked['version']}: an affine erasure at {where} is part of the weights.",
        "It runs wherever the original does; expunge is not needed.",
        "",
        "| module | rank | method | concept | rows of the fit |",
        "|---|---|---|---|---|",
    ]
    for row in baked["erasures"]:
        concept = row["concept"] if isinstance(row["concept"], Mapping) else {}
        labels = ", ".join(map(str, concept.get("labels") or [])) or "not recorded"
        lines.append(
            f"| {row['module']} | {row['rank']} | {row['method'] or 'not recorded'} | {labels} | "
            f"{row['rows'] or 'not recorded'} |"
        )
    lines += [
        "",
        "What was proven holds for linear predictors of these states on the rows of the fit. It "
        "does not hold for predictors that are not linear, nor after further training.",
        "",
    ]
    return "\n".join(lines)
