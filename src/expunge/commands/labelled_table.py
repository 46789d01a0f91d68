"""A table as the commands take it: vectors of a file, and the labels that options name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.addresses import Where
from expunge.commands.engines import RowsOf
from expunge.commands.guard import say
from expunge.commands.label_files import read_labels
from expunge.commands.missing_labels import labelled_rows, tidied
from expunge.commands.word_labels import by_lists, by_pair, words_of
from expunge.errors import InputError
from expunge.files.budget import check_memory
from expunge.files.formats import open_file
from expunge.files.naming import listed
from expunge.files.table import VectorFile
from expunge.files.vector_columns import VectorColumns
from expunge.files.whole_numbers import refuse_few_fractions
from expunge.inputs import check_number
from expunge.inputs.matrices import as_numpy
from expunge.rows.base import Rows
from expunge.rows.chunked import ChunkedRows
from expunge.rows.lazy_rows import JoinedRows, SelectedRows

__all__ = [
    "Asked",
    "LabelledTable",
    "held_out_rows",
    "names_of",
    "open_known",
    "open_table",
    "pool_of_table",
    "table_to_erase",
]

Watch = Callable[[int, int], None]  # (rows read, rows)
LEFT_OUT = "left out of the vectors: the columns {}, which --vectors can name too"
DROP = "Write --missing drop, or fill in what is missing"
PART = 4  # of the memory, one in so many for rows that are kept


@dataclass(frozen=True)
class Asked:
    """What the options of a command ask for.

    Attributes
    ----------
    concepts : sequence of str
        Columns or files of labels.
    vectors : sequence of str or None
    memory : str
    concept_option : str
        What to call the option of the concepts.
    known : VectorColumns or None
        The columns of the fit, which are the vectors where no option names others.
    task, weights, ids, groups : str or None
        Columns or files.
    pair, words : str or None
        Labels of word vectors.
    word_column : str
    missing : {"error", "drop", "unlabelled"}
    pools : bool
        Whether the command can use rows without labels.
    rows_of : function of a VectorFile, optional
        How another engine has rows of a file.
    """

    concepts: Sequence[str] = ()
    vectors: Sequence[str] | None = None
    memory: str = "1GB"
    concept_option: str = "--concept"
    known: VectorColumns | None = None
    task: str | None = None
    weights: str | None = None
    ids: str | None = None
    groups: str | None = None
    pair: str | None = None
    words: str | None = None
    word_column: str = "word"
    missing: str = "error"
    pools: bool = False
    rows_of: RowsOf | None = None

    @property
    def labels(self) -> set[str]:
        """What may be columns that are no vectors."""
        others = (self.task, self.weights, self.ids, self.groups)
        return {*self.concepts, *(name for name in others if name is not None)}


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """Rows with all that belongs to them.

    Attributes
    ----------
    path : Path or Address
    rows : Rows
        Those that have labels.
    concept : array of shape (n,) or (n, m), mapping of str to such, or None
    task, weights, ids, words, groups : arrays of shape (n,) or None
    notes : tuple of str
        What was left out or found.
    unlabelled : Rows or None
        Rows without labels that were not left out.
    chosen : VectorColumns or None
        Which columns of the file the vectors are.
    """

    path: Where
    rows: Rows
    concept: Any = None
    task: NDArray[Any] | None = None
    weights: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    words: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()
    unlabelled: Rows | None = None
    chosen: VectorColumns | None = None

    def take(self, index: NDArray[np.intp], memory: int) -> LabelledTable:
        """Some of the rows, in memory if they are few."""

        def some(values: Any) -> Any:
            if isinstance(values, Mapping):
                return {name: column[index] for name, column in values.items()}
            return None if values is None else values[index]

        return replace(
            self,
            rows=_some_rows(self.rows, index, memory),
            concept=some(self.concept),
            task=some(self.task),
            weights=some(self.weights),
            ids=some(self.ids),
            words=some(self.words),
            groups=some(self.groups),
        )


def _some_rows(rows: Rows, index: NDArray[np.intp], memory: int) -> Rows:
    """Rows by number, ascending: of a cluster where they are, else in memory if they are few."""
    if hasattr(rows, "some"):
        there: Rows = rows.some(index)
        return there
    size = len(index) * rows.n_features * rows.dtype.itemsize
    return rows.take(index) if size <= memory // PART else SelectedRows(rows, index)


class _WatchedRows(ChunkedRows):
    """Rows of a file that tell how far a pass over them has come."""

    watch: Watch

    def blocks(self) -> Iterator[tuple[int, NDArray[Any]]]:
        for start, X in super().blocks():
            yield start, X
            self.watch(start + len(X), self.n_samples)


def names_of(vectors: Sequence[str] | None) -> str | list[str] | None:
    """What an option that may be repeated, with commas in it, names: one thing or several.

    Parameters
    ----------
    vectors : sequence of str or None

    Returns
    -------
    str, list of str or None

    Examples
    --------
    >>> from expunge.commands.labelled_table import names_of
    >>> names_of(["e0,e1"]), names_of(["embedding"]), names_of(None)
    (['e0', 'e1'], 'embedding', None)
    """
    names = [name.strip() for part in vectors or () for name in part.split(",")]
    return names[0] if len(names) == 1 else (names or None)


def open_known(
    path: Where, names: str | list[str] | None, known: VectorColumns | None
) -> VectorFile:
    """The file with the columns that are named, else with those of a fit; in the order of the fit.

    Parameters
    ----------
    path : Path or Address
    names : str, list of str or None
    known : VectorColumns or None

    Returns
    -------
    VectorFile
    """
    file = open_file(path, known if names is None else names)
    if known is None or {*known.names} != {*file.vector_columns}:
        return file
    return file if known.names == file.vector_columns else open_file(path, known)


def table_to_erase(path: Where, asked: Asked, what: str) -> LabelledTable:
    """The table of a command that has to know what to erase; notes about it are shown.

    Parameters
    ----------
    path : Path or Address
    asked : Asked
    what : str
        What the command makes, as the subject of a sentence.

    Returns
    -------
    LabelledTable

    Raises
    ------
    InputError
        Without a concept, a pair or words, and as `open_table`.
    """
    if not (asked.concepts or asked.pair or asked.words):
        raise InputError(
            f"{what} has to know what to erase",
            "no --concept",
            "Write --concept COLUMN, or for word vectors --pair he,she",
        )
    table = open_table(path, asked)
    for note in table.notes:
        say(note)
    return table


def open_table(path: Where, asked: Asked, watch: Watch | None = None) -> LabelledTable:
    """The vectors of a file with their labels, without rows that have none.

    Parameters
    ----------
    path : Path or Address
    asked : Asked
    watch : function of (rows read, rows), optional
        Told of every block that is read.

    Returns
    -------
    LabelledTable

    Raises
    ------
    InputError
        For a column or a file that is not there, and for labels that are missing.
    """
    file, notes = _opened(path, asked)
    rows: Rows = ChunkedRows(file, asked.memory)
    if asked.rows_of is not None:
        rows = asked.rows_of(file)
    elif watch is not None:
        watched = _WatchedRows(file, asked.memory)
        watched.watch, rows = watch, watched
    sources = [asked.concepts or None, asked.pair, asked.words]
    if sum(source is not None for source in sources) > 1:
        raise InputError(
            "Labels come from one place",
            f"more than one of {asked.concept_option}, --pair and --words",
            "Leave out the others",
        )
    if asked.pair is not None or asked.words is not None:
        if not isinstance(rows, ChunkedRows):
            raise InputError(
                "Words are labelled by their place among all words, which are read here",
                "--pair" if asked.pair is not None else "--words",
                "Leave out --engine: the words of a language fit into one machine",
            )
        return _of_words(path, rows, asked)
    return _without_missing(path, rows, _concepts(path, rows, asked), asked, notes)


def _opened(path: Where, asked: Asked) -> tuple[VectorFile, tuple[str, ...]]:
    """The file, and what to say of its columns; labels that no name took for vectors are none."""
    names = names_of(asked.vectors)
    file = open_known(path, names, asked.known)
    left = [name for name in file.left_out if name not in asked.labels]
    notes = (LEFT_OUT.format(listed(left)),) if left else ()
    if names is None and asked.known is not None:
        return file, ()
    exact = [names] if isinstance(names, str) else (names or [])
    mine = [name for name in file.vector_columns if name in exact or name not in asked.labels]
    wholes = [name for name in file.wholes if name not in asked.labels]
    if wholes:
        refuse_few_fractions(mine, wholes, path.name)
    if mine and len(mine) < len(file.vector_columns):
        file = open_file(path, mine)
    return file, notes


def _concepts(path: Where, rows: Rows, asked: Asked) -> dict[str, NDArray[Any]]:
    concepts: dict[str, NDArray[Any]] = {}
    for what in asked.concepts:
        name, values = read_labels(what, rows, path.name, asked.concept_option)
        if name in concepts:
            raise InputError(
                f"{asked.concept_option} names the same thing twice", repr(name), "Leave one out"
            )
        concepts[name] = values
    return concepts


def pool_of_table(table: LabelledTable, file: str | None, asked: Asked) -> Rows | None:
    """Rows without labels: of the table itself, of another file, or both.

    Parameters
    ----------
    table : LabelledTable
    file : str or None
        Another file of vectors.
    asked : Asked
        For the table.

    Returns
    -------
    Rows or None
    """
    if file is None:
        return table.unlabelled
    opened = open_file(file, table.chosen or names_of(asked.vectors))
    found: Rows = ChunkedRows(opened, asked.memory)
    if asked.rows_of is not None:
        found = asked.rows_of(opened)
    return found if table.unlabelled is None else JoinedRows(found, table.unlabelled)


def held_out_rows(n: int, share: float, seed: int) -> NDArray[np.bool_]:
    """Which rows a fit leaves out; the same for the same numbers.

    Parameters
    ----------
    n : int
    share : float
        From 0 up to, not including, 1.
    seed : int

    Returns
    -------
    bool array of shape (n,)

    Examples
    --------
    >>> from expunge.commands.labelled_table import held_out_rows
    >>> int(held_out_rows(10, 0.2, seed=0).sum())
    2
    """
    check_number(share, "holdout", most=0.9)
    left = np.zeros(n, bool)
    left[np.random.default_rng(seed).permutation(n)[: round(share * n)]] = True
    return left


def _of_words(path: Where, rows: ChunkedRows, asked: Asked) -> LabelledTable:
    words = words_of(rows, asked.word_column, path.name)
    if asked.pair is not None:
        index, labels, note = by_pair(rows, words, asked.pair)
    else:
        assert asked.words is not None
        index, labels, note = by_lists(words, asked.words)
    every: NDArray[Any] = np.full(len(words), "", dtype=labels.dtype)
    every[index] = labels
    table = _without_missing(path, rows, {}, replace(asked, pair=None, words=None), (note,))
    if len(table.words if table.words is not None else words) != len(words):
        raise InputError(
            "Labels of words and rows without other labels do not go together",
            "--missing drop",
            "Leave out --task, --weights or --ids, or fill in what is missing",
        )
    return replace(replace(table, concept=every), words=words).take(index, rows.memory)


def _without_missing(
    path: Where,
    rows: Rows,
    concepts: dict[str, NDArray[Any]],
    asked: Asked,
    notes: tuple[str, ...],
) -> LabelledTable:
    if asked.missing == "unlabelled" and not asked.pools:
        raise InputError(
            "Only fit and plan can use rows without labels", "--missing unlabelled", DROP
        )
    others = {
        option: read_labels(what, rows, path.name, f"--{option}")[1]
        for option in ("task", "weights", "ids", "groups")
        if (what := getattr(asked, option)) is not None
    }
    named = {f"{asked.concept_option} {name}": column for name, column in concepts.items()}
    named.update({f"--{option}": column for option, column in others.items()})
    if asked.rows_of is not None and asked.missing == "error":
        named = {}  # who reads them there refuses them there
    index, note = labelled_rows(named, rows.n_samples, asked.missing)
    tidy = {name: tidied(column, index) for name, column in concepts.items()}
    beside: dict[str, Any] = {option: tidied(column, index) for option, column in others.items()}
    concept = next(iter(tidy.values()), None) if len(tidy) < 2 else tidy
    words = None
    if asked.word_column in rows.columns and asked.rows_of is None:
        words = rows.column(asked.word_column)
    notes = (*notes, note) if note else notes
    table = LabelledTable(path, rows, words=words, notes=notes, chosen=rows.chosen)
    if index is not None:
        lost = np.setdiff1d(np.arange(rows.n_samples), index)
        budget = check_memory(asked.memory)
        pool = _some_rows(rows, lost, 0) if asked.missing == "unlabelled" else None
        table = replace(table.take(index, budget), unlabelled=pool)
    for option in ("ids", "groups"):
        if option in beside:
            beside[option] = as_numpy(beside[option])
    return replace(table, concept=concept, **beside)
