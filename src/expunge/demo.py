"""The demonstration: erase gender from the embedded word vectors and audit what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from expunge.audit import Audit, audit
from expunge.audit.families import FamilyResult
from expunge.data import load_glove
from expunge.erasers.rlace import RLACE
from expunge.erasure import Erasure
from expunge.game.certificate import Certificate
from expunge.metrics.neighbours import NeighbourChange, neighbour_changes

__all__ = ["Change", "DemoResult", "run_demo"]

WORDS = ("ocean", "museum", "doctor", "receptionist", "politician")
NEAREST = 3  # neighbours shown
LABELS = np.array(["male-biased", "female-biased"])
SHORT = [  # the probes of a demonstration without a page, to keep it short
    "logistic regression, ridge 0.01",
    "logistic regression, ridge 1",
    "linear SVM",
    "linear discriminant",
    "RBF-SVM",
]


@dataclass(frozen=True)
class Change:
    """One number before and after the erasure."""

    before: float
    after: float


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the audit of the demonstration's erasure measured, as the demonstration shows it.

    Attributes
    ----------
    n_words : int
        Words of the slice.
    erasure : Erasure
    audit : Audit
    neighbours : tuple of NeighbourChange
        The nearest words of a few words, before and after.
    """

    n_words: int
    erasure: Erasure
    audit: Audit
    neighbours: tuple[NeighbourChange, ...]

    @property
    def n_features(self) -> int:
        """Numbers per word."""
        return self.erasure.n_features

    @property
    def n_train(self) -> int:
        """Words of the fit."""
        return int(self.audit.sections["data"]["n_train"])

    @property
    def n_test(self) -> int:
        """Words held out."""
        return int(self.audit.sections["data"]["n_test"])

    @property
    def majority(self) -> float:
        """Share of the commoner class among the test words."""
        _, after = self._families("same_rows", "linear")
        assert after.majority is not None
        return after.majority

    @property
    def linear_probe(self) -> Change:
        """Accuracy on the test words of the strongest linear probe, trained on words of the fit."""
        return self._accuracies("same_rows", "linear")

    @property
    def fresh_probe(self) -> Change:
        """The same where probes are trained and tested on test words only, cross-fitted."""
        return self._accuracies("fresh_rows", "linear")

    @property
    def nonlinear_probe(self) -> Change:
        """Accuracy on the test words of the strongest non-linear probe, trained on the fit."""
        return self._accuracies("same_rows", "nonlinear")

    @property
    def nonlinear_name(self) -> str:
        """Which probe that is, after erasure."""
        return self._families("same_rows", "nonlinear")[1].worst

    @property
    def nonlinear_rows(self) -> int:
        """Words of the fit it was trained on."""
        return self._families("same_rows", "nonlinear")[1].n_train

    @property
    def bits_left(self) -> Change:
        """Bits per test word that the best linear probe gains, trained on the words of the fit."""
        before, after = (family.bits for family in self._families("same_rows", "linear"))
        assert before is not None
        assert after is not None
        return Change(before.value, after.value)

    @property
    def variance_kept(self) -> float:
        """Total variance of the erased test words, relative to that before."""
        return float(self.audit.sections["damage"]["variance_kept"])

    @property
    def certificate(self) -> Certificate:
        """On the words of the fit."""
        return self.audit.certificates["train"].certificate

    def to_dict(self) -> dict[str, Any]:
        """The measurements as plain values; of the erasure only what made it."""
        plain = ("n_words", "n_features", "n_train", "n_test", "majority", "nonlinear_name")
        changes = ("linear_probe", "fresh_probe", "nonlinear_probe", "bits_left")
        return {
            **{name: getattr(self, name) for name in plain},
            **{name: asdict(getattr(self, name)) for name in changes},
            "nonlinear_rows": self.nonlinear_rows,
            "variance_kept": self.variance_kept,
            "neighbours": [change.to_dict() for change in self.neighbours],
            "certificate": self.certificate.to_dict(),
            "erasure": {
                "method": self.erasure.meta["method"],
                "rank": self.erasure.rank,
                "orthogonal": self.erasure.is_orthogonal,
            },
        }

    def _families(self, protocol: str, family: str) -> tuple[FamilyResult, FamilyResult]:
        """Before and after."""
        found = getattr(self.audit, protocol)
        return found.before[family], found.after[family]

    def _accuracies(self, protocol: str, family: str) -> Change:
        """Of the strongest probe before and of the strongest after."""
        return Change(*(_accuracy(found) for found in self._families(protocol, family)))


def _accuracy(family: FamilyResult) -> float:
    strongest = next(probe for probe in family.probes if probe.name == family.worst)
    return strongest.intervals["accuracy"].value


def run_demo(progress: Callable[[str], None] | None = None, *, full: bool = False) -> DemoResult:
    """Erase gender from word vectors by `RLACE`, and audit the erasure.

    Parameters
    ----------
    progress : callable, optional
        Told what is being done, in a few words.
    full : bool
        Whether to run every probe of an audit, not only a few of them.

    Returns
    -------
    DemoResult

    Examples
    --------
    >>> from expunge.demo import run_demo
    >>> result = run_demo()
    >>> result.certificate.erased
    True
    >>> result.linear_probe.before > 0.99
    True
    """
    tell = progress or (lambda message: None)
    tell("reading the word vectors")
    glove = load_glove()
    train, test = glove.train, glove.test
    tell("erasing gender")
    eraser = RLACE().fit(train.X, LABELS[train.y])
    tell("auditing: probes of every kind" if full else "auditing: a few probes")
    found = audit(
        eraser.erasure_,
        train.X,
        LABELS[train.y],
        test.X,
        LABELS[test.y],
        probes="default" if full else SHORT,
        words=test.words,
        verbose=False,
    )
    near = neighbour_changes(
        glove.vectors, eraser.erasure_.transform(glove.vectors), glove.words, WORDS, NEAREST
    )
    return DemoResult(len(glove), eraser.erasure_, found, near)
