"""Counts of answers by class and group, and the differences between groups they show."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import UndefinedMetricWarning

from expunge.concept import Concept, Label
from expunge.errors import InputError
from expunge.inputs import check_concept, label_codes

__all__ = [
    "Counts",
    "class_columns",
    "count_table",
    "demographic_parity_difference",
    "equalised_odds_difference",
    "in_codes_of",
    "warn_undefined",
]

Counts = NDArray[np.int64]


def demographic_parity_difference(y_pred: Any, group: Any) -> float:
    """Largest difference between two groups in how often a class is predicted.

    Parameters
    ----------
    y_pred : array of shape (n,)
        Predicted classes; with more than two, the class where groups differ most counts.
    group : array of shape (n,)

    Returns
    -------
    float
        From 0 to 1.

    Examples
    --------
    >>> from expunge.metrics.parity import demographic_parity_difference
    >>> demographic_parity_difference([1, 1, 0, 0, 0, 1, 0, 0], ["f"] * 4 + ["m"] * 4)
    0.25
    """
    predicted, groups = class_columns(y_pred=y_pred, group=group)
    table = count_table(predicted, groups)
    return float(np.ptp(table / table.sum(axis=0), axis=1).max())


def equalised_odds_difference(y_true: Any, y_pred: Any, group: Any) -> float:
    """Largest difference between two groups in a true or a false positive rate.

    Every class is taken against the rest. With two classes the false positive rate of one is one
    minus the true positive rate of the other, so this is the usual definition.

    Parameters
    ----------
    y_true, y_pred : arrays of shape (n,)
        True and predicted classes.
    group : array of shape (n,)
        The group of each row, two or more values.

    Returns
    -------
    float
        From 0 to 1, over groups with rows to count; an `UndefinedMetricWarning` names the rest.

    Examples
    --------
    >>> from expunge.metrics.parity import equalised_odds_difference
    >>> y_true, y_pred = [1, 1, 0, 0, 1, 1, 0, 0], [1, 1, 0, 1, 1, 0, 0, 0]
    >>> equalised_odds_difference(y_true, y_pred, ["f"] * 4 + ["m"] * 4)
    0.5
    """
    true, predicted, groups = class_columns(y_true=y_true, y_pred=y_pred, group=group)
    claims = in_codes_of(true, predicted)
    members = count_table(true, groups)  # (c, g)
    hits = count_table(true, groups, claims == true.values)
    claimed = np.array(
        [np.bincount(groups.values[claims == k], minlength=groups.width) for k in range(true.width)]
    )
    others = members.sum(axis=0) - members
    differences = []
    for size, found in ((members, hits), (others, claimed - hits)):
        for n, k in zip(size, found, strict=True):
            if (n > 0).sum() > 1:
                differences.append(np.ptp(k[n > 0] / n[n > 0]))
    empty: list[tuple[Label, Label]] = []
    for size, name in ((members, "{}"), (others, "not {}")):
        for i, j in np.argwhere(size == 0).tolist():
            empty.append((name.format(true.labels[i]), groups.labels[j]))
    warn_undefined(tuple(empty))
    return float(max(differences, default=np.nan))


def class_columns(**columns: Any) -> tuple[Concept, ...]:
    """Columns of classes, checked and encoded; all of the length of the first.

    Parameters
    ----------
    **columns : arrays of shape (n,)
        By name; one called `group` must have at least two values.

    Returns
    -------
    tuple of Concept
    """
    n, first = _length(next(iter(columns.values()))), next(iter(columns))
    found = []
    for name, values in columns.items():
        if (size := _length(values)) != n:
            raise InputError(
                f"{first} has {n} rows and {name} has {size}",
                f"{name} with {size} entries",
                "Pass one entry per row in each",
            )
        column = check_concept(values, n, name=name, owner="This metric", whole=False)
        if column.kind != "classes":
            raise InputError(
                f"{name} must hold one class per row",
                f"{column.kind} values",
                "Pass classes, not scores or indicators",
            )
        if name == "group" and column.width < 2:
            raise InputError(
                "There is one group only: rates cannot be compared",
                f"the group {column.labels[0]!r} in all {n} rows",
                "Pass rows of at least two groups",
            )
        found.append(column)
    return tuple(found)


def in_codes_of(true: Concept, predicted: Concept) -> NDArray[np.intp]:
    """Predicted classes (n,) in the codes of the true ones; -1 for a class that is not there."""
    if isinstance(true.labels[0], str) != isinstance(predicted.labels[0], str):
        raise InputError(
            "y_true and y_pred hold labels of different types",
            f"{true.labels[0]!r} and {predicted.labels[0]!r}",
            "Pass the predictions in the labels of y_true",
        )
    return np.asarray(label_codes(predicted.labels, true.labels)[predicted.values])


def count_table(rows: Concept, columns: Concept, chosen: Any = slice(None)) -> Counts:
    """How many of the chosen rows are in each pair of classes (c x g)."""
    shape = rows.width, columns.width
    flat = (rows.values * columns.width + columns.values)[chosen]
    return np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).astype(np.int64)


def warn_undefined(undefined: tuple[tuple[Label, Label], ...]) -> None:
    """Name the rates that have no rows."""
    if undefined:
        cells = ", ".join(f"class {label!r} in group {group!r}" for label, group in undefined[:10])
        more = f" and {len(undefined) - 10} more" if len(undefined) > 10 else ""
        count = "1 rate has" if len(undefined) == 1 else f"{len(undefined)} rates have"
        warnings.warn(
            f"{count} no rows and cannot be counted: {cells}{more}",
            UndefinedMetricWarning,
            stacklevel=3,
        )


def _length(values: Any) -> int:
    try:
        shape = getattr(values, "shape", None)
        if shape:
            return int(shape[0])
        return len(values) if shape is None and hasattr(values, "__len__") else 0
    except Exception:  # of an object that has no length, whatever it raises
        return 0
