"""Hidden states between passes, so that a pass starts where the one before it ended.

A pass over the data for one layer would run all layers below it again. With the outputs of a layer
kept for every batch, the layers up to it are skipped: each gives what was kept, without computing.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from expunge.errors import InputError
from expunge.integrations.intercept import intercepting
from expunge.integrations.layer_parts import blocks_of
from expunge.optional import require

__all__ = ["StateCache"]

torch = require("torch", "transformers")


class StateCache:
    """What one layer of a list of layers gave for every batch, before its own erasure.

    Parameters
    ----------
    model : torch.nn.Module
    names : sequence of str
        Full names of the modules that will be fitted.
    place : None, "memory", str or path
        None keeps nothing: every pass runs from the start. Else memory, or a folder in which a
        temporary folder is made.
    at : {"output", "input"}
        Which states of the modules are erased.
    """

    def __init__(self, model: Any, names: Sequence[str], place: Any, at: str) -> None:
        self.model, self.at, self.place = model, at, place
        self.blocks = _list_of(model, names) if place is not None else []
        self.kept = -1  # number of the layer whose outputs are kept
        self.outputs: list[Any] = []
        self.marks: list[str] = []
        self.undo = ExitStack()

    def __enter__(self) -> Self:
        if self.place not in (None, "memory"):
            Path(self.place).mkdir(parents=True, exist_ok=True)
            made = tempfile.TemporaryDirectory(dir=self.place, prefix=".states-")
            self.folder = Path(self.undo.enter_context(made))
        return self

    def __exit__(self, *error: Any) -> None:
        self.outputs.clear()
        self.undo.close()

    def needed(self, name: str) -> bool:
        """Whether a module still runs, or gives what is kept."""
        number = self._number(name) if self.blocks else 0
        return number > self.kept or (number == self.kept and name == self.blocks[number])

    @contextmanager
    def passing(self, group: Sequence[str]) -> Iterator[_Pass]:
        """One pass for a group of modules: lower layers are skipped, new outputs kept."""
        keep = min((self._last_unchanged(name) for name in group), default=-1)
        current = _Pass(self, keep)
        with ExitStack() as undo:
            if self.blocks:
                modules = dict(self.model.named_modules())
                for number in range(self.kept + 1):
                    module = modules[self.blocks[number]]
                    undo.enter_context(intercepting(module, instead=current.give))
                if keep > self.kept:
                    # first of all that is asked for there: before any erasure
                    module = modules[self.blocks[keep]]
                    undo.enter_context(intercepting(module, after=current.keep_output))
            yield current
        if self.blocks and keep > self.kept:
            for stored in self.outputs:
                if isinstance(stored, Path):
                    stored.unlink()
            self.kept, self.outputs = keep, current.outputs

    def _last_unchanged(self, name: str) -> int:
        """The highest layer whose output does not change when an erasure is put at a module."""
        number = self._number(name)
        if number == len(self.blocks):
            return number - 1
        whole = number >= 0 and name == self.blocks[number] and self.at == "output"
        return number if whole else number - 1

    def _number(self, name: str) -> int:
        """Of the layer that a module is or is in; one more than the last for what comes after."""
        for number, block in enumerate(self.blocks):
            if name == block or name.startswith(f"{block}."):
                return number
        modules = list(dict(self.model.named_modules()))
        after = bool(self.blocks) and modules.index(name) > modules.index(self.blocks[-1])
        return len(self.blocks) if after else -1

    def store(self, layer: int, batch: int, output: Any) -> Any:
        """Keep an output; gives what to find it by."""
        plain = _moved(output, "cpu")
        if self.place == "memory":
            return plain
        path = self.folder / f"{layer}-{batch}.pt"
        torch.save(plain, path)
        return path

    def load(self, stored: Any, device: Any) -> Any:
        """What was kept, where the model is."""
        found = torch.load(stored, weights_only=True) if isinstance(stored, Path) else stored
        return _moved(found, device)

    def check_batch(self, number: int, inputs: Any) -> None:
        """Refuse batches in another order than in the pass before."""
        if not self.blocks:
            return
        mark = _mark(inputs)
        if number == len(self.marks):
            self.marks.append(mark)
        elif self.marks[number] != mark:
            raise InputError(
                "The batches come in another order than before, so that kept states do not fit",
                f"batch {number}",
                "Load without shuffling, or with cache=None",
            )


class _Pass:
    """The batches of one pass, one after the other."""

    def __init__(self, cache: StateCache, keep: int) -> None:
        self.cache, self.number, self.kept_number = cache, -1, keep
        self.outputs: list[Any] = []
        self.ready: Any = None

    def begin(self, inputs: Any) -> None:
        """The next batch comes."""
        self.number += 1
        self.ready = None
        self.cache.check_batch(self.number, inputs)

    def give(self, args: Any, kwargs: Any) -> Any:
        if self.ready is None:
            first = next((v for v in (*args, *kwargs.values()) if hasattr(v, "device")), None)
            device = "cpu" if first is None else first.device
            self.ready = self.cache.load(self.cache.outputs[self.number], device)
        return self.ready

    def keep_output(self, output: Any) -> Any:
        self.outputs.append(self.cache.store(self.kept_number, self.number, output))
        return output


def _list_of(model: Any, names: Sequence[str]) -> list[str]:
    """The list of layers that all these modules are in, or stand before or behind."""
    blocks = blocks_of(model)
    inside = {
        block.rpartition(".")[0]
        for block in blocks
        if any(name == block or name.startswith(f"{block}.") for name in names)
    }
    if len(inside) != 1:
        raise InputError(
            "States can be kept between passes for the layers of one list only",
            f"modules in {sorted(inside) or 'no list of layers'}",
            "Scrub one list at a time, or with cache=None",
        )
    (of,) = inside
    return [block for block in blocks if block.rpartition(".")[0] == of]


def _moved(output: Any, device: Any) -> Any:
    if isinstance(output, torch.Tensor):
        return output.detach().to(device)
    if isinstance(output, tuple):
        return tuple(_moved(part, device) for part in output)
    return output


def _mark(inputs: Any) -> str:
    values = inputs.values() if isinstance(inputs, Mapping) else (inputs,)
    digest = hashlib.sha256()
    for value in values:
        if isinstance(value, torch.Tensor):
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    return digest.hexdigest()
