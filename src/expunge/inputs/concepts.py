"""Concepts: labels, indicators or numbers become a checked and encoded `Concept`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from expunge.concept import Concept, Kind, Label, column_label, concept_of
from expunge.errors import InputError, NumbersAsClasses
from expunge.inputs.columns import by_name, count_of
from expunge.inputs.list_labels import refuse_lists
from expunge.inputs.matrices import (
    as_numpy,
    as_plain_array,
    check_finite,
    frame_or_series,
    read_array,
)
from expunge.inputs.missing_words import caution_of_missing_words
from expunge.inputs.several import (
    check_types,
    join_concepts,
    match_labels,
    split_concepts,
    split_frame,
    type_of,
)
from expunge.rows.base import Rows

__all__ = [
    "ConceptKind",
    "ConceptType",
    "check_classes",
    "check_concept",
    "check_known",
    "kind_of",
    "plain_labels",
]

ConceptKind = Literal["auto", "classes", "labels", "continuous"]
ConceptType = ConceptKind | Mapping[str, ConceptKind]  # of one concept, or of several by name

EXACT = 2.0**53  # floats beyond this are all whole
MANY = 20  # classes from which whole numbers may be amounts
COUNTED = 1 << 16  # a range of whole numbers in which counting beats sorting

OF_TARGET_TYPE: dict[str, str] = {
    "binary": "classes",
    "multiclass": "classes",
    "multilabel-indicator": "labels",
    "continuous": "continuous",
    "continuous-multioutput": "continuous",
}


def check_concept(
    y: Any,
    rows: Rows | int,
    *,
    concept_type: ConceptType = "auto",
    name: str = "y",
    owner: str = "This eraser",
    whole: bool = True,
) -> Concept:
    """What is to be erased, checked and encoded.

    Parameters
    ----------
    y : array, series, frame or list of shape (n,) or (n, m); a dict or list of such
        Several concepts become one with the columns of all; each column of a frame is one, unless
        all are floats or all their values 0 and 1. For rows with columns beside them,
        text names a column.
    rows : Rows or int
        What it has to match, or the number of them.
    concept_type : {"auto", "classes", "labels", "continuous"}, or dict of concepts to such
        "auto" follows scikit-learn's `type_of_target`: whole numbers are classes, also when they
        are stored as floats; a warning says so where those have more than 20 different values.
    name, owner : str
        What to call the concept and its user in messages.
    whole : bool
        Whether these are all rows; a chunk of a stream may hold a single class.

    Returns
    -------
    Concept

    Examples
    --------
    >>> from expunge.inputs import check_concept
    >>> c = check_concept(["f", "m", "m", "f"], 4)
    >>> c.kind, c.labels, c.values
    ('classes', ('f', 'm'), array([0, 1, 1, 0]))
    """
    called = _name_of(y)
    n_samples, y = count_of(rows), by_name(y, rows, name)
    if y is None:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None",
            "no concept",
            "Pass the labels of the concept as y, or as concept=",
        )
    parts = split_concepts(y, n_samples) or split_frame(y, concept_type, name)
    check_types(concept_type, [called] if parts is None else list(parts))
    if type(y).__name__ == "PartedColumn" and len(y) == n_samples:
        parted = import_module("expunge.inputs.parted_labels").parted_concept
        found: Concept = parted(
            y, rows, concept_type=type_of(concept_type, called), name=name, owner=owner, whole=whole
        )
        return found
    if parts:
        return join_concepts(
            {
                part: check_concept(
                    column,
                    n_samples,
                    concept_type=type_of(concept_type, part),
                    name=f"{name}[{part!r}]",
                    owner=owner,
                    whole=whole,
                )
                for part, column in parts.items()
            }
        )
    said: ConceptKind = type_of(concept_type, called)
    values = _as_labels(y, name)
    if values.shape[0] != n_samples:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples} rows, "
            f"{name} has {values.shape[0]}",
            f"{name} of shape {values.shape}",
            f"Pass one entry of {name} per row of X",
        )
    _check_labels_finite(values, name)
    kind = kind_of(values, said, name)
    if kind == "classes":
        return _classes(values, name, whole, said)
    return _columns(values, kind, _column_names(y), name, whole)


def check_known(y: Any, rows: Rows | int, *, kind: Kind, labels: tuple[Label, ...]) -> Concept:
    """The concept of new rows, over the labels of a fit.

    Parameters
    ----------
    y, rows
        As in `check_concept`.
    kind : {"classes", "labels", "continuous"}
    labels : tuple
        Known from the fit.

    Returns
    -------
    Concept
    """
    n_samples, y = count_of(rows), by_name(y, rows, "concept")
    joined = any(_is_class(label) for label in labels) and kind != "classes"
    parts = split_concepts(y, n_samples) or (joined and split_frame(y, "classes", "concept"))
    parts = parts or {"": y}
    columns = {concept_of(label) for label in labels if not _is_class(label)}

    def own_kind(part: str) -> ConceptType:
        return kind if len(parts) == 1 or column_label(part) in columns else "classes"

    concept = join_concepts(
        {
            part: check_concept(
                column,
                n_samples,
                concept_type=own_kind(part),
                name="concept",
                owner="Erasure that knows the concept",
                whole=False,
            )
            for part, column in parts.items()
        }
    )
    return match_labels(concept, kind, labels)


def _name_of(y: Any) -> str | None:
    """What a single concept is called: the name of its column, or of a series."""
    if isinstance(y, list | tuple) and len(y) == 1:
        y = y[0]
    own = y if isinstance(y, str) else getattr(y, "name", None)
    return own if isinstance(own, str) else None


def _is_class(label: Label) -> bool:
    """Whether a joined name is that of a class, not of a column."""
    return str(label).startswith(f"{concept_of(label)}=")


def _as_labels(y: Any, name: str) -> NDArray[Any]:
    if scipy.sparse.issparse(y):
        raise InputError(
            f"Sparse {name} is not supported",
            f"{type(y).__name__} of shape {y.shape}",
            f"Pass {name}.toarray()",
        )
    y = as_numpy(y, name=name)
    values = as_plain_array(y, name) if isinstance(y, np.ndarray) else _labels_from_frame(y, name)
    refuse_lists(values, name)
    if values.dtype.kind not in "biufUO":
        what = "Complex data" if values.dtype.kind == "c" else "Labels of this type are"
        raise InputError(
            f"{what} not supported in {name}",
            f"type {values.dtype}",
            "Pass strings, whole numbers, booleans or real numbers",
        )
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim not in (1, 2) or values.size == 0:
        raise InputError(
            f"{name} should be a 1d array of labels, or have one column per label or component",
            f"shape {values.shape}",
            "Pass one label per row",
        )
    return values


def _labels_from_frame(y: Any, name: str) -> NDArray[Any]:
    native = frame_or_series(y, name)
    if native is not None:
        return np.asarray(native.to_numpy())
    remedy = "Pass one label per row"
    values = read_array(y, name, "labels", remedy)
    # NumPy turns ["a", nan] and ["a", 1] into text; as objects they can still be refused
    return read_array(y, name, "labels", remedy, object) if values.dtype.kind == "U" else values


def _column_names(y: Any) -> list[str] | None:
    names = getattr(y, "columns", None)
    return None if names is None else [str(column) for column in names]


def _check_labels_finite(values: NDArray[Any], name: str) -> None:
    if values.dtype.kind == "f":
        check_finite(values, name)
    if values.dtype.kind != "O":
        return
    missing = np.array([_is_missing(v) for v in values.ravel()]).reshape(values.shape)
    if missing.any():
        raise InputError(
            f"Input {name} contains NaN: labels are missing",
            f"{int(missing.sum())} missing, the first in row {int(np.argwhere(missing)[0][0])}",
            "Drop those rows, or give them a class of their own",
        )


def _is_missing(value: Any) -> bool:
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA has no truth value
        return True


def kind_of(values: NDArray[Any], concept_type: ConceptKind, name: str) -> str:
    """Which kind of concept these labels are."""
    if concept_type != "auto":
        return concept_type
    if values.dtype.kind == "O":
        values = plain_labels(values, name)
    if values.dtype.kind == "f" and values.size and np.abs(values).max() > EXACT:
        return "continuous"  # no float of that size has a fraction, so being whole says nothing
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # scikit-learn's guess at "many classes"
        found = type_of_target(values)
    if found not in OF_TARGET_TYPE:
        raise InputError(
            f"Unknown label type: {name} is neither classes, labels nor numbers",
            f"{found} target of type {values.dtype} and shape {values.shape}",
            "Pass one class per row, a 0/1 matrix, or say concept_type='continuous'",
        )
    return OF_TARGET_TYPE[found]


def plain_labels(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Object arrays of one kind of thing, as an array of that kind."""
    if values.dtype.kind != "O":
        return values
    if all(isinstance(v, str) for v in values.ravel()):
        return values.astype(str)
    try:
        plain = np.array(values.tolist())
    except ValueError:
        plain = values
    if plain.dtype.kind in "biuf":
        return plain
    kinds = sorted({type(v).__name__ for v in values.ravel()})
    raise InputError(
        f"Unknown label type: {name} mixes types that cannot be compared",
        ", ".join(kinds),
        "Pass labels of one type, e.g. all strings",
    )


