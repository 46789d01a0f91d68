"""Concept scrubbing: an eraser at every layer, each fitted on states already scrubbed below."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from expunge.audit.gain import held_out_gain
from expunge.erasers import RLACE
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_choice, check_concept, check_number, check_rng
from expunge.integrations.calls import Calls
from expunge.integrations.collect import as_rows
from expunge.integrations.hooks import PLACES, erasing
from expunge.integrations.labelled_batches import LabelledBatches
from expunge.integrations.model_identity import identity_of
from expunge.integrations.module_names import check_distinct, relative_name, resolve
from expunge.integrations.positions import Tokens, check_tokens, rows_at, without_special
from expunge.integrations.scrub_shared import SharedFit, stream_places
from expunge.integrations.scrubbing import LayerReport, Scrubbing
from expunge.integrations.state_cache import StateCache
from expunge.integrations.taps import Place, Taps
from expunge.integrations.text_batches import evaluating, to_device
from expunge.optional import require
from expunge.progress import Progress

__all__ = ["scrub"]

torch = require("torch", "transformers")

MOST_TEXTS = 1 << 32  # of a batch
SEED = 0  # of the folds of the report


def scrub(
    model: Any,
    data: Any,
    labels: Any,
    layers: str | Sequence[str | Sequence[str]],
    *,
    eraser: Any = None,
    tokenizer: Any = None,
    tokens: Tokens = "all",
    at: Place = "output",
    labels_per: Literal["text", "token"] = "text",
    shared: bool = False,
    cache: str | os.PathLike[str] | None = None,
    batch_size: int = 32,
    max_length: int | None = None,
    sample: int = 4096,
    random_state: Any = None,
    progress: bool = False,
) -> Scrubbing:
    """Fit an eraser at every layer in order, each on states already scrubbed below.

    One pass over the data per layer, up to that layer and no further. Only sums are kept, and a
    sample of rows for the report, so memory does not grow with the data; unless there is a `cache`,
    which saves the runs of lower layers. The model is run without dropout and is left as it was.

    Parameters
    ----------
    model : torch.nn.Module
        A Hugging Face model, or any other module.
    data : sequence or iterable of str, or iterable of batches
        Texts (then `tokenizer` is needed): a list, a series, a column of a dataset, also of one
        that comes as a stream (IterableDataset). Or a DataLoader or list whose batches are texts or
        what the model takes: mappings, with the labels under "labels" or as ``(batch, labels)``.
    labels : sequence or None
        The concept: one label per text in the order of the data, which then must not be shuffled;
        or with ``labels_per="token"`` one list per text, with one label per token. None if the
        batches bring their labels.
    layers : str, or sequence of str or of groups
        Names of modules. A tuple of names is a group, fitted in one pass on states scrubbed by the
        groups before it. They are taken in the order in which the model runs them.
    eraser : eraser, optional
        Any eraser with `partial_fit`; a copy is fitted at every layer. RLACE() by default.
    tokenizer : Hugging Face tokenizer, optional
        For texts.
    tokens : str, int, mapping, mask or callable
        Where to fit and erase; see `erasing`. Padding is never fitted on.
    at : {"output", "input"}
        Whether to fit and erase what the modules give or what they are called with.
    labels_per : {"text", "token"}
        Whether a label is for a text, hence for all its tokens, or for a token. Tokens labelled
        None or -100 are left out of the fit.
    shared : bool
        Whether to fit one erasure for the whole residual stream, which can be baked into the
        weights; see `bake`. It erases more directions than one per layer. `layers` is then "all".
    cache : "memory" or path, optional
        Where to keep the states of a layer for the passes that follow, so that every layer runs
        once per batch and not once per layer above it: in memory or in a folder. It holds one
        vector per token of the data. The layers must be of one list, and batches come in one order.
    batch_size, max_length
        For texts; see `collect`.
    sample : int
        Rows per layer for the report; 0 for none.
    random_state : int, Generator or None
        Fixes the sample.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    Scrubbing
        A mapping from layers to erasures, with `report`, `erasing(model)` and `save(path)`.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.transformers import scrub
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    >>> x = torch.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> scrubbing = scrub(model, [(x, ["f", "f", "m", "m"])], None, ["0", "2"])
    >>> list(scrubbing), scrubbing["0"].rank
    (['0', '2'], 1)
    >>> with scrubbing.erasing(model), torch.no_grad():
    ...     bool(torch.allclose(*model[0](x).view(2, 2, 3).mean(dim=1), atol=1e-6))
    True
    """
    tokens = without_special(tokens, tokenizer)
    check_tokens(tokens)
    check_choice(at, PLACES, "at")
    check_choice(labels_per, ("text", "token"), "labels_per")
    check_number(sample, "sample", whole=True)
    eraser = _check_eraser(RLACE() if eraser is None else eraser)
    groups = _groups(model, layers)
    if labels_per == "token" and isinstance(tokens, str) and tokens == "mean":
        raise InputError(
            "The mean of tokens has no label of its own",
            "labels_per='token' with tokens='mean'",
            "Pass one label per text",
        )
    batches = LabelledBatches(
        model, data, labels, tokenizer, labels_per, batch_size=batch_size, max_length=max_length
    )
    job = _Job(model, batches, eraser, tokens, at, sample, check_rng(random_state))
    with evaluating(model):
        if shared:
            return _scrub_stream(job, groups, layers, progress)
        done, report = _scrub_layers(job, groups, cache, progress)
    erasures = {relative_name(model, name): erasure for name, erasure in done.items()}
    return Scrubbing(erasures, report, tokens, at, identity_of(model, erasures))


@dataclass(frozen=True)
class _Job:
    """What is the same for all layers."""

    model: Any
    batches: LabelledBatches
    eraser: Any
    tokens: Tokens
    at: Place
    sample: int
    rng: np.random.Generator

    def fits(self, names: Sequence[str]) -> dict[str, _LayerFit]:
        return {name: _LayerFit(clone(self.eraser), self.sample, self.rng) for name in names}


def _scrub_layers(
    job: _Job, groups: list[tuple[str, ...]], place: Any, progress: bool
) -> tuple[dict[str, Erasure], list[LayerReport]]:
    done: dict[str, Erasure] = {}
    report: list[LayerReport] = []
    order = _order(job, groups)
    groups = sorted(groups, key=lambda group: min(map(order.index, group)))
    steps = len(groups) * len(job.batches)
    with (
        Progress("scrub", steps, progress) as bar,
        StateCache(job.model, order, place, job.at) as cache,
    ):
        for number, group in enumerate(groups):
            fits = job.fits(group)
            active = {name: e for name, e in done.items() if cache.needed(name)}
            with (
                cache.passing(group) as passing,
                erasing(job.model, active, tokens=job.tokens, at=job.at),
            ):
                expected = sum(map(order.count, group))
                run = _one_pass(job, fits, expected, passing.begin)
                for i, _ in enumerate(run, start=1):
                    bar.update(number * len(job.batches) + i, group[0])
            done.update({name: fit.erasure() for name, fit in fits.items()})
            erased = _erased_fits(job, [n for n in group if order.count(n) > 1], done)
            for name, fit in fits.items():
                report.append(fit.report(relative_name(job.model, name), erased.get(name)))
    return done, report


def _erased_fits(job: _Job, names: Sequence[str], done: dict[str, Erasure]) -> dict[str, _LayerFit]:
    """What modules that run several times give once they are erased.

    An erasure at one run changes what the next gives, which is not among the rows of the fit.
    """
    fits = job.fits(names)
    if names and job.sample:
        with erasing(job.model, done, tokens=job.tokens, at=job.at):
            for _ in _one_pass(job, fits, None):
                pass
    return fits


def _scrub_stream(
    job: _Job, groups: list[tuple[str, ...]], layers: Any, progress: bool
) -> Scrubbing:
    """One erasure at every place that reads the stream."""
    if layers not in ("all", "resid") or not (isinstance(job.tokens, str) and job.tokens == "all"):
        raise InputError(
            "One erasure for the whole stream is for all layers and all tokens",
            f"layers={layers!r}, tokens={job.tokens!r}",
            "Pass layers='all' and tokens='all'",
        )
    places = stream_places(job.model, to_device(_first_batch(job), job.model))
    job = replace(job, at="input")
    shared, first = SharedFit(), dict[str, dict[str, _LayerFit]]()
    with Progress("scrub", 0, progress) as bar:

        def one_pass(erasure: Erasure | None) -> dict[str, _LayerFit]:
            fits = job.fits(places)
            known = {} if erasure is None else dict.fromkeys(places, erasure)
            with erasing(job.model, known, at="input"):
                for i, _ in enumerate(_one_pass(job, fits, None), start=1):
                    bar.update(i, "stream")
            first.setdefault("fits", fits)
            return fits

        last = shared.rounds(one_pass)
    erasure = shared.erasure()
    assert erasure is not None  # there is at least one round
    names = [relative_name(job.model, name) for name in places]
    report = []
    for name, place in zip(names, places, strict=True):
        before, after = (fits[place].measure() for fits in (first["fits"], last))
        n, rank = last[place].n, erasure.rank
        report.append(LayerReport(name, n, rank, before[0], after[0], before[1], after[1]))
    found = dict.fromkeys(names, erasure)
    return Scrubbing(found, report, "all", "input", identity_of(job.model, found))


def _first_batch(job: _Job) -> Any:
    for inputs, _ in job.batches:
        return inputs
    raise InputError("There are no batches", "empty data", "Pass texts or batches")


def _one_pass(
    job: _Job,
    fits: dict[str, _LayerFit],
    expected: int | None,
    begin: Callable[[Any], None] = lambda inputs: None,
) -> Iterator[None]:
    """Show every batch to the erasers of one group, and pause after each."""
    seen: list[tuple[str, Any]] = []

    def receive(name: str, hidden: Any, calls: Calls) -> None:
        seen.append((name, rows_at(calls, name, hidden, job.tokens)))

    with Taps(job.model, list(fits), receive, expected, job.at) as taps:
        for number, (inputs, labels_of) in enumerate(job.batches):
            begin(inputs)
            taps.run(to_device(inputs, job.model))
            for name, (rows, text, position) in seen:
                texts = text.cpu().numpy()
                labels, kept = labels_of(texts, position.cpu().numpy())
                if kept.any():
                    of = number * MOST_TEXTS + texts[kept]
                    fits[name].add(rows[torch.from_numpy(kept)], labels, of)
            seen.clear()
            yield


class _LayerFit:
    """One eraser while it is fitted, with a sample of its rows.

    The sample holds the rows with the smallest of random keys: a uniform draw without replacement,
    whatever the number of rows turns out to be.
    """

    def __init__(self, eraser: Any, size: int, rng: np.random.Generator) -> None:
        self.eraser, self.size, self.rng = eraser, size, rng
        self.n = 0
        self.sample: tuple[NDArray[Any], ...] | None = None
        self.found: tuple[float | None, float | None] | None = None  # measured as the rows are

    def add(self, rows: Any, labels: NDArray[Any], texts: NDArray[np.intp]) -> None:
        """One more batch of rows, a tensor on any device, with the text each belongs to."""
        self.eraser.partial_fit(rows, labels)
        self.n += len(rows)
        self.found = None
        new: tuple[NDArray[Any], ...] = (
            self.rng.random(len(rows)),
            as_rows(rows),
            labels,
            texts,
        )
        if self.sample is not None:
            new = tuple(np.concatenate(pair) for pair in zip(self.sample, new, strict=True))
        kept = np.argsort(new[0])[: self.size]
        self.sample = tuple(part[kept] for part in new)

    def erasure(self) -> Erasure:
        """What the eraser found, if that can be applied without knowing labels."""
        try:
            return self.eraser.erasure_  # type: ignore[no-any-return]
        except AttributeError as error:
            raise InputError(
                "A hook does not know the labels of the texts that come, which this eraser needs",
                f"{self.eraser!r} ({error})",
                "Pass an eraser that has an erasure_, such as LEACE()",
            ) from error

    def report(self, layer: str, erased: _LayerFit | None = None) -> LayerReport:
        """What states say of the concept, before and after; `erased` has seen those after."""
        erasure, certificate = self.erasure(), self.eraser.certificate_
        before = self.measure()
        if erased is not None:
            after = erased.measure()
        elif certificate is not None and certificate.erased:
            after = (certificate.bits_left, certificate.gap / certificate.bound)
        else:
            after = self.measure(erasure)
        return LayerReport(layer, self.n, erasure.rank, before[0], after[0], before[1], after[1])

    def gain(self) -> float | None:
        """Share of the loss that a linear predictor gains from the states as they are."""
        return self.measure()[1]

    def measure(self, erasure: Erasure | None = None) -> tuple[float | None, float | None]:
        """Bits and share of the loss that a linear predictor gains on texts it has not seen."""
        if not self.size or self.sample is None:
            return None, None
        if erasure is None and self.found is not None:
            return self.found
        _, rows, labels, texts = self.sample
        kind = self.eraser.concept_type
        concept = check_concept(labels, len(rows), concept_type=kind, name="labels", whole=False)
        if erasure is not None:
            return held_out_gain(erasure.transform(rows), concept, SEED, texts)
        self.found = held_out_gain(rows, concept, SEED, texts)
        return self.found


def _check_eraser(eraser: Any) -> Any:
    if isinstance(eraser, type) or not hasattr(eraser, "partial_fit"):
        raise InputError(
            "eraser cannot be fitted on a stream",
            repr(eraser),
            "Pass an eraser with partial_fit, such as RLACE()",
        )
    return eraser


def _groups(model: Any, layers: str | Sequence[str | Sequence[str]]) -> list[tuple[str, ...]]:
    """Full names of the layers by group; what a pattern finds are groups of one."""
    groups: list[tuple[str, ...]] = []
    for group in [layers] if isinstance(layers, str) else layers:
        full = tuple(resolve(model, group).values())
        groups += [(name,) for name in full] if isinstance(group, str) else [full]
    return groups


def _order(job: _Job, groups: list[tuple[str, ...]]) -> list[str]:
    """The layers in the order in which the model runs them, found by running one batch."""
    names = list(dict.fromkeys(name for group in groups for name in group))
    if len(names) < sum(map(len, groups)) or not all(groups) or not names:
        raise InputError(
            "layers must name every layer once",
            f"{groups!r}",
            "Pass a list of different names, or of groups of them",
        )
    check_distinct(job.model, names)
    with Taps(job.model, names, lambda name, hidden, calls: None, None, job.at) as taps:
        taps.run(to_device(_first_batch(job), job.model))
        return taps.order
