"""The only gate: what users pass becomes checked rows, a concept and weights, or an `InputError`.

Every message has three parts: what is wrong, what was received, what to do.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from expunge.concept import Concept, Label
from expunge.errors import InputError, NotNumeric
from expunge.linalg import Array
from expunge.parallel import BLOCK, blocks
from expunge.rows.dense import DenseRows

__all__ = [
    "ConceptType",
    "as_matrix",
    "check_choice",
    "check_concept",
    "check_rank",
    "check_rows",
    "check_weights",
]

ConceptType = Literal["auto", "classes", "labels", "continuous"]

OF_TARGET_TYPE: dict[str, str] = {
    "binary": "classes",
    "multiclass": "classes",
    "multilabel-indicator": "labels",
    "continuous": "continuous",
    "continuous-multioutput": "continuous",
}


def check_rows(X: Any, *, name: str = "X", least: int = 2) -> DenseRows:
    """A matrix of finite real numbers as rows.

    Parameters
    ----------
    X : array, memmap, frame or nested list of shape (n, d)
    name : str
        What to call it in messages.
    least : int
        Fewest rows accepted.

    Returns
    -------
    DenseRows

    Raises
    ------
    InputError

    Examples
    --------
    >>> from expunge.inputs import check_rows
    >>> check_rows([[1, 2], [3, 4]]).n_features
    2
    >>> check_rows([[1.0, float("nan")], [3.0, 4.0]])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: Input X contains NaN or infinity. Received 1 such value, ...
    """
    A = as_matrix(X, name=name)
    if A.ndim != 2:
        raise InputError(
            f"Expected 2D array, got {A.ndim}D array instead: {name} needs one row per vector",
            f"shape {A.shape}",
            "Reshape your data: array.reshape(-1, 1) for a single feature, "
            "array.reshape(1, -1) for a single sample",
        )
    n, d = A.shape
    if d == 0:
        raise InputError(
            f"Found array with 0 feature(s) (shape=({n}, 0)) while a minimum of 1 is required",
            f"{name} of shape {A.shape}",
            "Pass at least one column",
        )
    if n < least:
        raise InputError(
            f"Found array with {n} sample(s) (shape=({n}, {d})) while a minimum of {least} "
            "is required",
            f"{name} of shape {A.shape} (n_samples={n})",
            "Pass more rows",
        )
    _check_finite(A, name)
    return DenseRows(A)


def as_matrix(X: Any, *, name: str = "X") -> NDArray[Any]:
    """`X` as a real NumPy array, without a copy where it already is one."""
    if scipy.sparse.issparse(X):
        raise InputError(
            f"Sparse input {name} is not supported: an erased row is dense",
            f"{type(X).__name__} of shape {X.shape}",
            f"Pass {name}.toarray(), or reduce it first with TruncatedSVD",
        )
    A = X if isinstance(X, np.ndarray) else _from_frame(X, name)
    if A.dtype.kind == "c":
        raise InputError(
            f"Complex data not supported in {name}",
            f"type {A.dtype}",
            f"Pass {name}.real or its modulus",
        )
    if A.dtype.kind not in "fiub":
        A = _objects_to_float(A, name)
    return A


def _from_frame(X: Any, name: str) -> NDArray[Any]:
    """Frames through narwhals, anything else through NumPy."""
    import narwhals as nw

    native = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(native, nw.LazyFrame):
        raise InputError(
            f"{name} is a lazy frame, which has no rows yet",
            type(X).__name__,
            "Collect it first, e.g. X.collect()",
        )
    if isinstance(native, nw.DataFrame):
        odd = [c for c, t in native.schema.items() if not (t.is_numeric() or t == nw.Boolean)]
        odd = [c for c in odd if native.schema[c] != nw.Object]
        if odd:
            raise InputError(
                f"could not convert string to float: {name} has columns that are not numbers",
                f"{', '.join(f'{c!r} ({native.schema[c]})' for c in odd[:5])}",
                "Drop these columns or encode them as numbers",
            )
        return np.asarray(native.to_numpy())
    try:
        return np.asarray(X)
    except ValueError as error:
        raise InputError(
            f"{name} cannot be read as a matrix",
            f"{type(X).__name__} ({error})",
            "Pass rows of equal length",
        ) from error


def _objects_to_float(A: NDArray[Any], name: str) -> NDArray[Any]:
    """Numeric object arrays as float64."""
    try:
        if A.dtype.kind != "O":
            raise ValueError("its entries are text")
        return A.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        first = A.ravel()[0] if A.size else None
        raise NotNumeric(
            f"could not convert string to float: {name} is not numeric; every argument must be a "
            "string of digits or a number",
            f"type {A.dtype}, first entry {first!r} ({error})",
            "Pass numbers; encode text first",
        ) from error


def _check_finite(A: NDArray[Any], name: str) -> None:
    if A.dtype.kind != "f":
        return
    if A.dtype != np.float16 and A.flags.forc:
        flat = A.ravel(order="K")
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(
                np.vdot(flat, flat)
            ):  # one BLAS pass; squares of finite data may overflow
                return
    bad, first = 0, None
    for lo, hi in blocks(0, A.shape[0], 8 * BLOCK):
        wrong = ~np.isfinite(A[lo:hi])
        count = int(wrong.sum())
        if count and first is None:
            row, column = np.argwhere(wrong.reshape(hi - lo, -1))[0]
            first = (lo + int(row), int(column))
        bad += count
    if first is None:
        return
    where = f"row {first[0]}, column {first[1]}" if A.ndim > 1 else f"position {first[0]}"
    raise InputError(
        f"Input {name} contains NaN or infinity",
        f"{bad} such value{'s' if bad > 1 else ''}, the first in {where}",
        "Drop or impute those rows first",
    )


def check_concept(
    y: Any,
    n_samples: int,
    *,
    concept_type: ConceptType = "auto",
    name: str = "y",
    owner: str = "This eraser",
    whole: bool = True,
) -> Concept:
    """What is to be erased, checked and encoded.

    Parameters
    ----------
    y : array, series, frame or list of shape (n,) or (n, m)
    n_samples : int
        Rows it has to match.
    concept_type : {"auto", "classes", "labels", "continuous"}
        "auto" follows scikit-learn's `type_of_target`.
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
    if y is None:
        raise InputError(
            f"{owner} requires y to be passed, but the target y is None",
            "no concept",
            "Pass the labels of the concept as y, or as concept=",
        )
    check_choice(concept_type, ("auto", "classes", "labels", "continuous"), "concept_type")
    values = _as_labels(y, name)
    if values.shape[0] != n_samples:
        raise InputError(
            f"Found input variables with inconsistent numbers of samples: X has {n_samples} rows, "
            f"{name} has {values.shape[0]}",
            f"{name} of shape {values.shape}",
            f"Pass one entry of {name} per row of X",
        )
    _check_labels_finite(values, name)
    kind = _kind(values, concept_type, name)
    if kind == "classes":
        return _classes(values, name, whole)
    return _columns(values, kind, _column_names(y), name, whole)


