"""Data with a concept planted in it, shared by all tests."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Planted:
    """Rows with a concept in them: X (n x d), y as a user passes it, Z its columns (n x m)."""

    X: np.ndarray
    y: np.ndarray
    Z: np.ndarray


def plant(kind: str, *, n: int = 600, d: int = 8, gap: float = 1.5, seed: int = 0) -> Planted:
    """Correlated Gaussian rows whose mean moves with the concept."""
    rng = np.random.default_rng(seed)
    if kind == "binary":
        y = rng.random(n) < 0.35
        Z = y[:, None].astype(float)
        y = y.astype(int)
    elif kind == "classes":
        y = rng.choice(4, size=n, p=[0.4, 0.3, 0.2, 0.1])
        Z = np.eye(4)[y]
        y = np.array(["ant", "bee", "cat", "dog"])[y]
    elif kind == "labels":
        y = (rng.random((n, 3)) < [0.5, 0.3, 0.2]).astype(int)
        Z = y.astype(float)
    elif kind == "number":
        y = rng.gamma(2.0, size=n)
        Z = y[:, None]
    elif kind == "vector":
        y = Z = rng.normal(size=(n, 2))
    else:
        raise ValueError(kind)
    mix = rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d)
    X = rng.normal(size=(n, d)) @ mix + gap * Z @ rng.normal(size=(Z.shape[1], d)) + 0.7
    return Planted(X, y, Z)


KINDS = ("binary", "classes", "labels", "number", "vector")
