"""The result of a sweep over ranks: a table, a picture, an erasure for each rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from expunge.audit.families import FamilyResult, least_excess
from expunge.audit.marks import aligned, legend, mark, sampling_error, wrapped
from expunge.audit.residue import Residue
from expunge.erasure import Erasure
from expunge.number_text import table_number
from expunge.plotting import new_axes

__all__ = ["PathPoint", "RankPath"]


@dataclass(frozen=True, eq=False)
class PathPoint:
    """One rank of a path.

    Attributes
    ----------
    rank : int
    loss : float
        Mean loss of the best linear predictor on the erased rows of the fit; its coefficients are
        charged `alpha` of the variance of each column, as in a certificate.
    score : float
        Its balanced accuracy (R² for numbers) on the same rows, answers taken relative to those of
        a predictor that ignores x.
    linear : FamilyResult or None
        Linear probes trained on the erased rows of the fit and tested on fresh rows, as in an
        audit; None without test rows. An exact eraser is at chance here by construction.
    fresh : FamilyResult or None
        Linear probes trained and tested on fresh rows, in turns.
    variance_kept : float
        Share of the total variance of the rows of the fit that the erasure leaves.
    solver : str
    """

    rank: int
    loss: float
    score: float
    linear: FamilyResult | None
    fresh: FamilyResult | None
    variance_kept: float
    solver: str

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        probed = {name: getattr(self, name) for name in ("linear", "fresh")}
        plain = {name: None if p is None else p.to_dict() for name, p in probed.items()}
        return {**vars(self), **plain}


@dataclass(frozen=True, eq=False)
class RankPath:
    """What erasing K directions leaves and costs, for a range of K.

    Attributes
    ----------
    points : tuple of PathPoint
        Rank 0, nothing erased, first.
    erasures : tuple of Erasure
        In the same order.
    bound : float
        Loss of a predictor that ignores x.
    statistic : {"balanced_accuracy", "r2"}
        What predictors and probes are measured by.
    chance : float
        Its value without information on the rows of the fit: one over the number of classes, half
        for labels, 0 for R². Probes have their own, of the classes in the test rows.
    residue : Residue or None
        What sampling error of an exact fit leaves to probes on fresh rows.
    leak : float
        The least excess over chance that matters.
    notes : tuple of str
        What to know when reading the table.
    """

    points: tuple[PathPoint, ...]
    erasures: tuple[Erasure, ...]
    bound: float
    statistic: str
    chance: float
    residue: Residue | None
    leak: float
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return {
            "bound": self.bound,
            "statistic": self.statistic,
            "chance": self.chance,
            "residue": None if self.residue is None else self.residue.to_dict(),
            "leak": self.leak,
            "notes": list(self.notes),
            "points": [point.to_dict() for point in self.points],
        }

    def to_frame(self) -> Any:
        """A pandas frame: one line per rank."""
        import pandas as pd

        lines = []
        for p in self.points:
            line: dict[str, Any] = {"loss": p.loss, "score": p.score}
            for name in self._probed():
                found = getattr(p, name)
                line |= {name: found.strongest.value, f"{name}_chance": found.chance}
                line |= {f"{name}_low": found.strongest.low, f"{name}_high": found.strongest.high}
                line[f"{name}_status"] = found.status
            lines.append({**line, "variance_kept": p.variance_kept, "solver": p.solver})
        return pd.DataFrame(lines, index=pd.Index([p.rank for p in self.points], name="rank"))

    def _probed(self) -> list[str]:
        return [name for name in ("linear", "fresh") if getattr(self.points[0], name) is not None]

    def _text(self, value: float) -> str:
        return table_number(value, share=self.statistic != "r2")

    def _cell(self, name: str, point: PathPoint) -> str:
        found: FamilyResult = getattr(point, name)
        value, explained = found.strongest.value, False
        exact = point.solver == "closed_form"  # no excuse for what is left in the fit itself
        if name == "fresh" and exact and self.residue is not None:
            explained = value <= self.residue.high(self.statistic)
            if (part := found.part) is not None:
                explained &= part.limits.value <= self.residue.parts_high.get(part.column, -np.inf)
        return f"{self._text(value)} {mark(found.status, explained)}"

    def __str__(self) -> str:
        titles = {"linear": "linear, rows of the fit", "fresh": "linear, fresh rows"}
        probed = self._probed()
        lines = [["rank", "loss", "best in the fit", *(titles[n] for n in probed), "variance kept"]]
        chances = (f"{self._text(getattr(self.points[0], n).chance)}  " for n in probed)
        lines.append(["chance", f"{self.bound:.4f}", self._text(self.chance), *chances, ""])
        if probed and self.residue is not None:
            blank = [""] * (2 + probed.index("fresh"))
            here = self._text(self.residue.here(self.statistic))
            lines.append(["sampling error", *blank, f"{here}  ", ""])
        for p in self.points:
            cells = (self._cell(name, p) for name in probed)
            kept = table_number(p.variance_kept, share=True)
            lines.append([str(p.rank), f"{p.loss:.4f}", self._text(p.score), *cells, kept])
        texts = aligned(lines, left=0)
        return "\n".join([*texts, *wrapped(self._caption(), texts)])

    def _caption(self) -> list[str]:
        what = "R²" if self.statistic == "r2" else "balanced accuracy in %"
        lines = [
            "loss: of the best linear predictor on the erased rows of the fit; best in the fit: "
            f"its {what} there. Variance kept in %."
        ]
        if self._probed():
            lines.append(f"linear: {what} of the strongest probe.")
            lines.append(legend(self.statistic, least_excess(self.chance, self.leak)))
            if self.residue is not None:
                found = self.residue.ceiling(self.statistic), self.residue.high(self.statistic)
                lines.append(sampling_error(*map(self._text, found)))
        return [*lines, *(f"Note: {note}" for note in self.notes)]

    def plot(self, ax: Any = None) -> Any:
        """Predictors, probes and variance kept against the rank, on matplotlib axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Made if not given.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            ax = new_axes()
        ranks = [p.rank for p in self.points]
        ax.plot(ranks, [p.score for p in self.points], "o-", label="best predictor, in the fit")
        titles = {"linear": "linear probes, rows of the fit", "fresh": "linear probes, fresh rows"}
        for name, style in (("linear", "s--"), ("fresh", "D--")):
            if name in self._probed():
                values = [getattr(p, name).strongest.value for p in self.points]
                ax.plot(ranks, values, style, label=titles[name])
        kept = [p.variance_kept for p in self.points]
        ax.plot(ranks, kept, "^:", color="0.5", label="share of variance kept")
        ax.axhline(self.chance, color="0.3", linewidth=1, label="chance")
        ax.set_xlabel("erased directions K")
        what = "R²" if self.statistic == "r2" else "balanced accuracy"
        ax.set_ylabel(f"{what}, share of variance")
        if self.statistic != "r2":
            ax.set_ylim(0, 1.03)
        ax.legend(frameon=False)
        return ax
