"""Certificates of an audit: on the rows of the fit, and on the test rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expunge.audit.given import AuditedRows
from expunge.audit.sampling import stratified
from expunge.erasure import Erasure
from expunge.game.certificate import Certificate, certify, certify_moments
from expunge.game.kept import kept_in_rows
from expunge.game.losses import loss_for

__all__ = ["Certified", "certified"]

ROWS = 20_000  # where a predictor has to be trained


@dataclass(frozen=True)
class Certified:
    """A certificate and the rows it holds for.

    Attributes
    ----------
    certificate : Certificate
    n_rows, n_rows_all : int
        Rows it was computed on, and those there were.
    """

    certificate: Certificate
    n_rows: int
    n_rows_all: int

    def to_dict(self) -> dict[str, Any]:
        """The fields of the certificate, its text and the numbers of rows."""
        return {
            **self.certificate.to_dict(),
            "text": str(self.certificate),
            "n_rows": self.n_rows,
            "n_rows_all": self.n_rows_all,
        }


def certified(erasure: Erasure, part: AuditedRows, seed: int) -> Certified:
    """The certificate on all rows where they prove erasure at once, else on a sample of them."""
    rows = part.before
    concept = part.concept.with_weight(np.ones(len(part)))  # classes of these rows only
    loss = loss_for("auto", concept.kind, concept.width)
    moments = rows.moments(concept, second=False)
    kept = kept_in_rows(rows, erasure, moments, concept, None)
    quick = certify_moments(moments, erasure, loss, smallest=True)
    if quick.erased:
        return Certified(quick.in_units(kept), len(part), len(part))
    sample = stratified(concept, ROWS, seed)
    found = certify(rows.take(sample), concept.take(sample), erasure, loss, kept=kept)
    return Certified(found, len(sample), len(part))
