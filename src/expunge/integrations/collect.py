"""Hidden states of a model as rows: one forward pass over texts, any number of layers."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from expunge.atomic import check_writable
from expunge.errors import InputError
from expunge.inputs import check_choice
from expunge.integrations.calls import Calls
from expunge.integrations.labelled_batches import are_coming_texts, are_texts, split_labels
from expunge.integrations.module_names import check_distinct, resolve
from expunge.integrations.positions import Tokens, rows_at
from expunge.integrations.taps import Taps
from expunge.integrations.text_batches import (
    TextBatches,
    TextStream,
    encoded,
    evaluating,
    longest,
    to_device,
)
from expunge.progress import Progress

__all__ = ["States", "collect"]

POOLINGS = ("mean", "cls", "last", "tokens")
ROW_TEXTS = "row-texts"  # no module can have this name
Pooling = Literal["mean", "cls", "last", "tokens"]


class States(Mapping[str, NDArray[Any]]):
    """Hidden states by layer: ``states[name]`` is an array of shape (rows, d).

    Parameters
    ----------
    arrays : dict of str to array
    text : array of shape (rows,)
        The text each row belongs to; ``labels[states.text]`` are the labels of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.integrations.transformers import States
    >>> states = States({"layer": np.zeros((3, 2))}, np.array([0, 0, 1]))
    >>> np.array(["f", "m"])[states.text]
    array(['f', 'f', 'm'], dtype='<U1')
    """

    def __init__(self, arrays: dict[str, NDArray[Any]], text: NDArray[np.intp]) -> None:
        self.arrays, self.text = arrays, text

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        return f"States({', '.join(f'{k!r}: {v.shape}' for k, v in self.arrays.items())})"


def collect(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    layers: str | Sequence[str],
    pooling: Pooling = "mean",
    *,
    path: str | os.PathLike[str] | None = None,
    batch_size: int = 32,
    max_length: int | None = None,
    dtype: Any = None,
    progress: bool = False,
) -> States:
    """Hidden states of texts at some layers, in the order of the texts.

    Texts of about equal length share a batch, and a forward pass ends with the last of the layers.
    The model is run without dropout and without gradients, and is left as it was.

    Parameters
    ----------
    model : torch.nn.Module
        A Hugging Face model.
    tokenizer : Hugging Face tokenizer or None
        None where `texts` are batches.
    texts : sequence or iterable of str, or iterable of batches
        Texts: a list, a series, a column of a dataset, also of one that comes as a stream, of which
        only some batches are held at a time. Or a DataLoader or list whose batches are texts, or
        are what the model takes, mappings or tensors: of images, of sound, of tokens for encoder
        and decoder. A "text" is then one of their rows, and "labels" in a mapping are left out.
    layers : str or sequence of str
        Names of modules, as in ``model.named_modules()`` or relative to the base model; or patterns
        such as ``"layers.*"``, or "resid", "attn", "mlp" of all layers; see `erasing`. Of a module
        that runs several times in a pass, as the one layer of ALBERT, the last run is taken.
    pooling : {"mean", "cls", "last", "tokens"}
        One row per text: the mean of its tokens, its first or its last token. Or "tokens": one row
        per token, text by text, special tokens included. Padding never counts.
    path : str or path, optional
        A folder for the files ``<layer>.npy``, and ``row-texts.npy`` for "tokens". The rows are
        written as they come and returned as memory maps. A file appears when it is complete.
    batch_size : int
    max_length : int, optional
        Tokens kept of a text; by default as many as the model takes.
    dtype : dtype, optional
        Type of the arrays; by default that of the states, float32 for bfloat16.
    progress : bool
        Whether to show a bar.

    Returns
    -------
    States
        A mapping from layers to arrays of shape (rows, d).

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.transformers import collect
    >>> class Tokenizer:
    ...     def __call__(self, texts, padding=False, return_tensors=None, **others):
    ...         ids = [[ord(letter) for letter in text] for text in texts]
    ...         if padding:
    ...             longest = max(map(len, ids))
    ...             mask = torch.tensor([[i < len(t) for i in range(longest)] for t in ids])
    ...             ids = torch.tensor([t + [0] * (longest - len(t)) for t in ids])
    ...             return {"input_ids": ids, "attention_mask": mask}
    ...         return {"input_ids": ids}
    >>> class Model(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.embed = torch.nn.Embedding.from_pretrained(torch.arange(512.0).view(256, 2))
    ...     def forward(self, input_ids, attention_mask=None):
    ...         return self.embed(input_ids)
    >>> collect(Model(), Tokenizer(), ["b", "ac"], "embed")["embed"]
    array([[196., 197.],
           [196., 197.]], dtype=float32)
    """
    check_choice(pooling, POOLINGS, "pooling")
    names = resolve(model, layers)
    if not names:
        raise InputError("There are no layers to collect", "an empty list", "Name at least one")
    check_distinct(model, names.values())
    tokens: Tokens = "masked" if pooling == "tokens" else pooling
    limit = longest(model, tokenizer) if max_length is None else max_length
    if are_coming_texts(texts):
        coming = TextStream(texts, tokenizer, batch_size=batch_size, max_length=limit)
        return _from_batches(model, coming, names, tokens, path, dtype)
    if not are_texts(texts) and (tokenizer is None or _are_batches(texts)):
        numbered = _numbered(texts, tokenizer, limit)
        return _from_batches(model, numbered, names, tokens, path, dtype)
    batches = TextBatches(texts, tokenizer, batch_size=batch_size, max_length=limit)
    per_text = batches.lengths if pooling == "tokens" else np.ones_like(batches.lengths)
    starts = np.concatenate([[0], np.cumsum(per_text)])
    with _Store(path, int(starts[-1]), dtype) as store:
        _fill(store, model, batches, names, tokens, starts, progress)
        text = np.repeat(np.arange(len(per_text)), per_text)
        if pooling == "tokens":
            store.put(ROW_TEXTS, slice(None), text)
        arrays = store.finish()
        return States({name: arrays[name] for name in names}, text)


def _from_batches(
    model: Any, batches: Any, names: dict[str, str], tokens: Tokens, path: Any, dtype: Any
) -> States:
    """Rows of batches with the numbers of their texts; how many there are is known in the end."""
    parts: dict[str, list[NDArray[Any]]] = {name: [] for name in names}
    texts: list[NDArray[Any]] = []
    seen: dict[str, Any] = {}

    def receive(name: str, hidden: Any, calls: Calls) -> None:
        seen[name] = rows_at(calls, name, hidden, tokens)[:2]

    with evaluating(model), Taps(model, list(dict.fromkeys(names.values())), receive) as taps:
        for numbers, inputs in batches:
            taps.run(to_device(inputs, model))
            of = {full: as_rows(text) for full, (_, text) in seen.items()}
            first = next(iter(of.values()))
            if not all(np.array_equal(first, other) for other in of.values()):
                raise InputError(
                    "These modules have states of different numbers of tokens",
                    ", ".join(f"{len(rows)} at {full!r}" for full, rows in of.items()),
                    "Collect them one after the other, or with pooling='mean'",
                )
            for name, full in names.items():
                parts[name].append(as_rows(seen[full][0]))
            texts.append(numbers[first])
    if not texts:
        raise InputError("There are no batches", "empty data", "Pass texts or batches")
    text = np.concatenate(texts)
    order = np.argsort(text, kind="stable")
    text = text[order]
    with _Store(path, len(text), dtype) as store:
        for name in names:
            store.put(name, slice(None), np.concatenate(parts.pop(name))[order])
        if tokens == "masked":
            store.put(ROW_TEXTS, slice(None), text)
        arrays = store.finish()
        return States({name: arrays[name] for name in names}, text)


def _are_batches(data: Any) -> bool:
    return hasattr(data, "__iter__") and not (hasattr(data, "__len__") and len(data) == 0)


def _numbered(
    batches: Any, tokenizer: Any, max_length: int | None
) -> Iterator[tuple[NDArray[np.intp], Any]]:
    """What the model takes of every batch of a loader, with the numbers of its rows."""
    done = 0
    for batch in batches:
        inputs = encoded(split_labels(batch)[0], tokenizer, max_length)
        count = len(next(iter(inputs.values())) if isinstance(inputs, Mapping) else inputs)
        yield np.arange(done, done + count), inputs
        done += count


def _fill(
    store: _Store,
    model: Any,
    batches: TextBatches,
    names: dict[str, str],
    tokens: Tokens,
    starts: NDArray[np.intp],
    progress: bool,
) -> None:
    """Run all batches; the rows of text i go to the places from starts[i] to starts[i + 1]."""
    seen: dict[str, Any] = {}

    def receive(name: str, hidden: Any, calls: Calls) -> None:
        seen[name] = rows_at(calls, name, hidden, tokens)[0]

    with (
        evaluating(model),
        Taps(model, list(dict.fromkeys(names.values())), receive) as taps,
        Progress("collect", len(batches.texts), progress) as bar,
    ):
        done = 0
        for texts, inputs in batches:
            taps.run(to_device(inputs, model))
            places = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in texts])
            for name, full in names.items():
                rows = seen[full]
                if len(rows) != len(places):
                    raise InputError(
                        f"Module {name!r} does not give one vector per token",
                        f"{len(rows)} vectors for {len(places)} tokens of {len(texts)} texts",
                        "Take another module, or pooling='mean'",
                    )
                store.put(name, places, as_rows(rows))
            done += len(texts)
            bar.update(done)


def as_rows(tensor: Any) -> NDArray[Any]:
    """A tensor as an array; NumPy has no bfloat16, which becomes float32."""
    tensor = tensor.detach().cpu()
    named = str(tensor.dtype).rpartition(".")[2]
    return np.asarray((tensor.float() if named == "bfloat16" else tensor).numpy())


class _Store:
    """Arrays that are filled in any order: in memory, or in files that appear when complete.

    Parameters
    ----------
    path : str, path or None
        Folder of the files.
    n : int
        Rows of every array.
    dtype : dtype or None
        Type of floating arrays, if not that of the first rows.
    """

    def __init__(self, path: str | os.PathLike[str] | None, n: int, dtype: Any) -> None:
        self.folder = None if path is None else Path(path)
        self.n, self.dtype = n, None if dtype is None else np.dtype(dtype)
        if self.dtype is not None and self.dtype.kind != "f":
            raise InputError("dtype must be a floating type", repr(dtype), "Pass e.g. 'float16'")
        self.arrays: dict[str, NDArray[Any]] = {}
        self.cleanup = ExitStack()

    def __enter__(self) -> Self:
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
            unfinished = tempfile.TemporaryDirectory(dir=self.folder, prefix=".collect-")
            self.unfinished = Path(self.cleanup.enter_context(unfinished))
        return self

    def __exit__(self, *error: Any) -> None:
        self.arrays.clear()
        self.cleanup.close()

    def put(self, name: str, places: Any, rows: NDArray[Any]) -> None:
        """Write rows to their places; the first of a name say how wide its array is."""
        if name not in self.arrays:
            if self.folder is not None:
                check_writable(self.folder / self._file(name).name)
            dtype = rows.dtype if rows.dtype.kind != "f" or self.dtype is None else self.dtype
            shape = (self.n, *rows.shape[1:])
            self.arrays[name] = (
                np.empty(shape, dtype)
                if self.folder is None
                else np.lib.format.open_memmap(self._file(name), "w+", dtype, shape)
            )
        self.arrays[name][places] = rows

    def finish(self) -> dict[str, NDArray[Any]]:
        """All arrays, complete; from files as memory maps that cannot be written to."""
        if self.folder is None:
            return dict(self.arrays)
        names = list(self.arrays)
        while self.arrays:
            _, array = self.arrays.popitem()
            array.flush()  # type: ignore[attr-defined]  # a memory map
            del array
        found = {}
        for name in names:
            source = self._file(name)
            os.replace(source, self.folder / source.name)
            found[name] = np.load(self.folder / source.name, mmap_mode="r")
        return found

    def _file(self, name: str) -> Path:
        return self.unfinished / f"{name or 'model'}.npy"
