"""Texts in batches of about equal length, so that little is padded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.inputs import check_number
from expunge.parallel import blocks

__all__ = ["TextBatches", "TextStream", "encoded", "evaluating", "longest", "to_device"]

CHUNK = 1024  # texts tokenized at once to learn their lengths
WINDOW = 32  # batches of a stream that are sorted by length together
NO_LIMIT = 10**9  # tokenizers without a limit state an absurd one


class TextBatches:
    """Tokenized batches, longest texts first; can be gone through again and again.

    Only the lengths are kept. A text is tokenized again when its batch comes up.

    Parameters
    ----------
    texts : sequence of str
    tokenizer : Hugging Face tokenizer
    batch_size : int
    max_length : int or None
        Tokens kept of a text, special tokens included; None keeps all.
    """

    def __init__(
        self, texts: Any, tokenizer: Any, *, batch_size: int = 32, max_length: int | None = None
    ) -> None:
        check_number(batch_size, "batch_size", least=1, whole=True)
        if max_length is not None:
            check_number(max_length, "max_length", least=1, whole=True)
        self.texts = _check_texts(texts)
        self.tokenizer, self.batch_size = _check_tokenizer(tokenizer), batch_size
        self.truncation = {"truncation": max_length is not None, "max_length": max_length}
        self.lengths = self._lengths()
        self.order = np.argsort(-self.lengths, kind="stable")

    def __len__(self) -> int:
        return -(-len(self.order) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """Yield the numbers of some texts and their encoding, padded, as tensors."""
        for lo, hi in blocks(0, len(self.order), self.batch_size):
            rows = self.order[lo:hi]
            texts = [self.texts[row] for row in rows]
            yield (
                rows,
                self.tokenizer(texts, padding=True, return_tensors="pt", **self.truncation),
            )

    def _lengths(self) -> NDArray[np.intp]:
        found: list[int] = []
        for lo, hi in blocks(0, len(self.texts), CHUNK):
            encoded = self.tokenizer(list(self.texts[lo:hi]), **self.truncation)
            found += [len(ids) for ids in encoded["input_ids"]]
        lengths = np.array(found, dtype=np.intp)
        if not lengths.all():
            raise InputError(
                "A text has no tokens",
                f"text {int(lengths.argmin())}: {self.texts[int(lengths.argmin())]!r}",
                "Drop it, or let the tokenizer add its special tokens",
            )
        return lengths


class TextStream:
    """Tokenized batches of texts that come one by one, such as a column of an IterableDataset.

    Only some batches are held at a time; within these, longest texts come first. Can be gone
    through as often as the texts can.

    Parameters
    ----------
    texts : iterable of str
    tokenizer, batch_size, max_length
        See `TextBatches`.
    """

    def __init__(
        self, texts: Any, tokenizer: Any, *, batch_size: int = 32, max_length: int | None = None
    ) -> None:
        check_number(batch_size, "batch_size", least=1, whole=True)
        self.texts, self.tokenizer = texts, _check_tokenizer(tokenizer)
        self.batch_size, self.max_length = batch_size, max_length

    def __iter__(self) -> Iterator[tuple[NDArray[np.intp], Any]]:
        """Yield the numbers of some texts and their encoding, padded, as tensors."""
        done, coming = 0, iter(self.texts)
        while window := list(islice(coming, WINDOW * self.batch_size)):
            batches = TextBatches(
                window, self.tokenizer, batch_size=self.batch_size, max_length=self.max_length
            )
            for rows, inputs in batches:
                yield done + rows, inputs
            done += len(window)


def encoded(batch: Any, tokenizer: Any, max_length: int | None) -> Any:
    """What a model takes of a batch of a loader: texts are tokenized, anything else is as it is.

    Texts are a list of them, or the one column of texts of a mapping.
    """
    columns = list(batch.values()) if isinstance(batch, Mapping) else [batch]
    texts = [column for column in columns if _is_column_of_texts(column)]
    if not texts:
        return batch
    if len(columns) > 1 or isinstance(batch, str):
        raise InputError(
            "It is not clear which texts of a batch are meant",
            "a single text" if isinstance(batch, str) else f"columns {', '.join(batch)}",
            "Let batches be lists of texts, or mappings of one column of texts and 'labels'",
        )
    truncation = {"truncation": max_length is not None, "max_length": max_length}
    made = _check_tokenizer(tokenizer)
    return made(list(texts[0]), padding=True, return_tensors="pt", **truncation)


def _is_column_of_texts(column: Any) -> bool:
    return isinstance(column, str) or (
        isinstance(column, list | tuple) and bool(column) and isinstance(column[0], str)
    )


def longest(model: Any, tokenizer: Any) -> int | None:
    """The most tokens that both the model and its tokenizer say they take, if they say so."""
    limits = (
        getattr(tokenizer, "model_max_length", None),
        getattr(getattr(model, "config", None), "max_position_embeddings", None),
    )
    known = [int(limit) for limit in limits if limit and limit < NO_LIMIT]
    return min(known, default=None)


def to_device(inputs: Any, model: Any) -> Any:
    """A batch (a tensor or a mapping of tensors) where the first weights of the model are.

    Weights that are elsewhere until they are needed, as in an offloaded model, do not count.
    """
    first = next((weight for weight in model.parameters() if not weight.is_meta), None)
    if first is None:
        return inputs
    if hasattr(inputs, "to"):
        return inputs.to(first.device)
    return {
        key: value.to(first.device) if hasattr(value, "to") else value
        for key, value in inputs.items()
    }


@contextmanager
def evaluating(model: Any) -> Iterator[None]:
    """Without dropout and the like; every module is in its own mode again afterwards."""
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def _check_texts(texts: Any) -> Sequence[str]:
    if isinstance(texts, str) or not hasattr(texts, "__len__") or len(texts) == 0:
        raise InputError(
            "texts must be a sequence of at least one text",
            f"the single text {texts[:40]!r}" if isinstance(texts, str) else repr(type(texts)),
            "Pass a list of texts",
        )
    found: Sequence[str] = texts if isinstance(texts, list | tuple) else list(texts)
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(
                "Not everything in texts is a text",
                f"{type(text).__name__} at position {position}",
                "Pass strings only",
            )
    return found


def _check_tokenizer(tokenizer: Any) -> Any:
    if not callable(tokenizer):
        raise InputError(
            "Texts need a tokenizer",
            repr(tokenizer),
            "Pass the Hugging Face tokenizer of the model",
        )
    if getattr(tokenizer, "pad_token", "") is None:
        raise InputError(
            "The tokenizer has no token to pad with",
            f"{type(tokenizer).__name__} with pad_token=None",
            "Set one, e.g. tokenizer.pad_token = tokenizer.eos_token",
        )
    return tokenizer