def _as_labels(y: Any, name: str) -> NDArray[Any]:
    if scipy.sparse.issparse(y):
        raise InputError(
            f"Sparse {name} is not supported",
            f"{type(y).__name__} of shape {y.shape}",
            f"Pass {name}.toarray()",
        )
    values = y if isinstance(y, np.ndarray) else _labels_from_frame(y, name)
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
    import narwhals as nw

    native = nw.from_native(y, pass_through=True, allow_series=True)
    if isinstance(native, nw.Series | nw.DataFrame):
        return np.asarray(native.to_numpy())
    try:
        values = np.asarray(y)
        # NumPy turns ["a", nan] and ["a", 1] into text; as objects they can still be refused
        return np.asarray(y, dtype=object) if values.dtype.kind == "U" else values
    except ValueError as error:
        raise InputError(
            f"{name} cannot be read as labels",
            f"{type(y).__name__} ({error})",
            "Pass one label per row",
        ) from error


def _column_names(y: Any) -> list[str] | None:
    names = getattr(y, "columns", None)
    return None if names is None else [str(column) for column in names]


def _check_labels_finite(values: NDArray[Any], name: str) -> None:
    if values.dtype.kind == "f":
        _check_finite(values, name)
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


def _kind(values: NDArray[Any], concept_type: ConceptType, name: str) -> str:
    if concept_type != "auto":
        return concept_type
    if values.dtype.kind == "O":
        values = _plain(values, name)
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


