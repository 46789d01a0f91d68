"""Probes that do not learn the same rows twice, where many erasures of the same rows are probed."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.measures import ProbeScores
from expunge.audit.probe import Choosing, Probe, Training
from expunge.linalg import Array

__all__ = ["remembered"]


def remembered(probe: Probe) -> Probe:
    """The same probe with a memory of what it was asked: equal questions have equal answers.

    Examples
    --------
    >>> from expunge.audit.probes import PROBES
    >>> from expunge.audit.probe_memory import remembered
    >>> remembered(PROBES["linear SVM"]).name
    'linear SVM'
    """
    if isinstance(probe, Choosing):
        return replace(probe, candidates=tuple(map(remembered, probe.candidates)))
    answers: dict[tuple[Any, ...], ProbeScores] = {}

    def score(training: Training, X: Array, seed: int) -> ProbeScores:
        question = (_digest(training.X), _digest(training.concept.values), _digest(X), seed)
        if question not in answers:
            answers[question] = probe.score(training, X, seed)
        return answers[question]

    return replace(probe, score=score)


def _digest(values: NDArray[Any]) -> tuple[Any, ...]:
    data = np.ascontiguousarray(values)
    return data.shape, str(data.dtype), hashlib.blake2b(data.data, digest_size=16).digest()
