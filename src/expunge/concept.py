"""A concept: what is to be erased, as labels or numbers attached to rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.linalg import Array

__all__ = ["Concept", "Indicator", "Kind", "Label", "column_label", "concept_of"]

Kind = Literal["classes", "labels", "continuous"]
Label = str | int | float | bool
SIGNS = re.compile(r"[\\=:]")  # what has a meaning in joined names
FIRST_PART = re.compile(r"(?:\\.|[^\\=:])*", re.DOTALL)


class Indicator(str):
    """Name of a 0/1 column of one class among several concepts; where it is absent it is zero.

    It reads ``concept=class``. No two classes have the same: a backslash stands before signs of the
    concept's own name that could be taken for the one between, and text that could be taken for a
    number is quoted.

    Examples
    --------
    >>> from expunge.concept import Indicator
    >>> [str(Indicator.of("sex", label)) for label in ("f", 1, "1")]
    ['sex=f', 'sex=1', "sex='1'"]
    """

    __slots__ = ()

    @classmethod
    def of(cls, concept: str, label: Label) -> Indicator:
        """The name of the column of a class."""
        return cls(f"{_escaped(concept)}={_shown(label)}")

    @property
    def concept(self) -> str:
        """The name of its concept, as `concept_of` gives it."""
        return concept_of(self)

    @property
    def label_type(self) -> str:
        """Whether the class is text, a truth value or a number."""
        shown = self[len(self.concept) + 1 :]
        if shown in ("True", "False"):
            return "a truth value"
        return "a number" if _is_number(shown) else "text"


def column_label(concept: str, column: Label | None = None) -> str:
    """Name of a column of one concept among several: ``concept:column``, or ``concept`` alone.

    Parameters
    ----------
    concept : str
    column : str or number, optional
        Where the concept has more than one.

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.concept import column_label
    >>> column_label("age"), column_label("place", "lat")
    ('age', 'place:lat')
    """
    return _escaped(concept) + ("" if column is None else f":{_shown(column)}")


def concept_of(label: Label) -> str:
    """The first part of a joined name, which belongs to one concept only (with backslashes).

    Parameters
    ----------
    label : str

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.concept import concept_of
    >>> concept_of("sex=f"), concept_of("place:lat"), concept_of("age")
    ('sex', 'place', 'age')
    """
    found = FIRST_PART.match(str(label))
    assert found is not None  # it matches the empty text
    return found[0]


def _escaped(name: str) -> str:
    return SIGNS.sub(r"\\\g<0>", name)


def _shown(label: Label) -> str:
    """A label as text that no other label has."""
    if not isinstance(label, str):
        whole = isinstance(label, float) and label.is_integer()
        return repr(int(label) if whole else label)  # 1.0 is the class 1
    quoted = label.startswith(("'", '"')) or label in ("True", "False") or _is_number(label)
    return repr(label) if quoted else label


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@dataclass(frozen=True, eq=False)
class Concept:
    """One concept for n rows, checked and encoded.

    Parameters
    ----------
    kind : {"classes", "labels", "continuous"}
        One class per row; a 0/1 indicator per label; or numbers.
    values : array
        Class codes of shape (n,) that index `labels`, else float64 of shape (n, m).
    labels : tuple
        The classes in sorted order, else one name per column.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.concept import Concept
    >>> Concept("classes", np.array([0, 1, 0]), ("f", "m")).columns(0, 2)
    array([[1., 0.],
           [0., 1.]])
    """

    kind: Kind
    values: NDArray[Any]
    labels: tuple[Label, ...]

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def width(self) -> int:
        """Number of indicator or number columns: the classes, the labels, the components."""
        return len(self.labels)

    def columns(self, start: int = 0, stop: int | None = None) -> Array:
        """Rows `start` to `stop` as float64 columns (b x width); classes as one-hot."""
        part = self.values[start:stop]
        if self.kind != "classes":
            return np.asarray(part, dtype=np.float64)
        Z = np.zeros((part.shape[0], self.width))
        Z[np.arange(part.shape[0]), part] = 1.0
        return Z

    def take(self, rows: slice | NDArray[Any]) -> Concept:
        """The concept of some of the rows, over the same labels."""
        return Concept(self.kind, self.values[rows], self.labels)

    def only(self, columns: Sequence[int]) -> Concept:
        """Some of the columns as a concept of their own; of classes, each against the rest."""
        kind: Kind = "labels" if self.kind == "classes" else self.kind
        Z = self.columns()[:, list(columns)]
        return Concept(kind, Z, tuple(self.labels[j] for j in columns))

    def with_weight(self, weights: Array | None) -> Concept:
        """The concept without classes of no weight; their rows count nothing and join another."""
        if self.kind != "classes" or weights is None:
            return self
        seen = np.bincount(self.values, weights=weights, minlength=self.width) > 0
        if seen.all():
            return self
        codes = np.maximum(np.cumsum(seen) - 1, 0)[self.values]
        kept = tuple(label for label, has in zip(self.labels, seen, strict=True) if has)
        return Concept("classes", codes, kept)

    @classmethod
    def none(cls, n_samples: int) -> Concept:
        """No concept: no columns."""
        return cls("continuous", np.zeros((n_samples, 0)), ())

    @classmethod
    def of_numbers(cls, Z: NDArray[Any]) -> Concept:
        """Wrap a float array of shape (n,) or (n, m) as a continuous concept, unchecked."""
        Z = np.asarray(Z, dtype=np.float64)
        Z = Z[:, None] if Z.ndim == 1 else Z
        return cls("continuous", Z, tuple(range(Z.shape[1])))
