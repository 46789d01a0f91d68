"""What concept scrubbing leaves: one erasure per layer and a report, in one file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from expunge import artifact
from expunge.erasure import Erasure
from expunge.errors import BadArtifact, InputError
from expunge.inputs import check_choice
from expunge.integrations.hooks import PLACES, erasing
from expunge.integrations.model_identity import check_identity
from expunge.integrations.positions import Tokens, check_tokens
from expunge.integrations.taps import Place
from expunge.maps import as_row_map

__all__ = ["LayerReport", "Scrubbing"]

KIND = "scrubbing"
PARTS = ("left", "right", "center", "offset")


@dataclass(frozen=True)
class LayerReport:
    """What a linear predictor reads from one layer, before and after its own erasure.

    "Before" is with the erasures of all layers below. It is measured on a sample of the rows of the
    fit, by linear predictors that learnt from other texts (cross-fitting), so labels at random show
    0. "After" is the certificate on all rows of the fit where that says "erased", else it is
    measured like "before". So it is at a module that runs several times in a pass, as the one layer
    of ALBERT: an erasure at one run changes what the next gives.

    Attributes
    ----------
    layer : str
    n : int
        Rows of the fit.
    rank : int
        Directions erased.
    bits_before, bits_after : float or None
        Bits per row that the predictor gains over ignoring the states; None for a concept of
        numbers, without a sample, or where it has fewer than ten texts.
    share_before, share_after : float or None
        The same as a share of the loss of ignoring the states: 1 is all of it.
    """

    layer: str
    n: int
    rank: int
    bits_before: float | None
    bits_after: float | None
    share_before: float | None
    share_after: float | None


class Scrubbing(Mapping[str, Erasure]):
    """The erasures of `scrub` by layer, from the lowest up.

    Parameters
    ----------
    erasures : mapping of str to Erasure
        By the names of modules in the base model.
    report : sequence of LayerReport
    tokens : str, int, mapping, mask or callable
        Where they are applied; see `erasing`.
    at : {"output", "input"}
        Whether they are applied to what the modules give or to what they are called with.
    model : mapping, optional
        Which model they were fitted on: class, and hashes of configuration and weights.

    Examples
    --------
    >>> import torch
    >>> import expunge as ex
    >>> scrubbing = ex.integrations.transformers.Scrubbing(
    ...     {"0": ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]])}
    ... )
    >>> model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten())
    >>> with scrubbing.erasing(model):
    ...     model(torch.tensor([[3.0, 4.0]]))
    tensor([[0., 4.]])
    """

    def __init__(
        self,
        erasures: Mapping[str, Erasure],
        report: Any = (),
        tokens: Tokens = "all",
        at: Place = "output",
        model: Mapping[str, Any] | None = None,
    ) -> None:
        check_tokens(tokens)
        check_choice(at, PLACES, "at")
        self.erasures = dict(erasures)
        self.report: tuple[LayerReport, ...] = tuple(report)
        self.tokens, self.at, self.model = tokens, at, dict(model or {})

    def __getitem__(self, layer: str) -> Erasure:
        return self.erasures[layer]

    def __iter__(self) -> Iterator[str]:
        return iter(self.erasures)

    def __len__(self) -> int:
        return len(self.erasures)

    def erasing(self, model: Any, *, force: bool = False) -> AbstractContextManager[Any]:
        """Run `model` with all these erasures, until the block is left.

        Parameters
        ----------
        model : torch.nn.Module
            The model of the fit; it may have another head, be compiled or wrapped by PEFT, or be
            in half precision.
        force : bool
            Whether to take any other model too, such as one that was trained further.

        Returns
        -------
        context manager

        Raises
        ------
        InputError
            For another model.
        """
        self.check_model(model, force=force)
        return erasing(model, self.erasures, tokens=self.tokens, at=self.at)

    def check_model(self, model: Any, *, force: bool = False) -> None:
        """Refuse a model other than that of the fit.

        Parameters
        ----------
        model : torch.nn.Module
        force : bool
            Whether to take any model.
        """
        if not force:
            check_identity(model, self.erasures, self.model)

    def evaluate(self, model: Any, data: Any, labels: Any, **options: Any) -> Any:
        """What this does to a model: probes, language and a task, beside a random control.

        Parameters
        ----------
        model : torch.nn.Module
            With a head for causal or masked language the loss and the change of its predictions
            are measured too.
        data : sequence of str, or iterable of batches
            Other texts than those of the fit.
        labels : sequence
            The concept of each text.
        **options
            tokenizer; task, one label per text of something that should be kept; batch_size;
            max_length; random_state, of the control and of the masked tokens; force.

        Returns
        -------
        ScrubEvaluation
            With `probes`, `loss`, `perplexity`, `kl`, `task`, `plot()` and `to_html(path)`.
        """
        from expunge.integrations.scrub_evaluation import evaluate_scrubbing

        return evaluate_scrubbing(self, model, data, labels, **options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of it to one safetensors file, atomically.

        Parameters
        ----------
        path : str or path
        """
        tokens = dict(self.tokens) if isinstance(self.tokens, Mapping) else self.tokens
        if not isinstance(tokens, str | int | dict):
            raise InputError(
                "A file cannot hold which tokens a mask or a function chooses",
                f"tokens={tokens!r}",
                "Set scrubbing.tokens to one of the words or to token numbers",
            )
        erasures = [self._linear(layer) for layer in self.erasures]
        tensors = {
            f"{i}.{part}": getattr(erasure, part)
            for i, erasure in enumerate(erasures)
            for part in PARTS
            if getattr(erasure, part) is not None
        }
        meta = {
            "layers": list(self.erasures),
            "tokens": tokens,
            "at": self.at,
            "model": self.model,
            "report": [asdict(row) for row in self.report],
            "erasures": [erasure.meta for erasure in erasures],
        }
        artifact.write(path, tensors, {"kind": KIND, "meta": meta})

    def _linear(self, layer: str) -> Erasure:
        """The erasure of a layer, also of a fitted eraser, if a file can hold it."""
        found = as_row_map(self.erasures[layer])
        if not isinstance(found, Erasure):
            raise InputError(
                "A file of a scrubbing holds linear erasures only",
                f"{type(found).__name__} at {layer!r}",
                "Save it in a file of its own, by its save(path)",
            )
        return found

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Scrubbing:
        """Read what `save` wrote; runs no code from the file.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        Scrubbing

        Raises
        ------
        BadArtifact
            If the file is damaged, foreign or of a newer format.
        """
        header, tensors = artifact.read(path, kind=KIND, names=_arrays)
        meta = header["meta"]
        try:
            erasures = {
                str(layer): Erasure(
                    *(tensors[f"{i}.{part}"] for part in PARTS[:2]),
                    *(tensors.get(f"{i}.{part}") for part in PARTS[2:]),
                    meta=meta["erasures"][i],
                )
                for i, layer in enumerate(meta["layers"])
            }
            report = [LayerReport(**row) for row in meta["report"]]
            place = meta.get("at", "output")  # files of before did not say, nor which model
            return cls(erasures, report, meta["tokens"], place, meta.get("model"))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise BadArtifact(f"{os.fspath(path)}: not a whole scrubbing ({error})") from error

    def __repr__(self) -> str:
        place = "" if self.at == "output" else f", at={self.at!r}"
        return f"Scrubbing({len(self)} layers, tokens={self.tokens!r}{place})"

    def __str__(self) -> str:
        """A table of the report."""
        width = max((len(row.layer) for row in self.report), default=5)
        lines = [f"{'layer':<{width}}  {'rows':>9}  {'rank':>4}  {'before':>9}  {'after':>9}"]
        for row in self.report:
            before = _amount(row.bits_before, row.share_before)
            after = _amount(row.bits_after, row.share_after)
            lines.append(
                f"{row.layer:<{width}}  {row.n:>9,}  {row.rank:>4}  {before:>9}  {after:>9}"
            )
        return "\n".join(lines)


def _arrays(header: Mapping[str, Any]) -> artifact.Names:
    """Names of the arrays of all layers: those there must be, and those there may be."""
    layers = header["meta"].get("layers")
    numbers = range(len(layers) if isinstance(layers, list) else 0)
    required, optional = (
        [f"{i}.{part}" for i in numbers for part in parts] for parts in (PARTS[:2], PARTS[2:])
    )
    return required, optional


def _amount(bits: float | None, share: float | None) -> str:
    if bits is not None:
        return f"{bits:.3f} bit"
    return "?" if share is None else f"{share:.1%}"
