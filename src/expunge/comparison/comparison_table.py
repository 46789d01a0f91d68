"""The result of a comparison: a table for the eye, a frame, a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from expunge.audit.families import FamilyResult, Status, least_excess, status_of
from expunge.audit.marks import aligned, legend, mark, sampling_error, wrapped
from expunge.audit.measures import Interval
from expunge.number_text import table_number
from expunge.plotting import new_axes

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["COLUMNS", "PROBES", "Comparison", "ComparisonRow", "Probed", "Spread"]

COLUMNS = {
    "linear": "linear, rows of the fit",
    "fresh": "linear, fresh rows",
    "nonlinear": "non-linear, fresh rows",
    "bits": "bits, fresh rows",
    "variance": "variance kept",
    "neighbours": "neighbours kept",
    "task": "task",
    "seconds": "seconds",
}
PROBES = ("linear", "fresh", "nonlinear")
SHARES = (*PROBES, "variance", "neighbours", "task")


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over the runs; None for the deviation of a single one."""

    mean: float
    sd: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Of the values of the runs."""
        sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
        return cls(float(np.mean(values)), sd)


@dataclass(frozen=True)
class Probed:
    """The strongest probe of a family on held-out rows.

    Attributes
    ----------
    mean, sd : float
        Balanced accuracy (R² for numbers), over the runs; sd is None for a single one.
    low, high : float
        Limits that hold for all probes of the family at once, the mean over the runs.
    chance : float
        Without information: one over the number of classes, half for labels, 0 for R².
    status : {"at chance", "found", "cannot tell"}
        What an audit would say of these limits.
    explained : bool
        Whether an exact eraser left it on fresh rows and it is no more than sampling error of the
        fit explains.
    """

    mean: float
    sd: float | None
    low: float
    high: float
    chance: float
    status: Status
    explained: bool = False

    @classmethod
    def of(
        cls,
        results: Sequence[FamilyResult],
        leak: float,
        high: float = -np.inf,
        parts_high: Mapping[int, float] | None = None,
    ) -> Self:
        """Of the results of the runs, where sampling error reaches up to `high`.

        One of several labels or numbers that is found by itself, where sampling error reaches up to
        its number in `parts_high`, is found in most runs or not at all.
        """
        spread = Spread.of([r.strongest.value for r in results])
        low, top = (
            float(np.mean([getattr(r.strongest, k) for r in results])) for k in ("low", "high")
        )
        chance = float(np.mean([r.chance for r in results]))
        status = status_of(Interval(spread.mean, low, top), chance, leak)
        parts = [r.part for r in results if r.part is not None]
        if 2 * len(parts) > len(results):
            status = "found"
        else:
            parts = []
        reach = parts_high or {}
        explained = status == "found" and bool(spread.mean <= high)
        explained &= all(p.limits.value <= reach.get(p.column, -np.inf) for p in parts)
        return cls(spread.mean, spread.sd, low, top, chance, status, explained)


@dataclass(frozen=True)
class ComparisonRow:
    """One method at one rank.

    Attributes
    ----------
    method : str
    ranks : tuple of int
        Directions erased in each run; 0 for "nothing erased".
    linear : Probed or None
        Linear probes trained on the erased rows of the fit. An exact eraser is at chance here by
        construction.
    fresh : Probed or None
        Linear probes trained and tested on rows the eraser never saw, in turns.
    nonlinear : Probed or None
        Non-linear probes, likewise on fresh rows.
    bits : Spread or None
        Bits per fresh row that the best linear probe gains over the shares of the classes.
    variance : Spread
        Share of the total variance of held-out rows that is kept.
    neighbours : Spread
        Share of the ten nearest neighbours (by cosine, among different rows) that stay.
    task : Probed or None
        Linear probes of the task, trained on the erased rows of the fit.
    seconds : Spread
        Time of the fit; the one number that differs between equal calls.
    """

    method: str
    ranks: tuple[int, ...]
    linear: Probed | None
    fresh: Probed | None
    nonlinear: Probed | None
    bits: Spread | None
    variance: Spread
    neighbours: Spread
    task: Probed | None
    seconds: Spread

    @property
    def rank(self) -> int | str:
        """Directions erased; "3-5" where it differs between runs."""
        least, most = min(self.ranks), max(self.ranks)
        return least if least == most else f"{least}-{most}"


@dataclass(frozen=True)
class Comparison:
    """Methods side by side.

    Attributes
    ----------
    rows : tuple of ComparisonRow
        "nothing" first, then methods in the order asked for, ranks ascending.
    statistic : {"balanced_accuracy", "r2"}
        What the probes are measured by.
    chance : dict from str to float
        Its value without information, for each column of probes.
    residue : dict from str to float, or None
        What sampling error of an exact fit leaves to linear probes on fresh rows: expected "here",
        with the rows these probes have; "unlimited"; and "high", exceeded in one fit of twenty.
    leak : float
        The least excess over chance that matters.
    confidence : float
        Of the limits.
    runs : int
    n_train, n_test : int
        Rows of the fit and rows held out, in the last run.
    notes : tuple of str
        What to know when reading the table.
    left_out : dict from str to str
        Methods that do not apply, and why.
    """

    rows: tuple[ComparisonRow, ...]
    statistic: str
    chance: dict[str, float]
    residue: dict[str, float] | None
    leak: float
    confidence: float
    runs: int
    n_train: int
    n_test: int
    notes: tuple[str, ...]
    left_out: dict[str, str]

    def columns(self) -> list[str]:
        """Names of the measures that there are."""
        return [name for name in COLUMNS if getattr(self.rows[0], name) is not None]

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values."""
        plain = asdict(self)
        for line, row in zip(plain["rows"], self.rows, strict=True):
            line["rank"] = row.rank
        return plain

    def to_frame(self) -> Any:
        """A pandas frame: one line per method and rank, the parts of each measure as columns."""
        import pandas as pd

        lines = [
            {
                (name, part): value
                for name in self.columns()
                for part, value in asdict(getattr(row, name)).items()
            }
            for row in self.rows
        ]
        index = pd.MultiIndex.from_tuples(
            [(row.method, row.rank) for row in self.rows], names=["method", "rank"]
        )
        frame = pd.DataFrame(lines, index=index)
        frame.columns = pd.MultiIndex.from_tuples(frame.columns)
        return frame

    def __rich__(self) -> Table:
        from rich.table import Table

        table = Table(title=None, caption="\n".join(self._caption()), caption_justify="left")
        header, *lines = self._lines()
        for name in header:
            table.add_column(name, justify="left" if name == "method" else "right")
        for line in lines:
            table.add_row(*line)
        return table

    def __str__(self) -> str:
        texts = aligned(self._lines())
        return "\n".join([*texts, *wrapped(self._caption(), texts)])

    def _lines(self) -> list[list[str]]:
        """The cells of the heading, of chance, and of every row."""
        names = self.columns()
        lines = [["method", "rank", *(COLUMNS[name] for name in names)]]
        constant = {"chance": self.chance}
        if self.residue is not None and "fresh" in names:
            constant["sampling error"] = {"fresh": self.residue["here"]}
        for title, values in constant.items():
            known = (f"{self._text(n, values[n])}  " if n in values else "" for n in names)
            lines.append([title, "", *known])
        for row in self.rows:
            cells = (self._cell(name, getattr(row, name)) for name in names)
            lines.append([row.method, str(row.rank), *cells])
        return lines

    def _text(self, name: str, value: float) -> str:
        """A share in percent; an R², bits and seconds as they are."""
        plain = name not in SHARES or (name in PROBES and self.statistic == "r2")
        return table_number(value, share=not plain)

    def _cell(self, name: str, found: Spread | Probed) -> str:
        text = self._text(name, found.mean)
        if isinstance(found, Probed):
            text += f" [{self._text(name, found.low)}, {self._text(name, found.high)}]"
            return f"{text} {mark(found.status, found.explained)}" if name in PROBES else text
        return text if found.sd is None else f"{text} ± {self._text(name, found.sd)}"

    def _caption(self) -> list[str]:
        r2 = self.statistic == "r2"
        chance = next(iter(self.chance.values()), 0.0)
        lines = [
            f"{f'Means over {self.runs} runs' if self.runs > 1 else 'One run'}. Probes: "
            f"{'R²' if r2 else 'balanced accuracy in %'} of the strongest on held-out rows, with "
            f"limits at {self.confidence:.0%} that hold for all probes at once. Shares kept are in "
            f"%{', ± sd over the runs' if self.runs > 1 else ''}.",
            legend(self.statistic, least_excess(chance, self.leak)),
            f"rows of the fit: probes trained on those {self.n_train:,}, where an exact eraser is "
            f"at chance by construction. fresh rows: probes trained and tested on the "
            f"{self.n_test:,} rows the eraser never saw, in turns.",
        ]
        if self.residue is not None and "fresh" in self.chance:
            ceiling, high = (self._text("fresh", self.residue[k]) for k in ("unlimited", "high"))
            lines.append(sampling_error(ceiling, high))
        if "task" in self.chance:
            lines.append("task: balanced accuracy in % of linear probes of the task.")
        lines += [f"Note: {note}" for note in self.notes]
        return [*lines, *(f"{name} left out: {reason}." for name, reason in self.left_out.items())]

    def plot(self, ax: Any = None) -> Any:
        """Probes and variance kept of every method, on matplotlib axes (made if not given)."""
        if ax is None:
            ax = new_axes(7, 1.8 + 0.34 * len(self.rows))
        places = np.arange(len(self.rows))[::-1]
        styles = {
            "linear": ("o", "#1f5fa8", "linear probes, rows of the fit"),
            "fresh": ("D", "#6aa5d8", "linear probes, fresh rows"),
            "nonlinear": ("^", "#c8622d", "non-linear probes, fresh rows"),
            "variance": ("|", "#7a7a7a", "share of variance kept"),
        }
        shown = [name for name in styles if name in self.columns()]
        for shift, name in zip(np.linspace(0.24, -0.24, len(shown)), shown, strict=True):
            marker, color, label = styles[name]
            found = [getattr(row, name) for row in self.rows]
            ax.errorbar(
                [f.mean for f in found],
                places + shift,
                xerr=np.transpose([_reach(f) for f in found]),
                fmt=marker,
                color=color,
                markersize=6,
                elinewidth=1,
                label=label,
            )
        chances = sorted({self.chance[name] for name in PROBES if name in self.chance})
        for count, chance in enumerate(chances):
            name = "_more" if count else "chance"  # an underscore keeps it out of the legend
            ax.axvline(chance, color="0.3", linewidth=1, linestyle="--", label=name)
        ax.set_yticks(places, [f"{row.method}, rank {row.rank}" for row in self.rows])
        what = "R²" if self.statistic == "r2" else "balanced accuracy"
        ax.set_xlabel(f"{what} of the strongest probe, and share of variance")
        ax.grid(axis="y", color="0.9")
        ax.set_axisbelow(True)
        ax.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.12), ncols=2)
        return ax


def _reach(found: Spread | Probed) -> tuple[float, float]:
    """How far an error bar goes to either side: to the limits, or one standard deviation."""
    if isinstance(found, Probed):
        return max(found.mean - found.low, 0.0), max(found.high - found.mean, 0.0)
    return found.sd or 0.0, found.sd or 0.0
