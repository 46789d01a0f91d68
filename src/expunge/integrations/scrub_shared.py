"""One erasure for the whole residual stream: orthogonal, about one center, the same everywhere.

At every place where the stream is read the concept has its own directions, and erasing below moves
those above. So in rounds: with what is erased so far, an eraser is fitted at all places in one
pass; the directions of those where a linear predictor still gains something are added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.integrations.stream_graph import run_with_graph, stream_of
from expunge.linalg import Array

__all__ = ["SharedFit", "stream_places"]

ROUNDS = 8
GAIN = 0.005  # share of the loss below which a predictor gains nothing worth a direction
NEW = 0.3  # of its length a direction must have outside those of this round: else the next round


def stream_places(model: Any, inputs: Any) -> list[str]:
    """Full names of all modules that read the residual stream, in the order they run.

    Examples
    --------
    >>> import transformers
    >>> from expunge.integrations.bake import probe_batch
    >>> from expunge.integrations.scrub_shared import stream_places
    >>> config = transformers.GPT2Config(vocab_size=9, n_embd=4, n_layer=1, n_head=1)
    >>> model = transformers.GPT2Model(config).eval()
    >>> stream_places(model, probe_batch(model))
    ['h.0.ln_1', 'h.0.ln_2', 'ln_f']
    """
    with _wanting_gradients(model):
        return stream_of(model, run_with_graph(model, inputs)).readers


class SharedFit:
    """The directions erased so far, and the rounds that add to them."""

    def __init__(self) -> None:
        self.basis: Array | None = None
        self.center: Array | None = None
        self.meta: dict[str, Any] = {}

    def erasure(self) -> Erasure | None:
        """The erasure of the directions so far; None before the first round."""
        if self.basis is None:
            return None
        return Erasure(self.basis, self.basis.T, self.center, meta=self.meta)

    def rounds(self, one_pass: Callable[[Erasure | None], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Add directions until no place tells anything; gives the fits of the last round.

        Parameters
        ----------
        one_pass : callable
            Of the erasure so far: fits an eraser at every place and gives them.
        """
        for _ in range(ROUNDS):
            fits = one_pass(self.erasure())
            if not self._grow(fits):
                return fits
        return one_pass(self.erasure())

    def _grow(self, fits: Mapping[str, Any]) -> bool:
        """Whether there were directions to add."""
        first = next(iter(fits.values())).erasure()
        if self.basis is None:
            center = first.center
            self.basis = np.zeros((first.n_features, 0))
            self.center = np.zeros(first.n_features) if center is None else center
            self.meta = {**first.meta, "shared": list(fits)}
        before = self.basis.shape[1]
        for fit in fits.values():
            gain = fit.gain()
            if gain is None or gain > GAIN:
                self._add(fit.erasure().left)
        return bool(self.basis.shape[1] > before)

    def _add(self, directions: Array) -> None:
        assert self.basis is not None
        for direction in directions.T:
            length = float(np.linalg.norm(direction))
            rest = direction
            for _ in range(2):  # twice is enough to be orthogonal
                rest = rest - self.basis @ (self.basis.T @ rest)
            if length and np.linalg.norm(rest) > NEW * length:
                self.basis = np.column_stack([self.basis, rest / np.linalg.norm(rest)])
        if self.basis.shape[1] >= self.basis.shape[0]:
            raise InputError(
                "One erasure for the whole stream would erase all of it",
                f"{self.basis.shape[1]} directions of {self.basis.shape[0]} features",
                "Scrub with an erasure per layer, on more texts, or fewer classes",
            )


@contextmanager
def _wanting_gradients(model: Any) -> Iterator[None]:
    before = [(weight, weight.requires_grad) for weight in model.parameters()]
    try:
        for weight, _ in before:
            weight.requires_grad_(weight.is_floating_point())
        yield
    finally:
        for weight, wanted in before:
            weight.requires_grad_(wanted)
