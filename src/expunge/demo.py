"""The demonstration: erase gender from the embedded word vectors and measure what is left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from expunge.audit import audit
from expunge.data import GloveGender, LabelledWords, load_glove
from expunge.erasers.rlace import RLACE
from expunge.erasure import Erasure
from expunge.game.certificate import Certificate, certify
from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows

__all__ = ["Change", "DemoResult", "Neighbours", "run_demo", "write_demo_report"]

WORDS = ("ocean", "museum", "doctor", "receptionist", "politician")
SVM_ROWS = 4000  # training words of the non-linear probe, to keep the demonstration short
FOLDS = 5
LABELS = np.array(["male-biased", "female-biased"])


@dataclass(frozen=True)
class Change:
    """One number before and after the erasure."""

    before: float
    after: float


@dataclass(frozen=True)
class Neighbours:
    """The nearest neighbours of a word before and after the erasure."""

    word: str
    before: tuple[str, ...]
    after: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class DemoResult:
    """What the demonstration measured.

    Attributes
    ----------
    n_words, n_features, n_train, n_test : int
        Words of the slice, numbers per word, words of the fit, words held out.
    majority : float
        Share of the commoner class among the test words.
    linear_probe : Change
        Accuracy on the test words of a linear probe trained on the words of the fit.
    fresh_probe : Change
        Accuracy of a linear probe trained and tested on test words only, cross-fitted.
    nonlinear_probe : Change
        Accuracy on the test words of an RBF-SVM trained on `nonlinear_rows` words of the fit.
    nonlinear_rows : int
    bits_left : Change
        Bits per word that linear predictors can gain on the words of the fit, at most.
    variance_kept : float
        Total variance of the erased test words, relative to that before.
    neighbours : tuple of Neighbours
    certificate : Certificate
    erasure : Erasure
    """

    n_words: int
    n_features: int
    n_train: int
    n_test: int
    majority: float
    linear_probe: Change
    fresh_probe: Change
    nonlinear_probe: Change
    nonlinear_rows: int
    bits_left: Change
    variance_kept: float
    neighbours: tuple[Neighbours, ...]
    certificate: Certificate
    erasure: Erasure

    def to_dict(self) -> dict[str, Any]:
        """The measurements as plain values; of the erasure only what made it."""
        plain = {key: value for key, value in vars(self).items() if key != "erasure"}
        for name in ("linear_probe", "fresh_probe", "nonlinear_probe", "bits_left"):
            plain[name] = asdict(plain[name])
        plain["neighbours"] = [
            {"word": n.word, "before": list(n.before), "after": list(n.after)}
            for n in self.neighbours
        ]
        plain["certificate"] = self.certificate.to_dict()
        plain["erasure"] = {
            "method": self.erasure.meta["method"],
            "rank": self.erasure.rank,
            "orthogonal": self.erasure.is_orthogonal,
        }
        return plain


def run_demo(progress: Callable[[str], None] | None = None) -> DemoResult:
    """Measurements before and after erasing gender from word vectors by `RLACE`.

    Parameters
    ----------
    progress : callable, optional
        Told what is being done, in a few words.

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
    erasure, certificate = eraser.erasure_, eraser.certificate_
    assert certificate is not None
    assert certificate.bits_left is not None
    erased_train, erased_test = _erased(erasure, train), _erased(erasure, test)
    tell("training linear probes")
    linear = Change(_linear(train, test), _linear(erased_train, erased_test))
    fresh = Change(_fresh(test), _fresh(erased_test))
    bits = Change(_bits(train), certificate.bits_left)
    tell("training a non-linear probe")
    nonlinear = Change(_nonlinear(train, test), _nonlinear(erased_train, erased_test))
    return DemoResult(
        n_words=len(glove),
        n_features=erasure.n_features,
        n_train=len(train),
        n_test=len(test),
        majority=float(max(test.y.mean(), 1 - test.y.mean())),
        linear_probe=linear,
        fresh_probe=fresh,
        nonlinear_probe=nonlinear,
        nonlinear_rows=SVM_ROWS,
        bits_left=bits,
        variance_kept=_variance(erased_test) / _variance(test),
        neighbours=_neighbours(glove, erasure),
        certificate=certificate,
        erasure=erasure,
    )


def write_demo_report(result: DemoResult, path: Path) -> None:
    """Write a full audit of the demonstration's erasure to a page.

    Parameters
    ----------
    result : DemoResult
    path : path
        Of an HTML file.
    """
    glove = load_glove()
    train, test = glove.train, glove.test
    found = audit(
        result.erasure,
        train.X,
        LABELS[train.y],
        test.X,
        LABELS[test.y],
        words=test.words,
    )
    found.to_html(path)


def _erased(erasure: Erasure, part: LabelledWords) -> LabelledWords:
    return LabelledWords(part.words, erasure.transform(part.X), part.y)


def _linear(train: LabelledWords, test: LabelledWords) -> float:
    from sklearn.linear_model import LogisticRegression

    return float(LogisticRegression(max_iter=1000).fit(train.X, train.y).score(test.X, test.y))


def _fresh(test: LabelledWords) -> float:
    """Accuracy on rows that neither the erasure nor the probe has seen."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    found = cross_val_predict(LogisticRegression(max_iter=1000), test.X, test.y, cv=FOLDS)
    return float(np.mean(found == test.y))


def _nonlinear(train: LabelledWords, test: LabelledWords) -> float:
    from sklearn.svm import SVC

    probe = SVC(kernel="rbf").fit(train.X[:SVM_ROWS], train.y[:SVM_ROWS])
    return float(probe.score(test.X, test.y))


def _bits(part: LabelledWords) -> float:
    """Bits per row that a linear predictor can gain with nothing erased, at most."""
    d = part.X.shape[1]
    nothing = Erasure.identity(d)
    rows, concept = check_rows(part.X), check_concept(part.y, len(part))
    found = certify(rows, concept, nothing, loss_for("cross_entropy", "classes", 2))
    assert found.bits_left is not None
    return found.bits_left


def _variance(part: LabelledWords) -> float:
    return float(part.X.var(axis=0, dtype=np.float64).sum())


def _neighbours(glove: GloveGender, erasure: Erasure) -> tuple[Neighbours, ...]:
    erased = erasure.transform(glove.vectors)
    return tuple(
        Neighbours(word, glove.neighbours(word), glove.neighbours(word, vectors=erased))
        for word in WORDS
    )
