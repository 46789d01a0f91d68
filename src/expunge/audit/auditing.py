"""The audit: everything that can be measured about an erasure, in one call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import sklearn

from expunge._version import __version__
from expunge.audit import content
from expunge.audit.already_erased import warning_of_erased
from expunge.audit.audit_result import Audit
from expunge.audit.certificates import Certified, certified
from expunge.audit.dependence import dependence_of
from expunge.audit.fit import FitFacts, fit_facts
from expunge.audit.fresh import Freshness, fingerprints
from expunge.audit.given import Given, erased_rows, gather
from expunge.audit.limits import limits_of, notes_of
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import (
    ProtocolResult,
    Sizes,
    Terms,
    check_sizes,
    fresh_protocol,
    same_protocol,
)
from expunge.audit.residue import Residue, residue_of_fit
from expunge.audit.roles import REASONS, Roles, roles_of
from expunge.audit.sampling import too_few
from expunge.audit.task_rates import fairness_section
from expunge.audit.unlike_fit import warning_of_unlike, without_excuse
from expunge.audit.verdict import verdict_of, warning_of_unreadable
from expunge.audit.written_columns import (
    headline_of_written,
    warnings_of_written,
    written_columns,
)
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.inputs import ConceptType, check_number, check_rng, check_rows
from expunge.maps import Map
from expunge.number_text import short
from expunge.progress import Progress
from expunge.rounding import rounding_shows

__all__ = ["audit"]

SECTIONS = 7  # steps of the progress bar beside the probes


def audit(
    erasure: Any,
    X_train: Any = None,
    y_train: Any = None,
    X_test: Any = None,
    y_test: Any = None,
    *,
    task: Any = None,
    probes: Any = "default",
    random_state: Any = 0,
    words: Any = None,
    vocabulary: Any = None,
    ids: Any = None,
    groups: Any = None,
    fresh: bool = False,
    concept_type: ConceptType = "auto",
    confidence: float = 0.95,
    leak: float = 0.02,
    sizes: Sizes | None = None,
    frontier: Any = None,
    verbose: bool | None = None,
) -> Audit:
    """Measure what is left of a concept and what was lost.

    Parameters
    ----------
    erasure : Erasure, fitted eraser, or object with transform(X)
        One with a true `needs_concept` is given the concept too: ``transform(X, concept=y)``.
    X_train, y_train : optional
        The rows of the fit, before erasure, with their concept. Rows that the fingerprint of the
        erasure does not know count as fresh, whatever they are passed as.
    X_test, y_test : optional
        Rows that the eraser has not seen. Without fresh rows nothing is called erased.
    task : pair of arrays, or array, optional
        Classes of a task for the training and for the test rows, for fairness. Of one set of rows,
        the fresh ones are learnt from and tested on in turns.
    probes : {"default", "linear", "nonlinear", "thorough"} or list of str and Probe
        Names are the keys of `expunge.audit.probes.PROBES`. "thorough" adds the hardest non-linear
        ones and takes minutes; the strongest is then chosen inside the rows it learns from.
    random_state : int, Generator or None
        Equal states give equal numbers.
    words : sequence of str, or pair of them, optional
        Names of the test rows, or of the training and the test rows.
    vocabulary : pair (words, vectors), optional
        For association tests, agreement with people and neighbours. By default the rows that
        `words` names.
    ids : pair of arrays, or array, optional
        Who or what each row belongs to: for the training and the test rows, or for one of them (the
        test rows, if both are there). Test rows whose id a training row has are not fresh; values
        are then not compared. Rows of one id are never on both sides of a probe, and count once
        where errors are estimated.
    groups : pair of arrays, or array, optional
        The same under the name that scikit-learn has for it; pass one of the two.
    fresh : bool
        Trust that the test rows, or the rows if there is one set of them, were not in the fit,
        whatever numbers they share with it.
    concept_type : {"auto", "classes", "labels", "continuous"}
        "auto": what the erasure was fitted for, if it says so.
    confidence : float
        Of all intervals.
    leak : float
        The least excess over chance that matters, in balanced accuracy of two classes (R² for
        numbers); of more classes it is less, see `least_excess`.
    sizes : Sizes, optional
        Most rows the probes look at.
    frontier : Frontier, or mapping of its `to_dict`, optional
        What `expunge.frontier` found for such rows; the report draws it and says in numbers what
        other erasers would leave.
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
    if ids is not None and groups is not None:
        raise InputError("ids and groups are two names of one thing", "both", "Pass one of the two")
    ids = groups if ids is None else ids
    if not isinstance(fresh, bool | np.bool_):
        raise InputError("fresh must be true or false", repr(fresh), "Pass fresh=True or leave it")
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
        ids=ids,
    )
    chosen = choose_probes(probes, given.first.concept.kind)
    limits = check_sizes(sizes, Sizes())
    named, traced = _vocabulary(given, words, vocabulary), _traced(frontier)
    shown = sys.stderr.isatty() if verbose is None else verbose
    folds = {"linear": limits.linear_folds, "nonlinear": limits.nonlinear_folds}
    total = SECTIONS + sum(2 + 2 * folds[probe.family] for probe in chosen)
    with Progress("audit", total, shown) as progress:
        tell = _counter(progress)
        terms = Terms(chosen, limits, confidence, leak, seed, tell)
        tell("which rows are fresh")
        done = _run(given, roles_of(given, fresh=fresh), terms, named)
    done.sections["frontier"] = traced
    return done


