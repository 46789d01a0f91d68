"""What a fit does with rows that have no label, and with rows that come in groups."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.erasers.statistics import Data, Statistics
from expunge.errors import InputError, PoolDiffers, PoolRepeats
from expunge.inputs import check_rows
from expunge.inputs.columns import by_name
from expunge.inputs.list_labels import refuse_lists
from expunge.inputs.matrices import as_numpy
from expunge.inputs.missing import has_label
from expunge.inputs.widths import check_width
from expunge.pooling.cross_fitting import cross_fit
from expunge.pooling.different_rows import NewRows, what_does_not_count
from expunge.pooling.membership import told_apart
from expunge.pooling.sharpened import design_effect, influence_of, sharpen
from expunge.rows.base import Rows
from expunge.rows.lazy_rows import JoinedRows, SelectedRows

__all__ = ["check_groups", "grouped", "pool_of", "pooled", "without_missing"]


def check_groups(groups: Any, rows: Rows) -> NDArray[np.intp] | None:
    """A number for the group of each row, or None.

    Parameters
    ----------
    groups : None, array of shape (n,), or the name of a column of the rows
    rows : Rows

    Returns
    -------
    int array of shape (n,), or None
    """
    if groups is None:
        return None
    values = np.asarray(as_numpy(by_name(groups, rows, "groups")))
    refuse_lists(values, "groups")
    if values.shape != (rows.n_samples,):
        raise InputError(
            "groups must have one entry per row",
            f"shape {values.shape} for {rows.n_samples} rows",
            "Pass the number or name of the group (person, document) of each row",
        )
    found = np.unique(values, return_inverse=True)[1].astype(np.intp)
    if found.max() == 0:
        raise InputError(
            "All rows are of one group: nothing is known of how groups differ",
            f"{rows.n_samples} rows of one group",
            "Pass rows of several groups, or no groups",
        )
    return found


def without_missing(X: Any, *columns: Any) -> tuple[Rows | Any, list[Any], Rows | None]:
    """Rows that have a label with what belongs to them, and the rows that have none.

    Parameters
    ----------
    X : array, frame, tensor or Rows
    *columns : anything
        The concept first; then what else has one entry per row, or is None.

    Returns
    -------
    rows : Rows or `X`
        `X` itself where no label is missing.
    columns : list
    pool : Rows or None
    """
    rows = check_rows(X, finite=False)
    there = has_label(columns[0], rows)
    if there.all():
        return X, list(columns), None
    if not there.any():
        raise InputError("No row has a label", f"{len(there)} rows", "Label some of them first")
    index = np.flatnonzero(there)
    kept = [_some_of(by_name(column, rows), index) for column in columns]
    return SelectedRows(rows, index), kept, SelectedRows(rows, np.flatnonzero(~there))


def _some_of(column: Any, index: NDArray[np.intp]) -> Any:
    if column is None or np.isscalar(column):
        return column
    if isinstance(column, dict):
        return {name: _some_of(part, index) for name, part in column.items()}
    return np.asarray(as_numpy(column))[index]


def pool_of(unlabelled: Any, missing: Rows | None, n_features: int, by: str) -> Rows | None:
    """The rows without labels, from either source."""
    pool = None if unlabelled is None else check_rows(unlabelled, name="unlabelled", least=1)
    if pool is not None:
        check_width(pool.n_features, n_features, by=by)
    if pool is None or missing is None:
        return missing if pool is None else pool
    return JoinedRows(pool, missing)


def pooled(seen: Statistics, data: Data, pool: Rows, *, second: bool) -> Statistics:
    """What a closed form needs, sharpened by rows without labels.

    Parameters
    ----------
    seen : Statistics
        Of the labelled rows.
    data : Data
    pool : Rows
    second : bool
        Whether the d x d matrix is wanted.

    Returns
    -------
    Statistics
        Those given, but for a record, where the pool is of no use.
    """
    rng, rows, groups = np.random.default_rng(0), data.rows, data.groups
    models = cross_fit(rows, data.concept, seen.moments, data.weights, groups, rng)
    influence = influence_of(rows, data.concept, models.own, seen.moments, data.weights, groups)
    new = NewRows(rows)
    found = sharpen(seen.moments, influence, models, pool, second=second, new=new)
    record, known = found.record, seen.seen
    if known is not None and found.seen is not None:
        known = known.merge(found.seen)
    if record.n_different is not None and (
        said := what_does_not_count(record.n_pool, record.n_different)
    ):
        warnings.warn(PoolRepeats(said), stacklevel=4)
    auc, sure = told_apart(rows, pool, rng)
    if sure:
        used = f"λ = {record.share:.2g}" if record.share else "they are not used"
        warnings.warn(
            PoolDiffers(
                "Rows with and without labels are not of one population: a linear classifier "
                f"tells them apart with an AUC of {auc:.2f}. What they teach may be biased "
                f"({used}). Draw the rows to be labelled at random, or weigh them"
            ),
            stacklevel=4,
        )
    return replace(
        seen,
        moments=found.moments,
        labelled=seen.moments,
        seen=known,
        pool=record,
    )


def grouped(seen: Statistics, data: Data, groups: NDArray[np.intp]) -> Statistics:
    """The same with what groups cost: by how much more the covariance with the concept varies."""
    own = seen.moments if seen.labelled is None else seen.labelled
    design = design_effect(data.rows, data.concept, own, data.weights, groups)
    return replace(seen, design=design)