def _classes(values: NDArray[Any], name: str, whole: bool, concept_type: ConceptKind) -> Concept:
    if values.ndim != 1:
        raise InputError(
            f"{name} should be a 1d array: one class per row",
            f"shape {values.shape}",
            "Pass a single column",
        )
    values = plain_labels(values, name)
    found, codes = _distinct(values)
    labels: tuple[Label, ...] = tuple(found.tolist())
    check_classes(labels, len(values), name, whole, values.dtype, concept_type)
    if whole:  # those of a partition are counted together
        caution_of_missing_words(labels, codes, name, stacklevel=5)
    return Concept("classes", codes, labels)


def _distinct(values: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct labels in order, and which of them each row has; near whole numbers are counted."""
    if values.dtype.kind in "bi" and values.size:
        low, high = int(values.min()), int(values.max())
        if high - low < COUNTED:
            place = values.astype(np.int64) - low
            there = np.bincount(place) > 0
            found = (np.flatnonzero(there) + low).astype(values.dtype)
            return found, (np.cumsum(there) - 1)[place]
    found, codes = np.unique(values, return_inverse=True)
    return found, codes.reshape(-1)


def check_classes(
    labels: tuple[Label, ...],
    n_samples: int,
    name: str,
    whole: bool,
    dtype: np.dtype[Any],
    concept_type: ConceptKind,
) -> None:
    """Refuse one class alone, and a class for each row; warn where classes look like amounts."""
    if whole and len(labels) == 1:
        raise InputError(
            "The concept has one class only (1 class): there is nothing to erase",
            f"{name} with the single class {labels[0]!r}",
            "Pass rows of at least two classes",
        )
    if whole and len(labels) >= n_samples:
        raise InputError(
            f"{name} has as many classes as rows: every row is its own class",
            f"{len(labels)} classes in {n_samples} rows",
            "Pass labels that repeat; if they are numbers, say concept_type='continuous'",
        )
    many = len(labels) > MANY and (whole or dtype.kind == "f")  # a chunk may lack codes
    if concept_type == "auto" and many and _like_amounts(labels, dtype):
        warnings.warn(
            NumbersAsClasses(
                f"{name} holds whole numbers with {len(labels)} different values; "
                "they are taken for classes. Say concept_type='continuous' if they are "
                "amounts, or concept_type='classes' if they are not"
            ),
            stacklevel=6,
        )


def _like_amounts(labels: tuple[Label, ...], dtype: np.dtype[Any]) -> bool:
    """Whether whole numbers may be amounts: floats, or integers that do not count from 0 or 1."""
    if dtype.kind not in "iu":
        return dtype.kind == "f"
    low, high = min(map(int, labels)), max(map(int, labels))
    return low not in (0, 1) or high - low >= 2 * len(labels)


def _columns(
    values: NDArray[Any], kind: str, names: list[str] | None, name: str, whole: bool
) -> Concept:
    """Multi-label or continuous columns as float64."""
    try:
        Z = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} is not numeric although concept_type={kind!r}",
            f"type {values.dtype}",
            "Pass numbers, or concept_type='classes'",
        ) from error
    Z = Z[:, None] if Z.ndim == 1 else Z
    if kind == "labels" and not np.isin(Z, (0.0, 1.0)).all():
        raise InputError(
            f"{name} is not a 0/1 indicator matrix although concept_type='labels'",
            f"values from {Z.min():g} to {Z.max():g}",
            "Pass 0 and 1 only, or concept_type='continuous'",
        )
    if whole and np.all(Z[0] == Z):
        raise InputError(
            "The concept never varies (1 class): there is nothing to erase",
            f"{name} of shape {values.shape}, constant",
            "Pass a concept that differs between rows",
        )
    labels = tuple(names) if names and len(names) == Z.shape[1] else tuple(range(Z.shape[1]))
    return Concept("labels" if kind == "labels" else "continuous", Z, labels)
