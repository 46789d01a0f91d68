"""Bits about a concept that a probe gains on held-out rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from expunge.errors import InputError
from expunge.inputs import as_matrix, check_number, check_rng
from expunge.linalg import Array
from expunge.metrics.parity import class_columns
from expunge.parallel import blocks

__all__ = ["BitsLeft", "bits_left"]

DRAWN = 1 << 22  # rows drawn at once


@dataclass(frozen=True)
class BitsLeft:
    """Bits per row that a probe gains about a concept.

    Attributes
    ----------
    bits : float
        Entropy of the labels minus the cross-entropy of the probe; never below 0.
    gain : float
        The same difference without the floor. Below 0 the probe is worse than a constant answer.
    entropy, cross_entropy : float
        In bits per row.
    low, high : float or None
        Confidence limits of `bits`, with the same floor; None when only a mean loss was given.
    """

    bits: float
    gain: float
    entropy: float
    cross_entropy: float
    low: float | None
    high: float | None

    def __float__(self) -> float:
        return self.bits

    def to_dict(self) -> dict[str, Any]:
        """All numbers by name."""
        return asdict(self)


def bits_left(
    losses: Any,
    y: Any,
    *,
    level: float = 0.95,
    resamples: int = 1000,
    random_state: Any = 0,
) -> BitsLeft:
    """Bits per row that a probe gains about classes, over a constant answer on the same rows.

    It is the entropy of the labels minus the probe's cross-entropy, floored at 0: a probe can
    always be replaced by the constant answer. With one loss per row the limits come from a
    bootstrap of the rows. Each row gains -log p̂(y) - loss, with p̂ the share of its class; that p̂
    is estimated too changes the mean gain to second order only, so it is held fixed.

    Parameters
    ----------
    losses : float or array of shape (n,)
        Held-out cross-entropy of a probe in nats: its mean, or row by row.
    y : array of shape (n,)
        Classes of the held-out rows.
    level : float
        Of the confidence limits.
    resamples : int
    random_state : int, Generator or None

    Returns
    -------
    BitsLeft

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.bits import bits_left
    >>> bits_left(np.log(2), [0, 1, 0, 1]).bits
    0.0
    >>> bits_left(0.0, [0, 1, 0, 1]).bits
    1.0
    """
    (labels,) = class_columns(y=y)
    loss = np.asarray(as_matrix(losses, name="losses"), dtype=np.float64)
    if loss.shape not in ((), (labels.n_samples,)) or not np.isfinite(loss).all():
        raise InputError(
            "losses must be one finite number, or one for each entry of y",
            f"losses of shape {loss.shape} for {labels.n_samples} labels",
            "Pass the mean loss in nats, or the losses row by row",
        )
    check_number(level, "level", least=0, most=1, strict=True)
    check_number(resamples, "resamples", least=1, whole=True)
    shares = np.bincount(labels.values, minlength=labels.width) / labels.n_samples
    surprise = -np.log2(shares[labels.values])
    gains = surprise - loss / np.log(2)
    gain = float(gains.mean())
    low = high = None
    if loss.ndim:
        means = _resampled_means(gains, resamples, check_rng(random_state))
        tail = (1 - level) / 2
        low, high = (max(float(q), 0.0) for q in np.quantile(means, [tail, 1 - tail]))
    return BitsLeft(
        bits=max(gain, 0.0),
        gain=gain,
        entropy=float(surprise.mean()),
        cross_entropy=float(loss.mean() / np.log(2)),
        low=low,
        high=high,
    )


def _resampled_means(values: Array, resamples: int, rng: np.random.Generator) -> Array:
    """Means of as many values, drawn with replacement."""
    means = np.empty(resamples)
    n = len(values)
    for lo, hi in blocks(0, resamples, max(DRAWN // n, 1)):
        means[lo:hi] = values[rng.integers(0, n, (hi - lo, n))].mean(axis=1)
    return means
