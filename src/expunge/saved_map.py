"""What all maps share: the record of what made them, their columns, their file."""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from numpy.typing import NDArray

from expunge import artifact
from expunge.files.vector_columns import VectorColumns
from expunge.inputs.widths import check_width
from expunge.linalg import Array
from expunge.meta import plain_meta

__all__ = ["SavedMap"]


class SavedMap(ABC):
    """Base of the frozen maps; a subclass says of what its file is made.

    `file_kind` is what its files are called inside, `needs_concept` whether it has to be told the
    concept of each row.
    """

    file_kind: ClassVar[str]
    needs_concept: ClassVar[bool] = False
    _meta: dict[str, Any]

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Width of the rows it applies to."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Number of directions in which it moves rows."""

    @abstractmethod
    def tensors(self) -> dict[str, Array]:
        """All numbers of the map by name, as a file holds them."""

    @classmethod
    @abstractmethod
    def _names(cls) -> tuple[Iterable[str], Iterable[str]]:
        """Arrays that a file must hold, and those that it may."""

    @classmethod
    @abstractmethod
    def _from_file(cls, header: Mapping[str, Any], tensors: Mapping[str, NDArray[Any]]) -> Self:
        """The map of what a file holds; any ValueError, TypeError or KeyError says it is none."""

    def _header(self) -> dict[str, Any]:
        """What a file says beside its kind and the meta data."""
        return {}

    @property
    def meta(self) -> dict[str, Any]:
        """What made it (a copy)."""
        return copy.deepcopy(self._meta)

    def with_meta(self, meta: Mapping[str, Any]) -> Self:
        """The same map with another record of what made it.

        Examples
        --------
        >>> from expunge import Erasure
        >>> Erasure.identity(3).with_meta({"by": "hand"}).meta
        {'by': 'hand'}
        """
        found = copy.copy(self)
        vars(found)["_meta"] = plain_meta(meta)
        return found

    @property
    def columns(self) -> VectorColumns | None:
        """Which columns of a table it was fitted on; None for arrays."""
        return VectorColumns.from_meta(self._meta.get("columns"))

    def check_width(self, shape: tuple[int, ...]) -> None:
        """Refuse rows of another width than this map is for."""
        check_width(shape[-1] if shape else 0, self.n_features, received=f"shape {tuple(shape)}")

    def save(self, path: str | os.PathLike[str], *, date: str | None = None) -> None:
        """Write to a safetensors file, atomically; equal maps give equal bytes.

        Parameters
        ----------
        path : str or path
        date : str, optional
            Recorded in `meta` if given; the clock is never read.
        """
        meta = self._meta if date is None else {**self._meta, "date": date}
        header = {"kind": self.file_kind, **self._header(), "meta": meta}
        artifact.write(path, self.tensors(), header)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read from a file; runs no code from it.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        a map of this class

        Raises
        ------
        BadArtifact
            If the file is damaged, truncated, foreign or of a newer format.
        """
        header, tensors = artifact.read(path, kind=cls.file_kind, names=lambda _: cls._names())
        try:
            return cls._from_file(header, tensors)
        except (LookupError, TypeError, ValueError) as error:  # an InputError is a ValueError
            raise artifact.BadArtifact(f"{os.fspath(path)}: {error}") from error
