"""Batches for a model, each with the labels of its texts or tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.integrations.text_batches import TextBatches, TextStream, encoded, longest
from expunge.optional import require

__all__ = ["LabelledBatches", "are_coming_texts", "are_texts", "split_labels"]

torch = require("torch", "transformers")

LEFT_OUT = -100  # the label of tokens that do not count, as in the losses of torch

# the numbers of texts and positions -> labels of those that have one, and which these are
LabelsOf = Callable[[NDArray[np.intp], NDArray[np.intp]], tuple[NDArray[Any], NDArray[np.bool_]]]


class LabelledBatches:
    """What `scrub` goes through once per group of layers; see there for `data` and `labels`.

    Parameters
    ----------
    model : torch.nn.Module
    data : sequence of str, or iterable of batches
    labels : sequence or None
    tokenizer : Hugging Face tokenizer or None
    labels_per : {"text", "token"}
    batch_size : int
    max_length : int or None
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        labels: Any,
        tokenizer: Any,
        labels_per: str,
        *,
        batch_size: int,
        max_length: int | None,
    ) -> None:
        self.per_token = labels_per == "token"
        self.texts: TextBatches | TextStream | None = None
        self.last: list[int] = []
        self.done = 0
        self.data, self.labels = data, _as_labels(labels, self.per_token)
        limit = longest(model, tokenizer) if max_length is None else max_length
        self.tokenizer, self.limit = tokenizer, limit
        if are_texts(data):
            self.texts = TextBatches(data, tokenizer, batch_size=batch_size, max_length=limit)
            self._check_labels(self.texts)
        elif are_coming_texts(data):
            self.texts = TextStream(data, tokenizer, batch_size=batch_size, max_length=limit)
        else:
            _check_loader(data, labels is not None)

    def __len__(self) -> int:
        batches = self.data if self.texts is None else self.texts
        return len(batches) if hasattr(batches, "__len__") else 0

    def __iter__(self) -> Iterator[tuple[Any, LabelsOf]]:
        """Yield what the model takes and how to look labels up."""
        if self.texts is None:
            yield from self._from_loader()
            return
        n, seen = 0 if self.labels is None else len(self.labels), 0
        for rows, inputs in self.texts:
            self.last = [int(row) for row in rows]
            seen += len(rows)
            if max(self.last) >= n:
                seen = n + 1
                break
            yield inputs, self._lookup([self.labels[row] for row in rows], inputs)
        if seen != n:
            raise InputError(
                "There must be one label per text",
                f"{n} labels for {'more' if seen > n else seen} texts",
                "Pass as many labels as texts",
            )

    def numbers(self, count: int) -> list[int]:
        """Numbers of the texts of the last batch, as they were given."""
        if self.texts is None:
            self.done += count
            return list(range(self.done - count, self.done))
        return self.last

    def _from_loader(self) -> Iterator[tuple[Any, LabelsOf]]:
        done = 0
        for batch in self.data:
            inputs, labels = split_labels(batch)
            inputs = encoded(inputs, self.tokenizer, self.limit)
            count = len(next(iter(inputs.values())) if isinstance(inputs, Mapping) else inputs)
            if self.labels is not None:
                labels = self.labels[done : done + count]
            if labels is None or len(labels) != count:
                raise InputError(
                    "Batches and labels do not go together",
                    f"{count} texts with {'no' if labels is None else len(labels)} labels after "
                    f"{done} texts",
                    "Pass one label per text, or batches that bring them under 'labels'",
                )
            done += count
            yield inputs, self._lookup(labels, inputs)
        if self.labels is not None and len(self.labels) != done:
            raise InputError(
                "There are more labels than texts",
                f"{len(self.labels)} labels, {done} texts",
                "Pass one label per text",
            )

    def _lookup(self, labels: Any, inputs: Any) -> LabelsOf:
        if not self.per_token:
            values = np.asarray(labels)
            return lambda text, position: (values[text], np.ones(len(text), dtype=bool))
        grid = _grid(labels, inputs)

        def labels_of(
            text: NDArray[np.intp], position: NDArray[np.intp]
        ) -> tuple[NDArray[Any], NDArray[np.bool_]]:
            found = grid[text, position]
            kept = np.array([v is not None and v != LEFT_OUT for v in found.tolist()], dtype=bool)
            return np.array(found[kept].tolist()), kept

        return labels_of

    def _check_labels(self, texts: TextBatches) -> None:
        n = 0 if self.labels is None else len(self.labels)
        if n != len(texts.texts):
            raise InputError(
                "There must be one label per text, or one list of labels per text",
                f"{len(texts.texts)} texts and {n} labels",
                "Pass as many labels as texts",
            )
        if not self.per_token:
            return
        for i, length in enumerate(texts.lengths):
            if len(self.labels[i]) != length:
                raise InputError(
                    f"Text {i} has {length} tokens, special tokens included",
                    f"{len(self.labels[i])} labels for it",
                    "Pass one label per token; None for those that do not count",
                )


def _as_labels(labels: Any, per_token: bool) -> Any:
    """Labels that can be taken by number: an array, or a list of lists; tensors as arrays."""
    if labels is None:
        return None
    if isinstance(labels, torch.Tensor):
        labels = labels.cpu().numpy()
    return list(labels) if per_token else np.asarray(_with_length(labels))


def _with_length(labels: Any) -> Any:
    """Labels that come one by one as a list."""
    return labels if hasattr(labels, "__len__") else list(labels)


def _grid(labels: Any, inputs: Any) -> NDArray[Any]:
    """Labels of shape (texts, tokens): as they are, or lists laid where the mask has tokens."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2:
        return labels
    mask = np.asarray(inputs["attention_mask"].cpu(), dtype=bool)
    grid = np.full(mask.shape, None, dtype=object)
    for row, kept, values in zip(grid, mask, labels, strict=True):
        row[kept if len(values) == kept.sum() else slice(None)] = list(values)
    return grid


def split_labels(batch: Any) -> tuple[Any, Any]:
    """A batch of a loader as what the model takes and the labels, if it has any."""
    if isinstance(batch, tuple | list) and len(batch) == 2:
        inputs, labels = batch
    elif isinstance(batch, Mapping):
        inputs, labels = {k: v for k, v in batch.items() if k != "labels"}, batch.get("labels")
    else:
        inputs, labels = batch, None
    if isinstance(labels, torch.Tensor):
        labels = labels.cpu().numpy()
    return inputs, labels


def are_texts(data: Any) -> bool:
    """Whether data is a column of texts: a list, an array, a series, a column of a dataset."""
    if isinstance(data, str):
        return True  # refused with the other bad texts
    if isinstance(data, Mapping) or not hasattr(data, "__len__") or len(data) == 0:
        return False
    return isinstance(next(iter(data), None), str)


def are_coming_texts(data: Any) -> bool:
    """Whether data is texts that come one by one, in every pass anew: of unknown number."""
    again = hasattr(data, "__iter__") and iter(data) is not data
    return again and not hasattr(data, "__len__") and isinstance(next(iter(data), None), str)


def _check_loader(data: Any, with_labels: bool) -> None:
    if not hasattr(data, "__iter__") or iter(data) is data:
        raise InputError(
            "data cannot be gone through more than once",
            type(data).__name__,
            "Pass texts, a list of batches or a DataLoader: there is one pass per group of layers",
        )
    if with_labels and isinstance(getattr(data, "sampler", None), torch.utils.data.RandomSampler):
        raise InputError(
            "A DataLoader that shuffles cannot be matched with labels in order",
            "a DataLoader with a RandomSampler and labels",
            "Let the batches bring their labels, or load with shuffle=False",
        )
