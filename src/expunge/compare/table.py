"""The result of a comparison: a table for the eye, a frame, a picture."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from expunge.plotting import new_axes

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["COLUMNS", "Comparison", "ComparisonRow", "Spread"]

COLUMNS = {
    "linear": "linear probe",
    "fresh": "fresh rows",
    "nonlinear": "non-linear",
    "bits": "bits left",
    "variance": "variance kept",
    "neighbours": "neighbours kept",
    "task": "task",
    "seconds": "seconds",
}
SHARES = ("linear", "fresh", "nonlinear", "variance", "neighbours", "task")


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over the runs."""

    mean: float
    sd: float

    @classmethod
    def of(cls, values: list[float]) -> Spread:
        """Of the values of the runs; the deviation of a single one is 0."""
        return cls(
            float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        )


@dataclass(frozen=True)
class ComparisonRow:
    """One method at one rank.

    Attributes
    ----------
    method : str
    rank : int
        Directions erased; 0 for "nothing erased".
    linear : Spread
        Held-out accuracy of a logistic regression trained on the erased rows of the fit (R² of a
        ridge regression for a continuous concept).
    fresh : Spread
        The same, trained and tested on rows the eraser never saw.
    nonlinear : Spread
        Held-out accuracy of an RBF-SVM (R² of a kernel ridge regression), trained like `linear`.
    bits : Spread or None
        Bits per row that the linear probe gains over the label shares, held out; never below 0.
    variance : Spread
        Share of the total variance of held-out rows that is kept.
    neighbours : Spread
        Share of the ten nearest neighbours that stay.
    task : Spread or None
        Held-out accuracy of a logistic regression on the task.
    seconds : Spread
        Time of the fit.
    """

    method: str
    rank: int
    linear: Spread
    fresh: Spread
    nonlinear: Spread
    bits: Spread | None
    variance: Spread
    neighbours: Spread
    task: Spread | None
    seconds: Spread


@dataclass(frozen=True)
class Comparison:
    """Methods side by side.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        "nothing" first, then methods in the order asked for, ranks ascending.
    chance : float
        Accuracy of always answering the commonest class (0, the R² of the mean, for numbers).
    runs : int
    n_train, n_test, n_probe : int
        Rows of the fit, rows held out, and the most that a probe learns from.
    left_out : dict from str to str
        Methods that do not apply, and why.
    """

    rows: tuple[ComparisonRow, ...]
    chance: float
    runs: int
    n_train: int
    n_test: int
    n_probe: int
    left_out: dict[str, str]

    def columns(self) -> list[str]:
        """Names of the measures that there are."""
        return [name for name in COLUMNS if getattr(self.rows[0], name) is not None]

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values."""
        return asdict(self)

    def to_frame(self) -> Any:
        """A pandas frame: one line per method and rank, mean and standard deviation per measure."""
        import pandas as pd

        lines = []
        for row in self.rows:
            line: dict[tuple[str, str], Any] = {}
            for name in self.columns():
                spread = getattr(row, name)
                line[name, "mean"], line[name, "sd"] = spread.mean, spread.sd
            lines.append(line)
        index = pd.MultiIndex.from_tuples(
            [(row.method, row.rank) for row in self.rows], names=["method", "rank"]
        )
        frame = pd.DataFrame(lines, index=index)
        frame.columns = pd.MultiIndex.from_tuples(frame.columns)
        return frame

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=None, caption=self._caption(), caption_justify="left")
        for header in self._headers():
            right = header not in ("method",)
            table.add_column(header, justify="right" if right else "left")
        for row in self.rows:
            table.add_row(*self._cells(row))
        return table

    def __str__(self) -> str:
        lines = [self._headers(), *(self._cells(row) for row in self.rows)]
        widths = [max(len(line[j]) for line in lines) for j in range(len(lines[0]))]
        texts = [
            "  ".join(
                cell.rjust(width) if j else cell.ljust(width)
                for j, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in lines
        ]
        return "\n".join([*texts, self._caption()])

    def _headers(self) -> list[str]:
        return ["method", "rank", *(COLUMNS[name] for name in self.columns())]

    def _cells(self, row: ComparisonRow) -> list[str]:
        cells = [row.method, str(row.rank)]
        for name in self.columns():
            s = getattr(row, name)
            if name in SHARES:
                cells.append(f"{100 * s.mean:.1f} ± {100 * s.sd:.1f}")
            else:
                cells.append(f"{s.mean:.3f} ± {s.sd:.3f}")
        return cells

    def _caption(self) -> str:
        lines = [
            f"Mean ± sd over {self.runs} run{'s' if self.runs > 1 else ''}, in % where not named; "
            f"chance {100 * self.chance:.1f} %. Fitted on {self.n_train:,} rows, tested on "
            f"{self.n_test:,}; probes learn from at most {self.n_probe:,}.",
            "linear probe, non-linear: trained on the rows of the fit. fresh rows: a linear probe "
            "trained and tested on rows the eraser never saw.",
        ]
        lines += [f"{name} left out: {reason}." for name, reason in self.left_out.items()]
        return "\n".join(lines)

    def plot(self, ax: Any = None) -> Any:
        """Probe accuracies of every method, on matplotlib axes (made if not given).

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            ax = new_axes(7, 1.2 + 0.34 * len(self.rows))
        places = np.arange(len(self.rows))[::-1]
        styles = {
            "linear": ("o", "#1f5fa8", "linear probe, rows of the fit"),
            "fresh": ("D", "#6aa5d8", "linear probe, fresh rows"),
            "nonlinear": ("^", "#c8622d", "non-linear probe"),
            "variance": ("|", "#7a7a7a", "variance kept"),
        }
        for shift, (name, (marker, color, label)) in zip(
            (0.18, 0.0, -0.18, -0.3), styles.items(), strict=True
        ):
            spreads = [getattr(row, name) for row in self.rows]
            ax.errorbar(
                [s.mean for s in spreads],
                places + shift,
                xerr=[s.sd for s in spreads],
                fmt=marker,
                color=color,
                markersize=6,
                elinewidth=1,
                label=label,
            )
        ax.axvline(self.chance, color="0.3", linewidth=1, linestyle="--", label="chance")
        ax.set_yticks(places, [f"{row.method}, rank {row.rank}" for row in self.rows])
        ax.set_xlabel("held-out accuracy, and share of variance")
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
        return ax
