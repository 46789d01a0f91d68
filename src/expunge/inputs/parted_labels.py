"""Labels that lie in partitions on a cluster: only their codes come here, a byte or two for each.

What the classes are is found there, and every partition encodes its own labels in every pass. The
codes are fetched once, because a fit wants to know the class of some rows by number.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.errors import InputError
from expunge.inputs.concepts import ConceptKind, check_classes, check_concept, kind_of, plain_labels
from expunge.inputs.missing_words import caution_of_missing_words
from expunge.rows.base import Rows
from expunge.rows.dask_graph import each, tree
from expunge.rows.dask_parts import PartedColumn
from expunge.rows.part_sums import Place, codes_of

__all__ = ["parted_concept"]

MANY = 1 << 16  # different values above which all of them come here


def parted_concept(
    column: PartedColumn,
    rows: Any,
    *,
    concept_type: ConceptKind,
    name: str,
    owner: str,
    whole: bool,
) -> Concept:
    """The concept of labels in partitions; parameters as of `check_concept`.

    Parameters
    ----------
    column : PartedColumn
    rows : Rows or int
    concept_type, name, owner, whole
        As of `check_concept`.

    Returns
    -------
    Concept
        Whose values the rows find where they are.
    """
    filled = [at for at, size in enumerate(column.sizes) if size]
    starts = np.cumsum([0, *column.sizes])
    places = [Place(at, int(starts[at])) for at in filled]
    lazy = each(distinct, [column.parts[at] for at in filled], places, [name] * len(filled))
    (seen,) = column.runner.compute([tree(lazy, union)])
    if seen is not None and kind_of(seen, concept_type, name) == "classes":
        labels = tuple(plain_labels(seen, name).tolist())
        check_classes(labels, len(column), name, whole, seen.dtype, concept_type)
        parts = each(codes_of, column.parts, [labels] * len(column.parts))
        codes = PartedColumn(parts, column.sizes, column.runner).gather()
        if whole:
            caution_of_missing_words(labels, codes, name, stacklevel=5)
        found = Concept("classes", codes.astype(np.int32), labels)
    else:
        labels = None
        found = check_concept(
            column.gather(),
            len(column),
            concept_type=concept_type,
            name=name,
            owner=owner,
            whole=whole,
        )
    if isinstance(rows, Rows):
        rows.lies_at(found.values, column, found.labels if found.kind == "classes" else None)
    return found


def distinct(values: NDArray[Any], place: Place, name: str) -> NDArray[Any] | None:
    """The different labels of a partition, sorted; None for very many."""
    try:
        checked = check_concept(values, len(values), concept_type="classes", name=name, whole=False)
    except InputError as error:
        where = f"counted within partition {place.number}, which begins at row {place.start}"
        raise InputError(error.problem, f"{error.received}, {where}", error.remedy) from None
    if checked.width > MANY:
        return None
    return np.array(checked.labels)


def union(parts: Sequence[NDArray[Any] | None]) -> NDArray[Any] | None:
    """The different labels of several partitions, sorted; None for very many."""

    def both(a: NDArray[Any] | None, b: NDArray[Any] | None) -> NDArray[Any] | None:
        if a is None or b is None:
            return None
        if (a.dtype.kind == "U") != (b.dtype.kind == "U"):
            a, b = a.astype(object), b.astype(object)
            return np.array([*a, *b], dtype=object)  # refused with a message later
        return np.union1d(a, b)

    found = reduce(both, parts)
    return None if found is None or len(found) > MANY else found
