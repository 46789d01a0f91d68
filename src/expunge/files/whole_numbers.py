"""Columns of whole numbers beside few others: labels they may be, or the vectors for the most part.

A table of ages, years and hours with one column of fractions would lose that column alone to an
erasure, and nobody would notice. So where names do not tell which columns the vectors are, it is
asked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from expunge.errors import InputError
from expunge.files.naming import is_family, listed

__all__ = ["beside_fractions", "refuse_few_fractions", "refuse_unless_labels"]

LABELS = 1  # columns of whole numbers that may be labels where nothing has been named yet


def beside_fractions(
    wholes: Sequence[str], chosen: Sequence[str], vectors: object
) -> tuple[str, ...]:
    """Columns of whole numbers that may be vectors too: nobody said, and no names tell.

    Parameters
    ----------
    wholes : sequence of str
        All columns of whole numbers.
    chosen : sequence of str
        The columns that were taken for the vectors.
    vectors : object
        What was said of them; None for nothing.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from expunge.files.whole_numbers import beside_fractions
    >>> beside_fractions(["age"], ["score"], None), beside_fractions(["age"], ["e0", "e1"], None)
    (('age',), ())
    """
    if vectors is not None or is_family(chosen):
        return ()
    return tuple(name for name in wholes if name not in {*chosen})


def refuse_few_fractions(fractions: Sequence[str], wholes: Sequence[str], where: str) -> None:
    """Refuse to guess where there are as many columns of whole numbers as of fractions.

    Parameters
    ----------
    fractions : sequence of str
        Columns that would be the vectors.
    wholes : sequence of str
        Columns of whole numbers that would not, and that nothing else names.
    where : str
        The name of the table.

    Raises
    ------
    InputError
    """
    if len(wholes) < max(len(fractions), 1):
        return
    raise InputError(
        f"Are {listed(fractions)} all of the vectors? Only they have fractions in {where}",
        f"the columns of whole numbers {listed(wholes)} beside them",
        "Say vectors='*' for all columns of numbers, or name those that are vectors",
    )


def refuse_unless_labels(fractions: Sequence[str], wholes: Sequence[str], where: str) -> None:
    """The same of rows that are opened before anything is named: one column may be labels.

    Parameters
    ----------
    fractions, wholes, where
        As of `refuse_few_fractions`.

    Raises
    ------
    InputError
    """
    if len(wholes) > LABELS:
        refuse_few_fractions(fractions, wholes, where)
