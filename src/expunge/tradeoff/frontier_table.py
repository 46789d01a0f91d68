"""The result of tracing a frontier: a table, a frame, a picture."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from typing import Any, Literal

from expunge.artifact import write_atomically
from expunge.audit.marks import aligned, wrapped
from expunge.audit.strongest import StrongestProbe
from expunge.number_text import table_number
from expunge.plotting import new_axes

__all__ = ["NOTHING", "Frontier", "FrontierPoint"]

NOTHING = "nothing"
Against = Literal["change", "neighbours"]
TITLES: dict[Against, str] = {
    "change": "change: mean squared move / variance",
    "neighbours": "share of the ten nearest neighbours kept",
}


@dataclass(frozen=True)
class FrontierPoint:
    """One eraser.

    Attributes
    ----------
    name : str
        "nothing" for the rows as they are.
    probe : StrongestProbe
        The strongest probe on new rows: which one, its value and its limits.
    change : float
        Mean squared move of a new row, in units of their total variance.
    neighbours : float
        Share of the ten nearest neighbours (by cosine, among different new rows) that stay.
    seconds : float
        Time of the fit; the one number that differs between equal calls.
    fold : bool
        Whether it is a fold and no projection.
    """

    name: str
    probe: StrongestProbe
    change: float
    neighbours: float
    seconds: float
    fold: bool = False


@dataclass(frozen=True)
class Frontier:
    """What the strongest probe reads after each eraser, and what each costs.

    Attributes
    ----------
    points : tuple of FrontierPoint
        "nothing" first, then erasers in the order asked for.
    statistic : {"balanced_accuracy", "r2"}
        What probes are measured by.
    chance : float
        Its value without information.
    confidence : float
        Of the limits.
    n_fit, n_probe, n_test : int
        Rows that erasers were fitted on, rows that probes learnt from and were tested on.
    notes : tuple of str
        What to know when reading the table.
    left_out : dict from str to str
        Erasers that do not apply, and why.
    """

    points: tuple[FrontierPoint, ...]
    statistic: str
    chance: float
    confidence: float
    n_fit: int
    n_probe: int
    n_test: int
    notes: tuple[str, ...]
    left_out: dict[str, str]

    def __getitem__(self, name: str) -> FrontierPoint:
        """The point of an eraser, by its name."""
        for point in self.points:
            if point.name == name:
                return point
        raise KeyError(name)

    @property
    def efficient(self) -> tuple[str, ...]:
        """Names of erasers that no other beats: none leaves less to the probes and changes less."""

        def beaten(point: FrontierPoint) -> bool:
            return any(
                other.change <= point.change
                and other.probe.value <= point.probe.value
                and (other.change, other.probe.value) != (point.change, point.probe.value)
                for other in self.points
            )

        return tuple(point.name for point in self.points if not beaten(point))

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return {**asdict(self), "efficient": list(self.efficient)}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as JSON text, written to a file too if a path is given."""
        text = json.dumps(self.to_dict(), indent=1, allow_nan=False, ensure_ascii=False) + "\n"
        if path is not None:
            write_atomically(path, text.encode())
        return text

    def to_frame(self) -> Any:
        """A pandas frame: one line per eraser."""
        import pandas as pd

        lines = [
            {
                "probe": point.probe.value,
                "probe_low": point.probe.low,
                "probe_high": point.probe.high,
                "strongest": point.probe.name,
                "change": point.change,
                "neighbours": point.neighbours,
                "seconds": point.seconds,
                "efficient": point.name in self.efficient,
            }
            for point in self.points
        ]
        return pd.DataFrame(lines, index=pd.Index([p.name for p in self.points], name="eraser"))

    def _text(self, value: float) -> str:
        return table_number(value, share=self.statistic != "r2")

    def __str__(self) -> str:
        lines = [["eraser", "strongest probe", "change", "neighbours kept", "which probe"]]
        lines.append(["chance", f"{self._text(self.chance)}  ", "", "", ""])
        for point in self.points:
            found = point.probe
            limits = f"[{self._text(found.low)}, {self._text(found.high)}]"
            lines.append(
                [
                    point.name,
                    f"{self._text(found.value)} {limits} {self._mark(point)}",
                    f"{point.change:.3f}",
                    table_number(point.neighbours, share=True),
                    found.name,
                ]
            )
        texts = aligned(lines)
        return "\n".join([*texts, *wrapped(self._caption(), texts)])

    def _mark(self, point: FrontierPoint) -> str:
        return "+" if point.name in self.efficient else " "

    def _caption(self) -> list[str]:
        what = "R²" if self.statistic == "r2" else "balanced accuracy in %"
        lines = [
            f"Strongest probe: {what} on {self.n_test:,} rows, with limits at "
            f"{self.confidence:.0%}; it was chosen on the {self.n_probe:,} rows that it learnt "
            f"from. Erasers were fitted on {self.n_fit:,} others. change: mean squared move of a "
            "row / total variance. Neighbours kept: of the ten nearest, in %.",
            "+ no other eraser both leaves less to the probes and changes less.",
        ]
        lines += [f"Note: {note}" for note in self.notes]
        return [*lines, *(f"{name} left out: {reason}." for name, reason in self.left_out.items())]

    def plot(self, ax: Any = None, against: Against = "change") -> Any:
        """The strongest probe against a cost, on matplotlib axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Made if not given.
        against : {"change", "neighbours"}

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            ax = new_axes(7, 4.6)
        for fold, color, marker, label in (
            (False, "#1f5fa8", "o", "projections"),
            (True, "#c8622d", "D", "folds"),
        ):
            some = [point for point in self.points if point.fold == fold]
            if not some:
                continue
            ax.errorbar(
                [getattr(point, against) for point in some],
                [point.probe.value for point in some],
                yerr=[
                    [max(p.probe.value - p.probe.low, 0.0) for p in some],
                    [max(p.probe.high - p.probe.value, 0.0) for p in some],
                ],
                fmt=marker,
                color=color,
                elinewidth=1,
                label=label,
            )
            for point in some:
                place = (getattr(point, against), point.probe.value)
                ax.annotate(
                    point.name, place, (5, 4), textcoords="offset points", fontsize=7, color="0.25"
                )
        ax.axhline(self.chance, color="0.3", linewidth=1, linestyle="--", label="chance")
        ax.margins(x=0.16)  # room for the names
        ax.set_xlabel(TITLES[against])
        what = "R²" if self.statistic == "r2" else "balanced accuracy"
        ax.set_ylabel(f"{what} of the strongest probe, new rows")
        ax.legend(frameon=False)
        return ax
