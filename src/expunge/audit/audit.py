"""The audit: everything that can be measured about an erasure, in one call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import sklearn

from expunge._version import __version__
from expunge.audit import content
from expunge.audit.certificates import Certified, certified
from expunge.audit.fresh import Freshness, fresh_rows, share_of_fit
from expunge.audit.given import Given, Part, erased, gather
from expunge.audit.limits import limits_of, notes_of
from expunge.audit.probes import choose_probes
from expunge.audit.probing import (
    ProtocolResult,
    Sizes,
    Terms,
    fresh_protocol,
    same_protocol,
    too_few,
)
from expunge.audit.residue import Residue, expected_residue
from expunge.audit.result import Audit
from expunge.audit.verdict import verdict_of
from expunge.errors import InputError
from expunge.inputs import ConceptType, check_number, check_rng, check_rows
from expunge.moments import Moments
from expunge.progress import Progress

__all__ = ["audit"]

SECTIONS = 7  # steps of the progress bar beside the probes


def audit(
    erasure: Any,
    X_train: Any,
    y_train: Any,
    X_test: Any = None,
    y_test: Any = None,
    *,
    task: Any = None,
    probes: Any = "default",
    random_state: Any = 0,
    words: Any = None,
    vocabulary: Any = None,
    concept_type: ConceptType = "auto",
    confidence: float = 0.95,
    leak: float = 0.02,
    sizes: Sizes | None = None,
    verbose: bool | None = None,
) -> Audit:
    """Measure what is left of a concept and what was lost.

    Parameters
    ----------
    erasure : Erasure, fitted eraser, or object with transform(X)
        One with a true `needs_concept` is given the concept too: ``transform(X, concept=y)``.
    X_train : array or frame of shape (n, d)
        The rows of the fit, before erasure.
    y_train : array of shape (n,) or (n, m)
        Their concept.
    X_test, y_test : optional
        Rows that the eraser has not seen. Without them nothing is called erased.
    task : pair of arrays, optional
        Classes of a task for the training and for the test rows, for fairness.
    probes : {"default", "linear", "nonlinear"} or list of str and Probe
        Names are the keys of `expunge.audit.probes.PROBES`.
    random_state : int, Generator or None
        Equal states give equal numbers.
    words : sequence of str, or pair of them, optional
        Names of the test rows, or of the training and the test rows.
    vocabulary : pair (words, vectors), optional
        For association tests, agreement with people and neighbours. By default the rows that
        `words` names.
    concept_type : {"auto", "classes", "labels", "continuous"}
        "auto": what the erasure was fitted for, if it says so.
    confidence : float
        Of all intervals.
    leak : float
        The least excess over chance that matters, in balanced accuracy (R² for numbers).
    sizes : Sizes, optional
        Most rows the probes look at.
    verbose : bool, optional
        Whether to show a progress bar; by default if standard error is a terminal.

    Returns
    -------
    Audit

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 8000)
    >>> X = rng.normal(size=(8000, 5)) + np.outer(y, [2, 0, 0, 1, 0])
    >>> X, y, X_test, y_test = X[:4000], y[:4000], X[4000:], y[4000:]
    >>> e = ex.RLACE().fit(X, y).erasure_
    >>> a = ex.audit(e, X, y, X_test, y_test, probes="linear", leak=0.05)
    >>> print(a.verdict.headline)
    Linear probes: at chance.
    >>> print(ex.audit(e, X, y, probes="linear").verdict.headline)
    Not shown to be erased: it was measured on the training rows only.
    """
    check_number(confidence, "confidence", least=0.5, most=0.9999)
    check_number(leak, "leak", strict=True, most=1)
    seed = int(check_rng(random_state).integers(2**31))
    given = gather(
        erasure,
        X_train,
        y_train,
        X_test,
        y_test,
        task=task,
        names=words,
        concept_type=concept_type,
    )
    chosen = choose_probes(probes, given.train.concept.kind)
    limits = _sizes(sizes)
    named = _vocabulary(given, words, vocabulary)
    shown = sys.stderr.isatty() if verbose is None else verbose
    folds = {"linear": limits.linear_folds, "nonlinear": limits.nonlinear_folds}
    total = SECTIONS + sum(2 + 2 * folds[probe.family] for probe in chosen)
    with Progress("audit", total, shown) as progress:
        tell = _counter(progress)
        terms = Terms(chosen, limits, confidence, leak, seed, tell)
        return _run(given, terms, named, tell)


def _sizes(sizes: Any) -> Sizes:
    if sizes is None or isinstance(sizes, Sizes):
        return sizes or Sizes()
    raise InputError(
        "sizes must say how many rows probes look at",
        f"sizes={sizes!r}",
        "Pass e.g. expunge.audit.Sizes(nonlinear_test=5000)",
    )


def _run(given: Given, terms: Terms, named: Any, tell: Callable[[str], None]) -> Audit:
    tell("which rows are fresh")
    freshness, new, reason = _new_rows(given)
    shown = given.train if given.test is None else given.test
    same = fresh = training = None
    if new is None:
        training = fresh_protocol(given.train, terms, "training_rows")
    else:
        same, fresh = same_protocol(given.train, new, terms), fresh_protocol(new, terms)
    tell("expected residue")
    residue = _residue(given, fresh)
    tell("certificates")
    proofs = _certificates(given, terms.seed)
    tell("clusters and pictures")
    sections: dict[str, Any] = {
        "data": _data_section(given, freshness, terms),
        "concept": content.concept_section(given),
        "erasure": content.erasure_section(given),
        "spectrum": given.spectrum,
        "pca": content.pca_section(shown, terms.seed),
        "v_measure": content.v_measure_section(shown, terms.seed),
    }
    tell("damage")
    sections["damage"] = content.damage_section(shown, terms.seed)
    tell("words")
    sections["association"] = None
    if named is not None:
        names, before, after = named
        sections["association"] = content.association_section(names, before, after, terms.seed)
    tell("the task")
    sections["fairness"] = None
    if given.test is not None:
        sections["fairness"] = content.fairness_section(
            given.train, given.test, terms.confidence, terms.seed
        )
    verdict = verdict_of(same, fresh, residue, leak=terms.leak, reason=reason)
    sections["limits"] = limits_of(given, verdict)
    sections["settings"] = _settings(terms)
    sections["versions"] = {
        "expunge": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return Audit(verdict, same, fresh, training, residue, proofs, sections)


def _counter(progress: Progress) -> Callable[[str], None]:
    done = -1

    def tell(note: str) -> None:
        nonlocal done
        done += 1
        progress.update(done, note)

    return tell


def _new_rows(given: Given) -> tuple[Freshness | None, Part | None, str]:
    """What is known of the test rows, the fresh ones, and why there are none."""
    if given.test is None:
        return None, None, "it was measured on the training rows only"
    freshness = fresh_rows(given.test.before, given.train.before, given.meta)
    new = given.test.take(freshness.fresh)
    if not len(new):
        return freshness, None, "all test rows are rows the eraser was fitted on"
    if too_few(new):
        count = len(new)
        return freshness, None, f"only {count} of the test rows are fresh, too few to probe"
    return freshness, new, ""


def _residue(given: Given, fresh: ProtocolResult | None) -> Residue | None:
    """Of an exact eraser, whatever was audited."""
    linear = None if fresh is None else fresh.after.get("linear")
    moments = Moments.of(given.train.before, given.train.concept)
    return expected_residue(moments, 0 if linear is None else linear.n_train)


def _certificates(given: Given, seed: int) -> dict[str, Certified]:
    if given.erasure is None:
        return {}
    found = {"train": certified(given.erasure, given.train, seed)}
    if given.test is not None and not too_few(given.test):
        found["test"] = certified(given.erasure, given.test, seed)
    return found


def _data_section(given: Given, freshness: Freshness | None, terms: Terms) -> dict[str, Any]:
    share = share_of_fit(given.train.before, given.meta)
    counts = {"n_fresh": 0, "n_in_train": 0, "n_known": 0, "n_undecided": 0, "fingerprint": False}
    return {
        "n_train": len(given.train),
        "n_test": 0 if given.test is None else len(given.test),
        "n_features": int(given.train.before.shape[1]),
        **(counts if freshness is None else freshness.to_dict()),
        "share_of_fit": share,
        "notes": notes_of(given, freshness, share, terms.sizes),
    }


def _settings(terms: Terms) -> dict[str, Any]:
    return {
        "confidence": terms.confidence,
        "leak": terms.leak,
        "seed": terms.seed,
        "sizes": dict(vars(terms.sizes)),
        "probes": [probe.name for probe in terms.probes],
    }


def _vocabulary(given: Given, words: Any, vocabulary: Any) -> Any:
    """Words with their vectors before and after, for what is about words; or None."""
    if vocabulary is None:
        parts = [p for p in (given.train, given.test) if p is not None and p.names is not None]
        if words is None or not parts:
            return None
        names = [name for part in parts for name in part.names or ()]
        before, after = (np.vstack([p.at(stage) for p in parts]) for stage in ("before", "after"))
        return names, before, after
    if not isinstance(vocabulary, tuple) or len(vocabulary) != 2:
        raise InputError(
            "vocabulary must be a pair", type(vocabulary).__name__, "Pass (words, vectors)"
        )
    if getattr(given.subject, "needs_concept", False):
        raise InputError(
            "This erasure needs the concept of every row, which a vocabulary does not have",
            "vocabulary with a conditional erasure",
            "Leave vocabulary out",
        )
    names, vectors = list(map(str, vocabulary[0])), check_rows(vocabulary[1], name="vocabulary").X
    if len(names) != len(vectors):
        raise InputError(
            "vocabulary must name every vector",
            f"{len(names)} words and {len(vectors)} vectors",
            "Pass one word per vector",
        )
    return names, vectors, np.asarray(erased(given.subject, vectors, given.train.concept))
