"""What an encoder reads: rows of numbers or texts, checked once, then handed out in batches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from expunge.errors import InputError
from expunge.inputs import check_number, check_rows
from expunge.integrations.text_batches import longest
from expunge.parallel import blocks
from expunge.reproduce.bios.adversarial.reversal import Batch

__all__ = ["ModelInputs", "RowInputs", "TextInputs", "buckets", "digest", "model_inputs"]

Index = NDArray[np.intp]


class ModelInputs(Protocol):
    """n inputs of an encoder."""

    lengths: NDArray[np.intp]

    def batch(self, rows: Index, device: torch.device) -> Batch:
        """The inputs of these rows, ready for the encoder."""

    def digest(self) -> str:
        """A hash of all inputs, to know them again."""


class RowInputs:
    """Rows of numbers (n x d), as float32."""

    def __init__(self, X: Any, name: str) -> None:
        if isinstance(X, Tensor):
            X = X.detach().cpu().numpy()
        self.X = check_rows(X, name=name, least=1).array().astype(np.float32)
        self.lengths = np.ones(len(self.X), dtype=np.intp)

    def batch(self, rows: Index, device: torch.device) -> Tensor:
        """Rows as a tensor (b x d)."""
        return torch.from_numpy(self.X[rows]).to(device)

    def digest(self) -> str:
        """Hash of the shape and the numbers."""
        return digest(np.array(self.X.shape), self.X)


class TextInputs:
    """Texts as token numbers, end to end; text i is `tokens[starts[i]:starts[i + 1]]`."""

    def __init__(self, texts: Any, tokenizer: Any, max_length: int, name: str) -> None:
        texts = _check_texts(texts, name)
        parts, lengths = [], []
        for lo, hi in blocks(0, len(texts), 1000):
            found = tokenizer(texts[lo:hi], truncation=True, max_length=max_length)["input_ids"]
            lengths += [len(numbers) for numbers in found]
            parts.append(np.concatenate([np.asarray(numbers, dtype=np.int32) for numbers in found]))
        self.tokens, self.lengths = np.concatenate(parts), np.array(lengths, dtype=np.intp)
        if not self.lengths.all():
            raise InputError(
                f"{name} holds a text without a single token",
                f"text {int(np.argmin(self.lengths))} of {len(texts)}",
                "Drop it, or let the tokenizer add its special tokens",
            )
        self.starts = np.concatenate([[0], np.cumsum(self.lengths)])
        self.padding = int(getattr(tokenizer, "pad_token_id", None) or 0)

    def batch(self, rows: Index, device: torch.device) -> dict[str, Tensor]:
        """Token numbers and mask (b x longest text), padded at the end."""
        lengths = self.lengths[rows]
        mask = np.arange(lengths.max()) < lengths[:, None]
        numbers = np.full(mask.shape, self.padding, dtype=np.int64)
        numbers[mask] = np.concatenate(
            [self.tokens[self.starts[i] : self.starts[i + 1]] for i in rows]
        )
        return {
            "input_ids": torch.from_numpy(numbers).to(device),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)).to(device),
        }

    def digest(self) -> str:
        """Hash of all tokens and of where texts begin."""
        return digest(self.starts, self.tokens)


def model_inputs(
    inputs: Any,
    tokenizer: Any = None,
    *,
    encoder: Any = None,
    max_length: int = 512,
    name: str = "inputs",
) -> RowInputs | TextInputs:
    """Inputs of an encoder: texts if there is a tokenizer, else rows of numbers.

    Parameters
    ----------
    inputs : array or tensor of shape (n, d), or sequence of n texts
    tokenizer : callable, optional
        A Hugging Face tokenizer.
    encoder : torch.nn.Module, optional
        The Hugging Face model, which may limit the length of a text.
    max_length : int
        Tokens kept of a text.
    name : str
        What to call the inputs in messages.

    Returns
    -------
    RowInputs or TextInputs

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.model_inputs import model_inputs
    >>> rows = model_inputs([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    >>> rows.batch([2, 0], torch.device("cpu")).tolist()
    [[5.0, 6.0], [1.0, 2.0]]
    """
    if tokenizer is not None:
        check_number(max_length, "max_length", least=1, whole=True)
        most = longest(encoder, tokenizer) or max_length
        return TextInputs(inputs, tokenizer, min(max_length, most), name)
    if isinstance(inputs, list | tuple) and inputs and isinstance(inputs[0], str):
        raise InputError(
            f"{name} holds texts, but there is no tokenizer",
            repr(inputs[0][:40]),
            "Pass the tokenizer of the Hugging Face model as tokenizer=",
        )
    return RowInputs(inputs, name)


def buckets(lengths: NDArray[np.intp], size: int) -> Iterator[Index]:
    """Row numbers in batches of about equal length, so that little is padded."""
    order = np.argsort(lengths, kind="stable")
    for lo, hi in blocks(0, len(order), size):
        yield order[lo:hi]


def _check_texts(texts: Any, name: str) -> list[str]:
    found = None if isinstance(texts, str) else list(texts)
    if not found:
        received = "no texts" if found == [] else f"the single text {texts[:40]!r}"
        raise InputError(f"{name} must be a sequence of texts", received, "Pass a list of texts")
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(
                f"{name} holds something that is not a text",
                f"{type(text).__name__} at position {position}",
                "Pass one text per row",
            )
    return found


def digest(*parts: Tensor | NDArray[Any] | str | None) -> str:
    """A short hash of tensors, arrays and texts.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.bios.adversarial.model_inputs import digest
    >>> digest(np.arange(3), "a") == digest(np.arange(3), "a"), digest("a") == digest("b")
    (True, False)
    """
    found = hashlib.sha256()
    for part in parts:
        if isinstance(part, Tensor):  # as bytes: NumPy does not know all of torch's types
            part = part.detach().cpu().contiguous().flatten().view(torch.uint8).numpy()
        if part is not None:
            found.update(part.encode() if isinstance(part, str) else part.tobytes())
    return found.hexdigest()[:32]
