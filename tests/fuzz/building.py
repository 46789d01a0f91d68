"""From a plan to arrays: what a user would pass, and the same as plain numbers for the checks."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from plans import Plan, Rows, Target, Weights

__all__ = ["Case", "build", "columns_of"]

Array = np.ndarray


@dataclass(frozen=True)
class Case:
    """What is passed (X, y, weights, task), and the numbers behind it (values, Z, w).

    Z holds one 0/1 column per class, the labels, or the numbers; `kind` says which. Classes without
    weight have no column.
    """

    plan: Plan
    X: Any
    y: Any
    weights: Array | None
    task: Array | None
    values: Array
    Z: Array
    kind: str

    @property
    def w(self) -> Array:
        """Weights that sum to one."""
        w = np.ones(len(self.values)) if self.weights is None else self.weights
        return w / w.sum()


def build(plan: Plan) -> Case:
    """The arrays of a plan."""
    rng = np.random.default_rng(plan.seed)
    n = plan.rows.n
    y, numbers = _target(plan.target, n, rng)
    with np.errstate(over="ignore", under="ignore"):
        values = _values(plan.rows, numbers, rng)
    task = None
    if plan.task:
        lean = numbers @ rng.normal(size=numbers.shape[1]) + rng.normal(size=n)
        task = (lean > np.median(lean)).astype(int)
    weights = _weights(plan.weights, numbers, n, rng)
    values = _typed(values, plan.rows.dtype)
    X = _at_home(values, plan.rows.home)
    kind, Z = columns_of(y, None if plan.weights.defect else weights)
    if plan.rows.defect:
        X = _spoilt_rows(values.astype(np.float64), plan.rows.defect)
    if plan.target.defect:
        y = _spoilt_target(plan.target.defect, n)
    return Case(plan, X, y, weights, task, np.asarray(values, dtype=np.float64), Z, kind)


# -- the concept -----------------------------------------------------------------------------------


def _target(target: Target, n: int, rng: np.random.Generator) -> tuple[Any, Array]:
    """The concept as passed, and numbers of unit size by which it moves the rows."""
    kind, count = target.kind, target.count
    if kind == "sets":
        codes = np.arange(n) // count
        return codes, rng.normal(size=(n, 1))
    if kind in ("binary", "classes"):
        codes = _codes(2 if kind == "binary" else count, target.rare, n, rng)
        names = np.array(["ant", "bee", "cat", "dog", "eel"])
        return (names[codes] if target.text else codes), np.eye(5)[codes]
    if kind == "labels":
        Y = (rng.random((n, count)) < (0.05 if target.rare else 0.4)).astype(int)
        Y[: min(n, count), : min(n, count)] = np.eye(min(n, count), dtype=int)
        Y = _frozen_or_twin(Y, target)
        return Y, Y.astype(float)
    if kind == "several":
        codes = _codes(2, target.rare, n, rng)
        if target.units == 1.0 and target.origin == 0.0:
            other = _codes(3, False, n, rng)
            return {"group": codes, "place": other}, np.hstack([np.eye(2)[codes], np.eye(3)[other]])
        t = rng.normal(size=n)
        when = target.units * (t + target.origin)
        return {"group": codes, "when": when}, np.column_stack([np.eye(2)[codes], t])
    T = rng.normal(size=(n, 1 if kind == "number" else count))
    T = _frozen_or_twin(T, target)
    Y = target.units * (T + target.origin)
    return (Y[:, 0] if kind == "number" else Y), T


def _codes(count: int, rare: bool, n: int, rng: np.random.Generator) -> Array:
    codes = rng.integers(0, count, n)
    if rare:
        codes[:] = 0
    codes[: min(count, n)] = np.arange(count)[: min(count, n)]
    return codes


def _frozen_or_twin(Y: Array, target: Target) -> Array:
    if target.twin:
        Y[:, -1] = Y[:, 0]
    if target.frozen and Y.shape[1] > 1:
        Y[:, 1] = 1
    return Y


def columns_of(y: Any, weights: Array | None) -> tuple[str, Array]:
    """Kind and columns of a concept as the library defines them, by other means."""
    if isinstance(y, dict):
        parts = [columns_of(column, None) for column in y.values()]
        numbers = any(kind == "continuous" for kind, _ in parts)
        return "continuous" if numbers else "labels", np.hstack([Z for _, Z in parts])
    y = np.asarray(y)
    if y.ndim == 2:
        return ("labels" if y.dtype.kind == "i" else "continuous"), y.astype(np.float64)
    # whole numbers are classes, but beyond 2**53 every float is whole
    if y.dtype.kind == "f" and not (np.all(y == np.round(y)) and np.abs(y).max() <= 2**53):
        return "continuous", y[:, None].astype(np.float64)
    seen = y if weights is None or not (weights > 0).any() else y[weights > 0]
    return "classes", (y[:, None] == np.unique(seen)).astype(np.float64)


def _spoilt_target(defect: str, n: int) -> Any:
    if defect == "none":
        return None
    if defect == "short":
        return np.arange(n + 1) % 2
    if defect == "nan":
        return np.append(np.arange(n - 1) + 0.5, np.nan)
    return np.zeros(n, dtype=int)


# -- the rows --------------------------------------------------------------------------------------


def _values(rows: Rows, numbers: Array, rng: np.random.Generator) -> Array:
    n, d = rows.n, rows.d
    X = rng.normal(size=(n, d))
    if rows.integers:
        X = rng.integers(-2, 3, size=(n, d)).astype(float)
    X += rows.gap * numbers @ rng.normal(size=(numbers.shape[1], d))
    if rows.integers:
        X = np.round(X)
    if rows.tails:
        X = np.sinh(rows.tails * X)
    if rows.empty:
        X = np.where(rng.random((n, d)) < rows.empty, 0.0, X)
    X += rows.offset
    if rows.copies:
        X = X[np.arange(n) % rows.copies]
    if rows.twins:
        X[:, -1] = X[:, 0]
    if rows.nearly:
        X[:, -1] = X[:, 0] + rows.nearly * rng.normal(size=n)
    X[:, d - rows.constants :] = 7.1
    units = 10 ** rng.uniform(-rows.mixed, rows.mixed, d)
    if rows.mixed and (rows.twins or rows.nearly):
        units[-1] = units[0]
    X = X * units * rows.scale
    X[:, 0] *= rows.one_scale
    if rows.outlier:
        X[0, 0] = rows.outlier
    return X


def _typed(X: Array, dtype: str) -> Array:
    X = np.nan_to_num(X, posinf=1e308, neginf=-1e308)
    if dtype == "bool":
        return np.median(X, axis=0) < X
    if dtype.startswith("int"):
        info = np.iinfo(dtype)
        return np.clip(np.round(10 * X), info.min * 0.9, info.max * 0.9).astype(dtype)
    info = np.finfo(dtype)
    return np.clip(X, 0.5 * info.min, 0.5 * info.max).astype(dtype)


def _at_home(X: Array, home: str) -> Any:
    if home == "fortran":
        return np.asfortranarray(X)
    if home == "strided":
        return np.repeat(X, 2, axis=0)[::2]
    if home == "list":
        return X.tolist() if X.dtype != np.float16 else X
    if home == "frame":
        import pandas as pd

        return pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    if home == "tensor":
        import torch

        return torch.from_numpy(np.ascontiguousarray(X))
    return X


def _spoilt_rows(X: Array, defect: str) -> Any:
    if defect in ("nan", "inf"):
        X[-1, -1] = float(defect)
    elif defect == "empty":
        X = X[:, :0]
    elif defect == "flat":
        X = X[:, 0]
    elif defect == "complex":
        X = X + 1j
    elif defect == "text":
        return np.full(X.shape, "a")
    return X


# -- weights ---------------------------------------------------------------------------------------


def _weights(weights: Weights, numbers: Array, n: int, rng: np.random.Generator) -> Array | None:
    if weights == Weights():
        return None
    w = rng.choice([1.0, weights.ratio], n)
    w[rng.random(n) < weights.zeros] = 0.0
    if weights.lost_class:
        w[numbers[:, -1] >= numbers[:, -1].max()] = 0.0
        w[numbers.argmax(axis=1) == numbers.argmax(axis=1).max()] = 0.0
    if not w.any():
        w[:2] = 1.0
    if weights.defect == "negative":
        w[0] = -1.0
    elif weights.defect == "nan":
        w[0] = np.nan
    elif weights.defect == "short":
        w = w[:-1]
    elif weights.defect == "zero":
        w[:] = 0.0
    return w


def as_array(X: Any) -> Array:
    """What came out of a transform, as float64."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(X, torch.Tensor):
        X = X.double().numpy()
    return np.asarray(X, dtype=np.float64)
