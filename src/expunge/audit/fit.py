"""What is known of the fit behind an erasure: its size, and whether it was exact.

Only an exact eraser may plead sampling error. One that leaves a part of the covariance with the
concept on its own rows leaves it on new rows too, however many rows it was fitted on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from expunge.audit.certificates import Certified
from expunge.audit.given import Given
from expunge.audit.residue import FitSize
from expunge.audit.roles import Roles

__all__ = ["FitFacts", "fit_facts"]

EXACT = 1e-6  # share of the covariance with the concept that rounding may leave


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
    """

    exact: bool | None
    size: FitSize | None
    why: str


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
    if (wrong := _another_concept(given)) is not None:
        return FitFacts(False, None, wrong)
    if "fit" in meta:
        return _recorded(given, meta["fit"])
    if proof is not None and not proof.certificate.erased:
        return FitFacts(False, None, "a linear predictor still reads it on the training rows")
    whole = roles.fit is not None and roles.share == 1 and len(roles.fit) == meta.get("n")
    if proof is None or not whole:
        return FitFacts(None, None, "it does not say how many rows it was fitted on, or how well")
    n = int(meta["n"])
    return FitFacts(True, FitSize(n, float(n)), "")


def _recorded(given: Given, record: dict[str, Any] | None) -> FitFacts:
    if record is None:
        method = given.meta.get("method")
        return FitFacts(False, None, f"{method} makes no promise about a concept")
    if record["left"] > EXACT:
        why = (
            f"on the rows of its own fit {100 * record['left']:.2g} % of the covariance with the "
            "concept are left"
        )
        return FitFacts(False, None, why)
    fitted = given.meta["concept"]["labels"]
    same = list(map(str, fitted)) == list(map(str, given.first.concept.labels))
    variances = tuple(record["variances"]) if same else None
    size = FitSize(int(given.meta["n"]), float(record["effective_n"]), variances)
    return FitFacts(True, size, "")


def _another_concept(given: Given) -> str | None:
    """What is wrong, if the erasure was fitted for a concept of another kind or other labels."""
    fitted, here = given.meta.get("concept"), given.first.concept
    if not fitted:
        return None
    labels = set(map(str, fitted["labels"]))
    numbers = here.kind == "continuous"
    if here.kind == fitted["kind"] and (numbers or set(map(str, here.labels)) <= labels):
        return None
    return "it was fitted for another concept than the one audited"