def _run(given: Given, roles: Roles, terms: Terms, named: Any) -> Audit:
    tell, shown = terms.tell, given.last
    same = fresh = training = None
    if roles.new is None:
        _check_enough(given)
        training = fresh_protocol(given.first, terms, "training_rows")
    else:
        fresh = fresh_protocol(roles.new, terms)
        same = None if roles.fit is None else same_protocol(roles.fit, roles.new, terms)
    tell("certificates")
    proofs = _certificates(given, roles, terms.seed)
    tell("expected residue")
    unlike = warning_of_unlike(given)
    facts = without_excuse(fit_facts(given, roles, proofs.get("train")), unlike)
    residue = _residue(given, roles, facts, fresh)
    tell("clusters and pictures")
    dependence = dependence_of(given, roles)
    sections: dict[str, Any] = {
        "data": {**_data_section(given, roles, terms), "dependence": dependence.to_dict()},
        "concept": content.concept_section(given, roles),
        "erasure": content.erasure_section(given),
        "spectrum": given.spectrum,
        "pca": content.pca_section(shown, terms.seed),
        "v_measure": content.v_measure_section(shown, terms.seed),
    }
    tested = roles.new or given.last
    written = []
    if isinstance(given.subject, Map):  # the columns of other transforms may be other ones
        lines = None if fresh is None else fresh.after.get("linear")
        read = lines is not None and lines.status == "found"
        written = written_columns(tested, _names_of_columns(given), terms.seed, linear=read)
    sections["written_columns"] = [column.to_dict() for column in written]
    tell("damage")
    sections["damage"] = content.damage_section(shown, terms.seed, told=_told(given))
    tell("words")
    sections["association"] = None
    if named is not None:
        words, before, after = named
        sections["association"] = content.association_section(words, before, after, terms.seed)
    tell("the task")
    sections["fairness"], note = fairness_section(given, roles, terms)
    if note:
        sections["data"]["notes"].append(note)
    verdict = verdict_of(
        same,
        fresh,
        residue,
        facts,
        leak=terms.leak,
        reason=roles.reason,
        beside=headline_of_written(written),
        warnings=tuple(
            filter(
                None,
                (
                    warning_of_erased(given, terms.seed),
                    "" if fresh is None else warning_of_unreadable(fresh),
                    unlike,
                    *_of_rounding(given),
                    *warnings_of_written(written),
                    *dependence.warnings,
                ),
            )
        ),
    )
    sections["limits"] = limits_of(given, verdict)
    sections["settings"] = _settings(terms)
    sections["versions"] = {
        "expunge": __version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return Audit(verdict, same, fresh, training, residue, proofs, sections)


def _names_of_columns(given: Given) -> list[str] | None:
    """Names of the columns of the fit, where it was given a table."""
    columns = getattr(given.subject, "columns", None)
    names = None if columns is None else list(columns.names)
    return names if names is not None and len(names) == given.first.before.n_features else None


def _of_rounding(given: Given) -> tuple[str, ...]:
    """A warning where erased rows of 16 bits tell the concept once they are written as such."""
    rows, part = given.half, given.last
    if rows is None or not isinstance(given.subject, Map):
        return ()
    back = rounding_shows(given.subject, rows, part.concept)
    if back is None or not back.shows:
        return ()
    return (
        f"Erased rows written as {rows.dtype} tell the concept again: rounding puts about "
        f"{short(100 * back.gap / back.bound)} % of it back, as some columns lie far from zero for "
        "their spread. All numbers here are of rows erased in 32 bits. Keep erased rows in "
        "float32, or subtract the mean of each column first.",
    )


def _traced(frontier: Any) -> dict[str, Any] | None:
    """The plain values of a frontier that was passed."""
    if frontier is None:
        return None
    plain = frontier if isinstance(frontier, Mapping) else getattr(frontier, "to_dict", dict)()
    if not isinstance(plain, Mapping) or not {"points", "statistic", "chance"} <= plain.keys():
        raise InputError(
            "frontier must be what expunge.frontier found",
            type(frontier).__name__,
            "Pass frontier=ex.frontier(X, y), or what its to_dict() gives",
        )
    return dict(plain)


def _check_enough(given: Given) -> None:
    """Refuse rows that no probe can be run on."""
    if why := too_few(given.first):
        raise InputError(
            "There are too few rows to audit on",
            f"{len(given.first):,} rows: {why}",
            "Pass more rows, with at least two rows of two classes",
        )


def _counter(progress: Progress) -> Callable[[str], None]:
    done = -1

    def tell(note: str) -> None:
        nonlocal done
        done += 1
        progress.update(done, note)

    return tell


def _residue(
    given: Given, roles: Roles, facts: FitFacts, fresh: ProtocolResult | None
) -> Residue | None:
    """What sampling error of the fit leaves, if the eraser is exact and the size of its fit known.

    How far classes are apart is taken from the rows of the fit, or else from the fresh ones.
    """
    part = roles.new or roles.fit
    if facts.size is None or part is None:
        return None
    linear = None if fresh is None else fresh.after.get("linear")
    fit = None if roles.fit is None else (roles.fit.before, roles.fit.concept)
    count = 0 if linear is None else linear.n_train
    new = part.before, part.concept
    return residue_of_fit(facts.size, count, fit, new, conditional=_told(given))


def _told(given: Given) -> bool:
    """Whether the erasure is told the concept of every row."""
    return bool(getattr(given.subject, "needs_concept", False))


def _certificates(given: Given, roles: Roles, seed: int) -> dict[str, Certified]:
    if given.erasure is None:
        return {}
    found = {}
    if roles.fit is not None:
        found["train"] = certified(given.erasure, roles.fit, seed)
    tested = given.test if roles.fit is given.train else roles.new
    if tested is not None and not too_few(tested):
        found["test"] = certified(given.erasure, tested, seed)
    return found


def _data_section(given: Given, roles: Roles, terms: Terms) -> dict[str, Any]:
    freshness = roles.freshness
    if freshness is None:  # all rows are rows of the fit
        sketches = any(True for _ in fingerprints(given.meta))
        freshness = Freshness(np.zeros(0, dtype=bool), fingerprint=sketches)
    counts, looks_fitted = freshness.to_dict(), roles.reason in REASONS.values()
    if looks_fitted:
        counts["n_fresh"] = 0
    return {
        "n_train": 0 if roles.fit is None else len(roles.fit),
        "n_test": roles.n_test,
        "n_features": given.first.before.n_features,
        **counts,
        "looks_fitted": looks_fitted,
        "share_of_fit": roles.share,
        "notes": notes_of(given, roles, terms.sizes),
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
        named = parts[0] if len(parts) == 1 else parts[0].joined(parts[1])
        return names, named.before, named.after
    if not isinstance(vocabulary, tuple) or len(vocabulary) != 2:
        raise InputError(
            "vocabulary must be a pair", type(vocabulary).__name__, "Pass (words, vectors)"
        )
    if _told(given):
        raise InputError(
            "This erasure needs the concept of every row, which a vocabulary does not have",
            "vocabulary with a conditional erasure",
            "Leave vocabulary out",
        )
    names, rows = list(map(str, vocabulary[0])), check_rows(vocabulary[1], name="vocabulary")
    if len(names) != rows.n_samples:
        raise InputError(
            "vocabulary must name every vector",
            f"{len(names)} words and {rows.n_samples} vectors",
            "Pass one word per vector",
        )
    return names, rows, erased_rows(given.subject, rows, Concept.none(len(names)), "vocabulary")
