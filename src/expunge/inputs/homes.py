"""Which home rows have, by the type of what was passed; one line for each home."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from expunge.rows.base import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from expunge.erasure import Erasure

__all__ = ["HOMES", "Home", "home_of"]

# package and class -> a module with the functions of `Home`; imported when such a thing is passed
HOMES: dict[str, str] = {
    "torch.Tensor": "expunge.inputs.tensors",
    "dask.Array": "expunge.inputs.dask_collections",
    "dask.DataFrame": "expunge.inputs.dask_collections",
    "dask.Series": "expunge.inputs.dask_collections",
    "expunge.PartedColumn": "expunge.inputs.dask_collections",
    "datasets.Dataset": "expunge.inputs.hub_datasets",
    "datasets.IterableDataset": "expunge.inputs.hub_datasets",
    "datasets.DatasetDict": "expunge.inputs.hub_datasets",
    "anndata.AnnData": "expunge.inputs.annotated",
}


class Home(Protocol):
    """What the gate asks of a home. Arrays, frames and lists need none: they become arrays."""

    def check(self, X: Any, name: str) -> None:
        """Refuse what this home cannot hold."""

    def rows_of(self, X: Any) -> Rows:
        """A checked matrix as rows."""

    def array_of(self, X: Any) -> NDArray[Any]:
        """A copy, or a view, as a NumPy array."""

    def apply(self, erasure: Erasure, X: Any, out: Any) -> Any:
        """Erased vectors (..., d) of a checked X, where they live."""


def home_of(X: Any) -> Any:
    """The home of `X`, a module with the functions of `Home`, or None for what NumPy reads.

    Parameters
    ----------
    X : anything

    Returns
    -------
    Home or None

    Examples
    --------
    >>> from expunge.inputs.homes import home_of
    >>> home_of([[1.0]]) is None
    True
    """
    if isinstance(X, np.ndarray):
        return None
    for kind in type(X).__mro__:
        key = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        if key in HOMES:
            return import_module(HOMES[key])
    return None
