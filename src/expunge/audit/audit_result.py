"""The result of an audit."""

from __future__ import annotations

import importlib
import json
import os
from dataclasses import dataclass
from typing import Any

from expunge.artifact import write_atomically
from expunge.audit.certificates import Certified
from expunge.audit.given import STAGES
from expunge.audit.protocols import ProtocolResult
from expunge.audit.residue import Residue
from expunge.audit.summary import summary
from expunge.audit.verdict import Verdict

__all__ = ["Audit"]

SCHEMA = 1


@dataclass(frozen=True, eq=False)
class Audit:
    """What is left of a concept and what was lost, measured.

    Attributes
    ----------
    verdict : Verdict
    same_rows, fresh_rows, training_rows : ProtocolResult or None
    residue : Residue or None
    certificates : dict from "train" and "test" to Certified
    sections : dict
        Everything else, as plain values; see `to_dict`.
    """

    verdict: Verdict
    same_rows: ProtocolResult | None
    fresh_rows: ProtocolResult | None
    training_rows: ProtocolResult | None
    residue: Residue | None
    certificates: dict[str, Certified]
    sections: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values: the content of the report."""

        def plain(part: Any) -> Any:
            return None if part is None else part.to_dict()

        return {
            "schema": SCHEMA,
            "verdict": self.verdict.to_dict(),
            "same_rows": plain(self.same_rows),
            "fresh_rows": plain(self.fresh_rows),
            "training_rows": plain(self.training_rows),
            "residue": plain(self.residue),
            "certificates": {name: found.to_dict() for name, found in self.certificates.items()},
            **self.sections,
        }

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as JSON text, written to a file too if a path is given."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"
        if path is not None:
            write_atomically(path, text.encode())
        return text

    def to_frame(self) -> Any:
        """One row for each probe, protocol and stage, as a pandas frame.

        Returns
        -------
        pandas.DataFrame
            Of every measure the value and, as ``..._low`` and ``..._high``, its limits.
        """
        import pandas as pd

        records = []
        for protocol in self._protocols():
            for stage in STAGES:
                for family, result in protocol.at(stage).items():
                    for probe in result.probes:
                        record = {
                            "protocol": protocol.name,
                            "stage": stage,
                            "family": family,
                            "probe": probe.name,
                            "n_train": result.n_train,
                            "n_test": result.n_test,
                            "chance": result.chance,
                        }
                        for name, found in probe.intervals.items():
                            record[name] = found.value
                            record[f"{name}_low"], record[f"{name}_high"] = found.low, found.high
                        records.append(record)
        return pd.DataFrame(records)

    def to_html(self, path: str | os.PathLike[str], *, model: Any = None) -> None:
        """Write the report: one page that needs no other file.

        Parameters
        ----------
        path : str or path
        model : ScrubEvaluation, optional
            What ``scrubbing.evaluate(...)`` found, as a section of the page.
        """
        importlib.import_module("expunge.report").write_report(self, path, model=model)

    def _protocols(self) -> list[ProtocolResult]:
        every = (self.same_rows, self.fresh_rows, self.training_rows)
        return [protocol for protocol in every if protocol is not None]

    def __str__(self) -> str:
        return summary(self.to_dict())

    def __repr__(self) -> str:
        return f"Audit({self.verdict.headline})"