def _plain(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Object arrays of one kind of thing, as an array of that kind."""
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


def _classes(values: NDArray[Any], name: str, whole: bool) -> Concept:
    if values.ndim != 1:
        raise InputError(
            f"{name} should be a 1d array: one class per row",
            f"shape {values.shape}",
            "Pass a single column",
        )
    if values.dtype.kind == "O":
        values = _plain(values, name)
    found, codes = np.unique(values, return_inverse=True)
    labels: tuple[Label, ...] = tuple(found.tolist())
    if whole and len(labels) == 1:
        raise InputError(
            "The concept has one class only (1 class): there is nothing to erase",
            f"{name} with the single class {labels[0]!r}",
            "Pass rows of at least two classes",
        )
    if whole and len(labels) >= len(values):
        raise InputError(
            f"{name} has as many classes as rows: every row is its own class",
            f"{len(labels)} classes in {len(values)} rows",
            "Pass labels that repeat; if they are numbers, say concept_type='continuous'",
        )
    return Concept("classes", codes.reshape(-1), labels)


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


def check_weights(sample_weight: Any, n_samples: int) -> Array | None:
    """Non-negative finite weights, one per row, or None.

    Parameters
    ----------
    sample_weight : None, number or array of shape (n,)
    n_samples : int

    Returns
    -------
    float64 array of shape (n,), or None
    """
    if sample_weight is None:
        return None
    if np.isscalar(sample_weight):  # the same weight for all is no weight, but it must be one
        check_weights([sample_weight], 1)
        return None
    w = np.asarray(as_matrix(sample_weight, name="sample_weight"), dtype=np.float64)
    if w.ndim != 1:
        raise InputError(
            "Sample weights must be 1D array or scalar",
            f"shape {w.shape}",
            "Pass one weight per row",
        )
    if w.shape[0] != n_samples:
        raise InputError(
            f"sample_weight.shape == {w.shape}, expected {(n_samples,)}",
            f"{w.shape[0]} weights for {n_samples} rows",
            "Pass one weight per row",
        )
    _check_finite(w, "sample_weight")
    if (w < 0).any() or not w.sum() > 0:
        raise InputError(
            "Sample weights must be non-negative and not all zero",
            f"a least weight of {w.min():g} and a sum of {w.sum():g}",
            "Give every row to be used a positive weight",
        )
    return w


def check_rank(rank: Any, n_features: int) -> int | Literal["auto"]:
    """`rank` as a whole number from 1 to d - 1, or "auto".

    Parameters
    ----------
    rank : int or "auto"
    n_features : int

    Returns
    -------
    int or "auto"
    """
    if isinstance(rank, str) and rank == "auto":
        return "auto"
    whole = isinstance(rank, int | np.integer) and not isinstance(rank, bool | np.bool_)
    if not whole or not 1 <= rank < n_features:
        limit = f"from 1 to {n_features - 1}" if n_features > 1 else "(none fits a single feature)"
        raise InputError(
            f"rank must be a whole number {limit}, below the number of features, {n_features}",
            f"rank={rank!r}",
            "Pass such a rank, or rank='auto' for the concept's own",
        )
    return int(rank)


def check_choice(value: Any, choices: tuple[str, ...], name: str) -> None:
    """Refuse a parameter that is not one of its choices."""
    if not isinstance(value, str) or value not in choices:
        raise InputError(
            f"Unknown {name}", repr(value), f"Pass one of {', '.join(map(repr, choices))}"
        )
