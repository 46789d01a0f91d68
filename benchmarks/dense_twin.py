"""The paper's descent-ascent as written: a dense eraser, full eigendecompositions, bisection."""

from __future__ import annotations

import numpy as np


class DenseTwin:
    """Binary logistic loss, no intercept; the same steps as our solver, only dense."""

    def __init__(self, d: int, K: int, step_size: float = 0.005, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        U = np.linalg.qr(rng.standard_normal((d, K)))[0]
        self.Q, self.K, self.size = U @ U.T, K, step_size
        self.theta = rng.standard_normal((d, 1)) / np.sqrt(d)

    def step(self, X: np.ndarray, y: np.ndarray) -> None:
        """One step of the predictor and one of the eraser on a batch."""
        G = self._gradient(X, y)
        self.theta = self.theta - self.size * (G - self.Q @ G)
        G = self._gradient(X, y)
        self.Q = self._project(self.Q - self.size / 2 * (self.theta @ G.T + G @ self.theta.T))

    def _gradient(self, X: np.ndarray, y: np.ndarray) -> np.ndarray:
        s = X @ (self.theta - self.Q @ self.theta)
        return X.T @ ((1 / (1 + np.exp(-s)) - y[:, None]) / len(X))

    def _project(self, A: np.ndarray) -> np.ndarray:
        values, V = np.linalg.eigh(A)
        low, high = values[0] - 1.0, values[-1]
        for _ in range(60):
            middle = (low + high) / 2
            if np.clip(values - middle, 0, 1).sum() > self.K:
                low = middle
            else:
                high = middle
        return (V * np.clip(values - middle, 0, 1)) @ V.T
