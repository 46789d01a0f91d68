"""The audit's linear probes on the erasures of a path."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from expunge.audit.disguise import resemblance
from expunge.audit.families import FamilyResult
from expunge.audit.fit import fit_size
from expunge.audit.fresh import fresh_rows
from expunge.audit.given import AuditedRows, as_given, gather
from expunge.audit.probe_memory import remembered
from expunge.audit.probes import choose_probes
from expunge.audit.protocols import Sizes, Terms, check_sizes, fresh_protocol, same_protocol
from expunge.audit.residue import LabelledRows, Residue, residue_of_fit
from expunge.audit.sampling import too_few
from expunge.audit.units import flattened
from expunge.concept import Concept
from expunge.erasers import SAL
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.linalg import Array
from expunge.rows.base import Rows
from expunge.rows.lazy_rows import ChangedRows, SelectedRows

__all__ = ["PathProbes"]

CONFIDENCE = 0.95
NONE = (
    "no test rows: all of this was measured on the rows of the fit and shows nothing about new "
    "rows. Pass X_test and y_test."
)


@dataclass(eq=False)
class PathProbes:
    """Rows of the fit, test rows and probes.

    Attributes
    ----------
    rows : rows of shape (n, d)
        Those of the fit that have weight.
    concept : Concept
    test : pair (rows, concept) as passed, or None
    terms : Terms
    notes : list of str
    tested : pair (rows, concept) or None
        The fresh rows, once they were probed.
    disguised : bool or None
        Whether test rows look like rows of the fit in another form; None: not looked at yet.
    """

    rows: SelectedRows
    concept: Concept
    test: tuple[Any, Any] | None
    terms: Terms
    notes: list[str] = field(default_factory=list)
    tested: LabelledRows | None = None
    disguised: bool | None = None

    @classmethod
    def of(
        cls,
        rows: Rows,
        concept: Concept,
        weights: Array | None,
        X_test: Any,
        y_test: Any,
        *,
        probes: Any,
        sizes: Any,
        leak: float,
        seed: int,
    ) -> PathProbes:
        """Everything checked; parameters as in `rank_path`."""
        check_number(leak, "leak", strict=True, most=1)
        limits = check_sizes(sizes, Sizes())
        if (X_test is None) != (y_test is None):
            raise InputError(
                "X_test and y_test belong together", "one without the other", "Pass both or neither"
            )
        chosen = [p for p in choose_probes(probes, concept.kind) if p.family == "linear"]
        if not chosen:
            raise InputError(
                "A path is probed by linear probes",
                f"probes={probes!r}",
                "Pass probes='linear', or compare for others",
            )
        terms = Terms(
            [remembered(probe) for probe in chosen],
            limits,
            CONFIDENCE,
            leak,
            seed,
            lambda note: None,
        )
        counted = np.arange(rows.n_samples) if weights is None else np.flatnonzero(weights)
        test = None if X_test is None else (X_test, y_test)
        made = cls(SelectedRows(rows, counted), concept.take(counted), test, terms)
        made.notes += [NONE] if test is None else []
        return made

    def probed(self, erasure: Erasure) -> tuple[FamilyResult | None, FamilyResult | None]:
        """The linear family on fresh rows: trained on the rows of the fit, and on fresh rows."""
        if self.test is None:
            return None, None
        given = gather(
            erasure,
            self.rows,
            as_given(self.concept),
            *self.test,
            task=None,
            names=None,
            concept_type=self.concept.kind,
        )
        train, test = given.train, given.test
        assert train is not None
        assert test is not None
        fresh = fresh_rows(test.before, train.before, {}).fresh
        new, left = test.take(fresh), int((~fresh).sum())
        if len(new) == 0 or too_few(new):
            self._note(f"of the {len(test):,} test rows {len(new):,} are fresh, too few to probe")
            return None, None
        if self._looks_like_the_fit(new):
            return None, None
        if left:
            self._note(f"{left:,} of the {len(test):,} test rows are rows of the fit, and left out")
        self.tested = new.before, new.concept
        same = same_protocol(train, new, self.terms).after["linear"]
        return same, fresh_protocol(new, self.terms).after["linear"]

    def _looks_like_the_fit(self, new: AuditedRows) -> bool:
        """Whether test rows may be rows of the fit in another form, by an exact erasure of both."""
        if self.disguised is None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of a method that nobody asked for
                eraser = SAL(concept_type=self.concept.kind).fit(self.rows, as_given(self.concept))
            erasure = eraser.erasure_
            after = ChangedRows(new.before, lambda X, index: erasure.transform(X))
            part = replace(new, after=flattened(after, new.before))
            self.disguised = resemblance(part, erasure, self.rows.n_samples) != "none"
        if self.disguised:
            self._note(
                f"the {len(new):,} test rows fit the erasure more closely than rows it has not "
                "seen: they look like rows of the fit in another form, and were not probed"
            )
        return self.disguised

    def residue(self, probe_rows: int) -> Residue | None:
        """What sampling error of an exact fit leaves to probes that have so many fresh rows."""
        fitted = self.rows, self.concept
        new = fitted if self.tested is None else self.tested
        size = fit_size(*fitted, new[1])
        return residue_of_fit(size, probe_rows, fitted, new)

    def _note(self, note: str) -> None:
        if f"{note}." not in self.notes:
            self.notes.append(f"{note}.")
