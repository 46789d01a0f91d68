"""What is known of the fit behind an erasure: its size, and whether it was exact.

Only an exact eraser may plead sampling error. One that leaves a part of the covariance with the
concept on its own rows leaves it on new rows too, however many rows it was fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.certificates import Certified
from expunge.audit.given import Given
from expunge.audit.residue import FitSize, shares_of
from expunge.audit.roles import SAME, Roles
from expunge.audit.sampling import groups_of
from expunge.concept import Concept
from expunge.linalg import Array
from expunge.number_text import short
from expunge.pooling.sharpened import design_effect
from expunge.rows.base import Rows

__all__ = ["FitFacts", "fit_facts", "fit_size"]

EXACT = 1e-6  # share of the covariance with the concept that rounding may leave
UNREADABLE = 1e-3  # correlation of a column with the concept that no probe can use
UNLIKE = 0.1  # difference of class shares between the fit and new rows, beside sampling error
DEVIATIONS = 5.0  # standard errors of that difference
VARIANCES = 2.0  # times the variance of a number in the fit that make it another one
OTHER = "it was fitted for another concept than the one audited"


@dataclass(frozen=True)
class FitFacts:
    """Whether sampling error of the fit can explain what probes find.

    Attributes
    ----------
    exact : bool or None
        Whether the eraser left nothing of the concept on its own rows; None: not known.
    size : FitSize or None
        There if it is exact.
    why : str
        Why it is not exact, or not known.
    sure : bool
        Whether that was measured for the concept audited. If not, it holds if this concept is the
        one of the fit, which its labels allow but do not prove.
    """

    exact: bool | None
    size: FitSize | None
    why: str
    sure: bool = True


@dataclass(frozen=True)
class _Columns:
    """Columns of the concept of a fit: those audited, and all classes of the same concept.

    Both are empty where they cannot be told: the fit had several concepts with these labels, or
    says nothing of its own.
    """

    audited: tuple[int, ...] = ()
    whole: tuple[int, ...] = ()


def fit_facts(given: Given, roles: Roles, proof: Certified | None) -> FitFacts:
    """What the erasure, or else the rows of the fit, say of the fit.

    Parameters
    ----------
    given : Given
    roles : Roles
    proof : Certified or None
        The certificate on the rows of the fit, if they were passed.

    Returns
    -------
    FitFacts
    """
    meta = given.meta
    if "steps" in meta:
        return FitFacts(None, None, "it was put together from several erasures")
    record = meta.get("fit")
    if "fit" in meta and record is None:
        return FitFacts(False, None, f"{meta.get('method')} makes no promise about a concept")
    fitted = _columns_here(given)
    left = "" if record is None or fitted is None else _left(record)
    if left:
        return FitFacts(False, None, left)
    if proof is not None and _whole(roles, meta) and not meta.get("pool"):
        return _measured(given, roles, proof, known=fitted is not None)
    if fitted is None:
        return FitFacts(None, None, f"{OTHER}, or for other names of it")
    if record is None:
        if proof is not None and not proof.certificate.erased:
            return FitFacts(False, None, "a linear predictor still reads it on the training rows")
        return FitFacts(None, None, "it does not say how many rows it was fitted on, or how well")
    return _recorded(given, roles, record, fitted)


def _whole(roles: Roles, meta: dict[str, Any]) -> bool:
    """Whether the rows of the fit are there, all of them, and count alike."""
    n = meta.get("n")
    weight = (meta.get("fit") or {}).get("effective_n", n)
    return bool(
        roles.fit is not None and roles.share == 1 and len(roles.fit) == n and weight >= SAME * n
    )


def _measured(given: Given, roles: Roles, proof: Certified, *, known: bool) -> FitFacts:
    """What the certificate of the audited concept on all rows of the fit says."""
    if not proof.certificate.erased:
        read = "a linear predictor still reads it on the training rows"
        return FitFacts(False, None, read if known else f"{OTHER}: {read}")
    fit = roles.fit
    assert fit is not None
    return FitFacts(True, fit_size(fit.before, fit.concept, _tested(given, roles), fit.ids), "")


def fit_size(
    rows: Rows, concept: Concept, tested: Concept, ids: NDArray[Any] | None = None
) -> FitSize:
    """The size of a fit whose rows are there, and count alike.

    Parameters
    ----------
    rows : rows of shape (n, d)
        Of the fit, before erasure.
    concept : Concept
    tested : Concept
        Whose classes are tested: the others do not count.
    ids : array of shape (n,), optional
        Rows of one id belong together; without ids, copies do.

    Returns
    -------
    FitSize
    """
    n, share, design = rows.n_samples, 1.0, 1.0
    if tested.kind == "classes":
        share = float(np.mean(np.isin(concept.values, tested.values)))
    groups = groups_of(rows, ids)
    if groups is not None and len(np.unique(groups)) < n:
        moments = rows.moments(concept, second=False)
        design = design_effect(rows, concept, moments, None, groups)
    return FitSize(n, n * share / design)


def _left(record: dict[str, Any]) -> str:
    """What the fit left on its own rows; empty if nothing."""
    if record["left"] > EXACT:
        return (
            f"on the rows of its own fit {short(100 * record['left'])} % of the covariance with "
            "the concept are left"
        )
    if record.get("correlation", 0.0) > UNREADABLE:
        return (
            "on the rows of its own fit a column is left that has a correlation of "
            f"{record['correlation']:.2g} with the concept"
        )
    return ""


def _recorded(given: Given, roles: Roles, record: dict[str, Any], fitted: _Columns) -> FitFacts:
    """What the record of the fit says, if the concept is that of the fit."""
    here, variances = _tested(given, roles), np.asarray(record["variances"], dtype=np.float64)
    size = float(record["effective_n"])
    n, kind = int(given.meta["n"]), here.kind
    if not fitted.audited:  # which columns of the fit these are is not known
        return FitFacts(True, FitSize(n, size), "", sure=False)
    found = variances[list(fitted.audited)]
    if kind == "classes":
        places = [fitted.whole.index(j) for j in fitted.audited]
        shares = shares_of(variances[list(fitted.whole)])
        there = np.unique(here.values)
        counts = np.bincount(here.values)[there] / here.n_samples
        if len(shares) == len(there) == 2:  # variances do not tell which was the larger of the two
            shares = shares if np.argmax(shares[places]) == np.argmax(counts) else shares[::-1]
        shares = shares[places]
        total = float(shares[there].sum())
        size, shares = size * total, shares[there] / total
        if _unlike(shares, counts, size, here.n_samples):
            return FitFacts(
                None, None, "its classes had other shares in the fit: it may be another concept"
            )
        found = np.zeros(here.width)
        found[there] = shares * (1 - shares)
    elif kind == "continuous":
        ratio = here.values.var(axis=0)[found > 0] / found[found > 0]
        if np.any((ratio > VARIANCES) | (ratio < 1 / VARIANCES)):
            return FitFacts(
                None, None, "its numbers had another variance in the fit: it may be another concept"
            )
    return FitFacts(True, FitSize(n, size, tuple(found.tolist())), "", sure=False)


def _tested(given: Given, roles: Roles) -> Concept:
    return (given.first if roles.new is None else roles.new).concept


def _unlike(fit: Array, here: Array, n: float, m: int) -> bool:
    """Whether class shares differ by more than samples of one population mostly do."""
    error = np.sqrt(np.maximum(fit * (1 - fit), 1 / n) * (1 / n + 1 / m))
    return bool(np.any(np.abs(fit - here) > UNLIKE + DEVIATIONS * error))


def _columns_here(given: Given) -> _Columns | None:
    """Which columns of the concept of the fit are audited; None if it was another concept."""
    fitted, here = given.meta.get("concept"), given.first.concept
    if not fitted:
        return _Columns()
    labels, names = list(map(str, fitted["labels"])), list(map(str, here.labels))
    every = tuple(range(len(labels)))
    if here.kind == fitted["kind"]:
        if here.kind == "continuous" and len(labels) == len(names):
            return _Columns(every, every)
        if set(names) <= set(labels):
            return _Columns(tuple(labels.index(name) for name in names), every)
    if here.kind != "classes":
        return None
    # one of several concepts that were erased together: their labels are name=class
    begins = {label[: -len(names[0])] for label in labels if label.endswith(f"={names[0]}")}
    found = [begin for begin in begins if {begin + name for name in names} <= set(labels)]
    if len(found) != 1:
        return _Columns() if found else None
    whole = tuple(j for j in every if labels[j].startswith(found[0]))
    return _Columns(tuple(labels.index(found[0] + name) for name in names), whole)
