"""Several ranks at once: "auto", or a collection of whole numbers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from expunge.errors import InputError
from expunge.inputs.parameters import check_rank

__all__ = ["check_ranks"]


def check_ranks(ranks: Any, n_features: int) -> list[int | Literal["auto"]]:
    """`ranks` in ascending order, each once, "auto" first.

    Parameters
    ----------
    ranks : "auto", or iterable of int and "auto"
    n_features : int

    Returns
    -------
    list of int and "auto"

    Examples
    --------
    >>> from expunge.inputs.ranks import check_ranks
    >>> check_ranks([5, 1, 5, "auto"], 10), check_ranks("auto", 10)
    (['auto', 1, 5], ['auto'])
    """
    if isinstance(ranks, str) and ranks == "auto":
        return ["auto"]
    if isinstance(ranks, str | bytes) or not isinstance(ranks, Iterable):
        raise _refused(f"ranks={ranks!r}")
    try:
        given = iter(ranks)
    except TypeError as error:  # an array without dimensions
        raise _refused(f"ranks={ranks!r}") from error
    found = {check_rank(rank, n_features, "ranks") for rank in given}  # stops at the first bad one
    if not found:
        raise _refused("an empty collection")
    return sorted(found, key=lambda rank: 0 if rank == "auto" else rank)


def _refused(received: str) -> InputError:
    return InputError(
        "ranks must be 'auto' or a collection of whole numbers",
        received,
        "Pass e.g. ranks=[1, 5], ranks=range(1, 10) or ranks='auto'",
    )
