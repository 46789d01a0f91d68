"""AnnData: several matrices at once, so that none of them can be taken for the rows."""

from __future__ import annotations

from typing import Any

from expunge.errors import InputError

__all__ = ["check"]


def check(X: Any, name: str) -> None:
    """Refuse it, and say what to call.

    Parameters
    ----------
    X : anndata.AnnData
    name : str
        What to call it in messages.

    Raises
    ------
    InputError
    """
    raise InputError(
        f"{name} is an AnnData, which holds several matrices",
        f"an AnnData of shape {X.shape} with obsm {sorted(map(str, X.obsm))}",
        "Call expunge.integrations.anndata.erase_obs(adata, key), or pass one of the matrices",
    )
