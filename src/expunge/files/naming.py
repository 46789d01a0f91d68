"""Names of columns: found, or refused with the nearest one that there is."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from expunge.errors import InputError
from expunge.files.decimal_commas import with_decimal_commas

__all__ = ["check_name", "choose_columns", "is_family", "left_out", "listed", "nearest"]

NUMBERED = re.compile(r"(.*?)(\d+)", re.DOTALL)
SHOWN = 12


def listed(names: Iterable[str]) -> str:
    """Names as a message shows them: the first few.

    Parameters
    ----------
    names : iterable of str

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.files.naming import listed
    >>> listed(["a", "b"]), listed([])
    ("'a', 'b'", 'none')
    """
    found = list(names)
    rest = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return (", ".join(map(repr, found[:SHOWN])) or "none") + rest


def nearest(name: str, names: Iterable[str]) -> str:
    """A hint at the name that was perhaps meant, or nothing.

    Parameters
    ----------
    name : str
    names : iterable of str

    Returns
    -------
    str

    Examples
    --------
    >>> from expunge.files.naming import nearest
    >>> nearest("gendr", ["gender", "age"])
    "; the nearest is 'gender'"
    """
    close = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f"; the nearest is {close[0]!r}" if close else ""


def check_name(name: str, names: Sequence[str], what: str, where: str) -> str:
    """A name that is among the others.

    Parameters
    ----------
    name : str
    names : sequence of str
    what : str
        What has such names: "column".
    where : str
        Where they are: the name of a file.

    Returns
    -------
    str

    Raises
    ------
    InputError
        With the nearest name.

    Examples
    --------
    >>> from expunge.files.naming import check_name
    >>> check_name("age", ["age", "gender"], "column", "people.csv")
    'age'
    """
    if name not in names:
        raise InputError(
            f"There is no {what} {name!r} in {where}{nearest(name, names)}",
            f"the {what}s {listed(names)}",
            "Name one of these",
        )
    return name


def choose_columns(
    lists: Sequence[str],
    floats: Sequence[str],
    numbers: Mapping[str, bool],
    vectors: str | Sequence[str] | None,
    where: str,
    commas: Mapping[str, str] | None = None,
) -> list[str]:
    """The columns of a table that hold the vectors.

    Named ones; else the only column of lists of floats; else float columns whose names differ only
    in the number at their end; else all float columns.

    Parameters
    ----------
    lists, floats : sequences of str
        Columns of lists of floats, and of floats.
    numbers : mapping of str to bool
        All columns in order, and whether each holds numbers, booleans or lists of numbers.
    vectors : str, sequence of str or None
        The name of a column, a pattern with ``*``, or several names.
    where : str
        The name of the file.
    commas : mapping of str to str, optional
        Columns whose numbers have decimal commas, and so are none, with one of each.

    Returns
    -------
    list of str
        One column of lists, or columns of numbers.

    Examples
    --------
    >>> from expunge.files.naming import choose_columns
    >>> columns = dict.fromkeys(["e0", "e1", "age"], True)
    >>> choose_columns([], ["e0", "e1", "age"], columns, None, "people.csv")
    ['e0', 'e1']
    """
    if vectors is not None:
        return _named(vectors, numbers, where, commas or {})
    if len(lists) == 1:
        return list(lists)
    families: dict[str, list[str]] = {}
    for name in floats:
        if match := NUMBERED.fullmatch(name):
            families.setdefault(match[1], []).append(name)
    several = [family for family in families.values() if len(family) > 1]
    if lists or len(several) > 1 or not floats:
        if commas and not lists and not several:
            raise with_decimal_commas(listed(commas), where, next(iter(commas.values())))
        candidates = [*lists, *(f"{family[0]} ... {family[-1]}" for family in several)]
        received = listed(candidates) if candidates else f"the columns {listed(numbers)}"
        problem = "More than one thing" if candidates else "Nothing"
        raise InputError(
            f"{problem} in {where} could be the vectors", received, 'Say which: vectors="name"'
        )
    return several[0] if several else list(floats)


def is_family(names: Sequence[str]) -> bool:
    """Whether names are several that differ only in the number at their end.

    Parameters
    ----------
    names : sequence of str

    Returns
    -------
    bool

    Examples
    --------
    >>> from expunge.files.naming import is_family
    >>> is_family(["e0", "e1"]), is_family(["e0", "age"]), is_family(["e0"])
    (True, False, False)
    """
    found = [NUMBERED.fullmatch(name) for name in names]
    begins = {None if match is None else match[1] for match in found}
    return len(names) > 1 and len(begins) == 1 and None not in begins


def left_out(
    numbers: Mapping[str, bool], chosen: Sequence[str], vectors: object
) -> tuple[str, ...]:
    """Columns of numbers that were not taken for vectors, although nobody said which to take.

    Parameters
    ----------
    numbers : mapping of str to bool
        As for `choose_columns`.
    chosen : sequence of str
    vectors : object
        What was said; None for nothing.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> from expunge.files.naming import left_out
    >>> left_out({"x": True, "is_new": True, "text": False}, ["x"], None)
    ('is_new',)
    """
    if vectors is not None:
        return ()
    return tuple(name for name, held in numbers.items() if held and name not in {*chosen})


def _named(
    vectors: str | Sequence[str],
    numbers: Mapping[str, bool],
    where: str,
    commas: Mapping[str, str],
) -> list[str]:
    if not isinstance(vectors, Iterable):
        raise InputError(
            "vectors must be the name of a column, or several names",
            f"vectors={vectors!r}",
            "Name a column of lists of numbers, or columns of numbers",
        )
    asked = [vectors] if isinstance(vectors, str) else [str(name) for name in vectors]
    found: list[str] = []
    for name in asked:
        if "*" in name and name not in numbers:
            there = [c for c, held in numbers.items() if held or c in commas]
            found += [c for c in there if fnmatchcase(c, name)]
        else:
            found.append(check_name(name, list(numbers), "column", where))
    if written := [name for name in found if name in commas]:
        raise with_decimal_commas(listed(written), where, commas[written[0]])
    if odd := [name for name in found if not numbers[name]]:
        raise InputError(
            f"A column of vectors holds no numbers: {listed(odd)}",
            f"vectors={vectors!r} for {where}",
            "Leave it out, or encode it as numbers (one column of 0 and 1 per value)",
        )
    if not found or len({*found}) < len(found):
        raise InputError(
            "A column of vectors was named twice, or none was",
            f"vectors={vectors!r} for {where}",
            "Name a column of lists of numbers, or columns of numbers",
        )
    return found
