"""Which columns of a table hold the vectors: chosen at a fit, and found again in other tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from expunge.errors import InputError
from expunge.files.naming import listed, nearest

__all__ = ["VectorColumns"]


@dataclass(frozen=True)
class VectorColumns:
    """Columns of numbers in order, or one column of lists.

    Parameters
    ----------
    names : tuple
        Usually text.
    lists : bool
        Whether it is one column of lists.
    beside : tuple of str or None
        The other columns that a table may have; None for any.

    Examples
    --------
    >>> from expunge.files.vector_columns import VectorColumns
    >>> chosen = VectorColumns(("a", "b"), beside=("sex",))
    >>> chosen.ordered(["b", "sex", "a"])
    ('a', 'b')
    >>> chosen.ordered(["a", "c"])
    Traceback (most recent call last):
        ...
    expunge.errors.InputError: The table is not like that of the fit: 'b' missing, 'c' unknown. Received the columns 'a', 'c'. Pass the columns of the fit, in any order.
    """  # noqa: E501

    names: tuple[Any, ...]
    lists: bool = False
    beside: tuple[str, ...] | None = None

    def ordered(self, columns: Sequence[Any]) -> tuple[Any, ...]:
        """The names, after a check that a table with these columns has them and no strange ones.

        Parameters
        ----------
        columns : sequence

        Returns
        -------
        tuple

        Raises
        ------
        InputError
        """
        there = {*columns}
        missing = [name for name in self.names if name not in there]
        allowed = there if self.beside is None else {*self.names, *self.beside}
        strange = [name for name in columns if name not in allowed]
        if missing or strange:
            parts = [f"{listed(missing)} missing"] if missing else []
            parts += [f"{listed(strange)} unknown"] if strange else []
            raise InputError(
                f"The table is not like that of the fit: {', '.join(parts)}",
                f"the columns {listed(columns)}",
                "Pass the columns of the fit, in any order",
            )
        return self.names

    def among(self, names: Sequence[Any], others: Sequence[Any]) -> tuple[Any, ...]:
        """Those of rows of a file or a cluster, which may have anything beside their vectors.

        Parameters
        ----------
        names : sequence
            The columns that are taken for the vectors.
        others : sequence
            The other columns.

        Returns
        -------
        tuple

        Raises
        ------
        InputError
            When one is missing.

        Examples
        --------
        >>> from expunge.files.vector_columns import VectorColumns
        >>> VectorColumns(("a", "b"), beside=("sex",)).among(["b", "a", "age"], ["name"])
        ('a', 'b')
        """
        return VectorColumns(self.names).ordered([*names, *others])

    def asked_of(self, lists: Sequence[str], columns: Sequence[str]) -> list[str] | None:
        """What to ask a file for: these columns where it has them, None for what it would take.

        Parameters
        ----------
        lists : sequence of str
            Columns of lists of the file.
        columns : sequence of str
            All of its columns.

        Returns
        -------
        list of str or None

        Raises
        ------
        InputError
            When some are missing and there is no column of lists in their place.

        Examples
        --------
        >>> from expunge.files.vector_columns import VectorColumns
        >>> VectorColumns(("b", "a")).asked_of([], ["a", "b", "c"])
        ['b', 'a']
        >>> VectorColumns(("emb",), lists=True).asked_of(["other"], ["other", "sex"])
        """
        if self.lists:
            return list(self.names) if self.names[0] in lists else None
        if lists and not {*self.names} <= {*columns}:
            return None
        return list(VectorColumns(self.names).ordered(columns))

    def as_given(self, columns: Sequence[Any]) -> tuple[Any, ...]:
        """Those of a table with these columns, in its order, but for those known to be beside.

        Parameters
        ----------
        columns : sequence

        Returns
        -------
        tuple
        """
        if self.beside is None:
            return self.ordered(columns)
        return tuple(name for name in columns if name not in self.beside)

    def to_meta(self) -> dict[str, Any] | None:
        """What an erasure remembers of it; None for names that are not text."""
        if not all(isinstance(name, str) for name in self.names):
            return None
        if self.lists:
            return {"vectors": self.names[0]}
        beside = None if self.beside is None else list(map(str, self.beside))
        return {"vectors": list(self.names), "beside": beside}

    @classmethod
    def from_meta(cls, meta: Any) -> VectorColumns | None:
        """What an erasure remembers, or None; see `expunge.meta` for its check."""
        if not isinstance(meta, Mapping):
            return None
        vectors, beside = meta.get("vectors"), meta.get("beside")
        if isinstance(vectors, str):
            return cls((vectors,), lists=True)
        if not isinstance(vectors, list):
            return None
        return cls(tuple(vectors), beside=None if beside is None else tuple(beside))


def no_such_column(name: Any, columns: Sequence[Any], what: str) -> InputError:
    """What to say of a name that a table does not have.

    Parameters
    ----------
    name : str
    columns : sequence of str
    what : str
        What named it: "y", "vectors".

    Returns
    -------
    InputError
    """
    text = [column for column in columns if isinstance(column, str)]
    return InputError(
        f"{what} names the column {name!r}, which the table does not have{nearest(name, text)}",
        f"the columns {listed(columns)}",
        "Name one of these, or pass the values themselves, one per row",
    )
