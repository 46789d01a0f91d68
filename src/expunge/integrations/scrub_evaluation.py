"""What scrubbing does to a model: probes by layer, the language it models, a task; with a control.

The control erases as many directions at the same places, drawn at random. What it does comes from
erasing anything at all; what the scrubbing does beyond it comes from the concept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from expunge.atomic import write_atomically
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_rng
from expunge.integrations.calls import Calls
from expunge.integrations.collect import as_rows
from expunge.integrations.hooks import as_erasures, erasing
from expunge.integrations.labelled_batches import LabelledBatches
from expunge.integrations.language_loss import Language
from expunge.integrations.positions import rows_at
from expunge.integrations.taps import Taps
from expunge.integrations.text_batches import evaluating, to_device
from expunge.maps import as_erasure
from expunge.plotting import new_axes

__all__ = ["CONDITIONS", "ScrubEvaluation", "evaluate_scrubbing"]

CONDITIONS = ("before", "after", "control")
FOLDS = 5
POOLED = ("cls", "last", "mean")


@dataclass(frozen=True)
class ScrubEvaluation:
    """Numbers for a model as it is ("before"), scrubbed ("after"), and with the random control.

    `to_html` writes a page of them; `Audit.to_html` has a section for them, by its `model`.

    Attributes
    ----------
    layers : tuple of str
    texts : int
    chance : float
        Share of the largest class of the concept.
    probes : dict of str to tuple of float
        By condition: accuracy of a linear probe for the concept at each layer, cross-validated.
    loss : dict of str to float
        By condition: bits per token that the model's own predictions cost; empty without a head
        for language.
    kl : dict of str to float
        Bits per token by which predictions "after" and with the "control" differ from "before".
    task : dict of str to float
        By condition: accuracy for the task at the last layer of a probe trained on states before
        (amnesic probing: what the task loses with the concept); empty without a task.
    ranks : tuple of int
        Directions erased at each layer, by the scrubbing and by the control.
    """

    layers: tuple[str, ...]
    texts: int
    chance: float
    probes: dict[str, tuple[float, ...]]
    loss: dict[str, float] = field(default_factory=dict)
    kl: dict[str, float] = field(default_factory=dict)
    task: dict[str, float] = field(default_factory=dict)
    ranks: tuple[int, ...] = ()

    @property
    def perplexity(self) -> dict[str, float]:
        """By condition: two to the power of the loss."""
        return {name: 2.0**bits for name, bits in self.loss.items()}

    def to_dict(self) -> dict[str, Any]:
        """All of it, as plain values."""
        return {**asdict(self), "perplexity": self.perplexity}

    def plot(self, ax: Any = None) -> Any:
        """Probe accuracy by layer, on matplotlib axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Made if not given.

        Returns
        -------
        matplotlib.axes.Axes
        """
        ax = new_axes() if ax is None else ax
        for name, style in zip(CONDITIONS, ("o-", "s-", "^:"), strict=True):
            ax.plot(range(len(self.layers)), self.probes[name], style, label=name)
        ax.axhline(self.chance, color="0.3", linewidth=1, label="largest class")
        ax.set_xticks(range(len(self.layers)), self.layers, rotation=45, ha="right")
        ax.set_ylabel("accuracy of a linear probe")
        ax.set_ylim(0, 1.02)
        ax.legend()
        return ax

    def to_html(self, path: Any) -> None:
        """Write a page with the picture and all numbers, atomically.

        Parameters
        ----------
        path : str or path
        """
        from expunge.report.html_page import render_page
        from expunge.report.inside_model import model_section
        from expunge.report.values import cleaned

        found = cleaned(self.to_dict())
        sections = [section for section in (model_section({"model": found}),) if section]
        page = render_page("What scrubbing does to a model", sections, data=found)
        write_atomically(path, page.encode())

    def _rows(self) -> list[list[Any]]:
        wanted = {
            "bits per token": self.loss,
            "perplexity": self.perplexity,
            "bits per token from before": self.kl,
            "accuracy for the task": self.task,
        }
        return [
            [title, *(values.get(name, "") for name in CONDITIONS)]
            for title, values in wanted.items()
            if values
        ]

    def __str__(self) -> str:
        """A table of the probes, then the rest."""
        width = max(map(len, (*self.layers, "bits per token from before")))
        lines = [" ".join([f"{'layer':<{width}}", *(f"{name:>9}" for name in CONDITIONS)])]
        for i, layer in enumerate(self.layers):
            found = (self.probes[name][i] for name in CONDITIONS)
            lines.append(" ".join([f"{layer:<{width}}", *(f"{value:>9.1%}" for value in found)]))
        for title, *values in self._rows():
            shown = (f"{v:>9.3f}" if isinstance(v, float) else f"{v:>9}" for v in values)
            lines.append(" ".join([f"{title:<{width}}", *shown]))
        return "\n".join(lines)


def evaluate_scrubbing(
    scrubbing: Any,
    model: Any,
    data: Any,
    labels: Any,
    *,
    tokenizer: Any = None,
    task: Any = None,
    batch_size: int = 32,
    max_length: int | None = None,
    random_state: Any = 0,
    force: bool = False,
) -> ScrubEvaluation:
    """See `Scrubbing.evaluate`."""
    scrubbing.check_model(model, force=force)
    rng = check_rng(random_state)
    batches = LabelledBatches(
        model, data, labels, tokenizer, "text", batch_size=batch_size, max_length=max_length
    )
    erasures = {name: as_erasure(e) for name, e in as_erasures(model, scrubbing).items()}
    maps = {
        "before": {},
        "after": erasures,
        "control": {name: _random_like(e, rng) for name, e in erasures.items()},
    }
    language = Language(model, tokenizer, rng)
    pooling = scrubbing.tokens if scrubbing.tokens in POOLED else "mean"
    states: dict[str, dict[str, list[Any]]] = {c: {n: [] for n in erasures} for c in CONDITIONS}
    concept: list[Any] = []
    order: list[int] = []

    def receive(name: str, hidden: Any, calls: Calls) -> None:
        current[name].append(as_rows(rows_at(calls, name, hidden, pooling)[0]))

    with evaluating(model):
        for inputs, labels_of in batches:
            ready, masked = to_device(inputs, model), language.masked(inputs)
            for condition in CONDITIONS:
                current = states[condition]
                with _running(model, maps[condition], scrubbing, receive, list(erasures)) as taps:
                    output = taps.run_through(ready)
                if masked is not inputs:  # probes are of the texts as they are
                    with _running(model, maps[condition], scrubbing, receive, []) as taps:
                        output = taps.run_through(to_device(masked, model))
                language.add(condition, inputs, output)
            count = len(next(iter(current.values()))[-1])
            concept += list(labels_of(np.arange(count), np.zeros(count, dtype=np.intp))[0])
            order += batches.numbers(count)
    y = np.asarray(concept)
    stacked = {c: {n: np.concatenate(p) for n, p in states[c].items()} for c in CONDITIONS}
    folds = _folds(y)
    return ScrubEvaluation(
        tuple(scrubbing),
        len(y),
        float(np.unique(y, return_counts=True)[1].max() / len(y)),
        {c: tuple(_accuracy(X, X, y, folds) for X in stacked[c].values()) for c in CONDITIONS},
        language.loss(),
        language.kl(),
        _task(stacked, task, order),
        tuple(erasure.rank for erasure in erasures.values()),
    )


@contextmanager
def _running(
    model: Any, erasures: Mapping[str, Erasure], scrubbing: Any, receive: Any, names: list[str]
) -> Iterator[Taps]:
    with (
        erasing(model, erasures, tokens=scrubbing.tokens, at=scrubbing.at),
        Taps(model, names, receive, None, scrubbing.at) as taps,
    ):
        yield taps


def _random_like(erasure: Erasure, rng: np.random.Generator) -> Erasure:
    """An orthogonal erasure of as many directions at random, about the same center."""
    d, r = erasure.left.shape
    Q = np.linalg.qr(rng.normal(size=(d, r)))[0]
    return Erasure(Q, Q.T, erasure.center)


def _task(
    states: Mapping[str, Mapping[str, NDArray[Any]]], task: Any, order: list[int]
) -> dict[str, float]:
    if task is None:
        return {}
    if len(task) != len(order):
        raise InputError(
            "There must be one task label per text",
            f"{len(task)} labels for {len(order)} texts",
            "Pass as many",
        )
    y = np.asarray(task)[order]
    last = list(states["before"])[-1]
    known = states["before"][last]
    folds = _folds(y)
    return {name: _accuracy(known, states[name][last], y, folds) for name in CONDITIONS}


def _folds(y: NDArray[Any]) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    least = int(np.unique(y, return_counts=True)[1].min())
    if least < 2 or len(np.unique(y)) < 2:
        raise InputError(
            "A probe needs at least two texts of each of at least two classes",
            f"{len(np.unique(y))} classes, the smallest with {least} texts",
            "Pass more texts",
        )
    split = StratifiedKFold(min(FOLDS, least), shuffle=True, random_state=0)
    return list(split.split(y, y))


def _accuracy(known: NDArray[Any], asked: NDArray[Any], y: NDArray[Any], folds: list[Any]) -> float:
    """Share right of probes that learn from `known` and are asked about other rows of `asked`."""
    right = 0
    # one scale for all columns: each its own would blow up changes in columns that hardly vary
    center, scale = known.mean(axis=0), float(known.std(axis=0).mean()) or 1.0
    known, asked = (known - center) / scale, (asked - center) / scale
    for train, test in folds:
        probe = LogisticRegression(max_iter=5000, C=0.1).fit(known[train], y[train])
        right += int((probe.predict(asked[test]) == y[test]).sum())
    return right / len(y)
