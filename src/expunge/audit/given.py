"""What an audit is given: rows before and after, their concept, names and task, all checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.audit.units import flattened
from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import ConceptType, check_concept, check_rows, check_width, match_labels
from expunge.inputs.columns import by_name
from expunge.inputs.frames import rows_of_table
from expunge.inputs.several import split_concepts, split_frame, type_of
from expunge.inputs.swapped import no_eraser, refuse_swapped
from expunge.maps import Map
from expunge.rows.base import Rows
from expunge.rows.dense import DenseRows
from expunge.rows.lazy_rows import ChangedRows, JoinedRows, SelectedRows, extent

__all__ = ["STAGES", "AuditedRows", "Given", "Stage", "as_given", "erased_rows", "gather"]

Stage = Literal["before", "after"]
MISSING = ("NaT", "<NA>")  # of times and of pandas

STAGES: tuple[Stage, ...] = ("before", "after")


@dataclass(frozen=True, eq=False)
class AuditedRows:
    """Rows of the fit, or new ones.

    Attributes
    ----------
    before, after : rows of shape (n, d)
        Read in blocks and samples; erased rows are made when they are asked for.
    concept : Concept
    task : Concept or None
    names : tuple of str or None
    ids : array of shape (n,) or None
        Who or what a row belongs to: rows of one id are never on both sides of a probe.
    """

    before: Rows
    after: Rows
    concept: Concept
    task: Concept | None
    names: tuple[str, ...] | None
    ids: NDArray[Any] | None = None

    def __len__(self) -> int:
        return self.before.n_samples

    def at(self, stage: Stage) -> Rows:
        """The rows before or after."""
        return self.before if stage == "before" else self.after

    def take(self, index: NDArray[Any]) -> AuditedRows:
        """Some of the rows."""
        rows = np.flatnonzero(index) if index.dtype == bool else index
        return AuditedRows(
            SelectedRows(self.before, rows),
            SelectedRows(self.after, rows),
            self.concept.take(rows),
            None if self.task is None else self.task.take(rows),
            None if self.names is None else tuple(self.names[i] for i in rows),
            None if self.ids is None else self.ids[rows],
        )

    def joined(self, other: AuditedRows) -> AuditedRows:
        """These rows and then the others, with the same concept; without task and names."""
        values = np.concatenate([self.concept.values, other.concept.values])
        ids = None
        if self.ids is not None and other.ids is not None:
            ids = np.concatenate([self.ids, other.ids])
        return AuditedRows(
            JoinedRows(self.before, other.before),
            JoinedRows(self.after, other.after),
            Concept(self.concept.kind, values, self.concept.labels),
            None,
            None,
            ids,
        )


@dataclass(frozen=True, eq=False)
class Given:
    """Everything an audit looks at.

    Attributes
    ----------
    subject : object
        What was passed: an `Erasure` or anything with `transform`.
    meta : dict
        What is known about how it was made.
    spectrum : list of float or None
        Eigenvalues before rounding, where a fitted eraser was passed that has them.
    train : AuditedRows or None
        What was passed as rows of the fit.
    test : AuditedRows or None
        What was passed as new rows. One of the two is there.
    half : Rows or None
        `last` as it was passed, if it has 16 bits.
    widened : bool
        Whether rows of 16 bits were passed. They are erased in 32, as the fit saw them.
    """

    subject: Any
    meta: dict[str, Any]
    spectrum: list[float] | None
    train: AuditedRows | None
    test: AuditedRows | None
    half: Rows | None = None
    widened: bool = False

    @property
    def erasure(self) -> Erasure | None:
        """The subject, if it is an affine map that can be certified."""
        return self.subject if isinstance(self.subject, Erasure) else None

    @property
    def first(self) -> AuditedRows:
        """The training rows; without them the test rows."""
        part = self.test if self.train is None else self.train
        assert part is not None
        return part

    @property
    def last(self) -> AuditedRows:
        """The test rows; without them the training rows."""
        return self.first if self.test is None else self.test


def gather(
    erasure: Any,
    X_train: Any,
    y_train: Any,
    X_test: Any,
    y_test: Any,
    *,
    task: Any,
    names: Any,
    concept_type: ConceptType,
    ids: Any = None,
) -> Given:
    """Check what the user passed and erase the rows.

    Parameters
    ----------
    erasure, X_train, y_train, X_test, y_test, task, concept_type, ids
        As in `audit`; X may also be rows that are made when they are asked for, checked before.
    names : pair of sequences of str, sequence of str for the test rows, or None

    Returns
    -------
    Given
    """
    subject = _subject(erasure, (X_train, y_train, X_test, y_test))
    meta = getattr(subject, "meta", None)
    meta = dict(meta) if isinstance(meta, dict) else {}
    found = getattr(erasure, "spectrum_", None)
    spectrum = None if found is None else [float(value) for value in found]
    _check_passed(X_train, y_train, X_test, y_test)
    passed = [
        (X, y, name)
        for X, y, name in ((X_train, y_train, "train"), (X_test, y_test, "test"))
        if X is not None
    ]
    both = len(passed) == 2
    extras = {
        "task": _pair(task, both, "task"),
        "names": _pair(names, both, "words", lone_is_test=True),
        "ids": _pair(ids, both, "ids", lone_is_test=True),
    }
    parts: dict[str, AuditedRows] = {}
    half, several, widened = None, False, False
    for place, (X, y, name) in enumerate(passed):
        refuse_swapped(X, y)
        named = (y, *(pair[place] for pair in extras.values()))
        X = rows_of_table(X, *named, known=getattr(subject, "columns", None), name=f"X_{name}")
        rows = check_rows(X, name=f"X_{name}", least=2 if place == 0 else 1)
        if concept_type == "auto":
            concept_type = _kinds_of_the_fit(y, meta)
        if isinstance(y, str):
            concept_type = type_of(concept_type, y)
        half = rows if rows.dtype.kind not in "iu" and rows.dtype.itemsize == 2 else None
        widened |= half is not None
        y = by_name(y, rows, f"y_{name}")
        split = split_frame(y, "classes" if several else concept_type, f"y_{name}")
        several = split is not None
        y = y if split is None else split
        own = {key: by_name(pair[place], rows, key) for key, pair in extras.items()}
        known, first = meta.get("concept") or {}, parts.get("train")
        parts[name] = _checked_part(subject, rows, y, name, own, first, concept_type, known)
    _check_ids_agree([part.ids for part in parts.values() if part.ids is not None])
    return Given(subject, meta, spectrum, parts.get("train"), parts.get("test"), half, widened)


def _kinds_of_the_fit(y: Any, meta: Mapping[str, Any]) -> Any:
    """Which of several concepts by name the fit took for numbers; "auto" where it says nothing."""
    known = meta.get("concept") or {}
    if known.get("kind") != "continuous":
        return "auto"
    if isinstance(y, str):
        y = [y]
    names = y if isinstance(y, Mapping | list | tuple) else getattr(y, "columns", ())
    named = [name for name in names if isinstance(name, str) and name in known.get("labels", ())]
    return dict.fromkeys(named, "continuous") or "auto"


def _check_passed(X_train: Any, y_train: Any, X_test: Any, y_test: Any) -> None:
    for name, X, y in (("train", X_train, y_train), ("test", X_test, y_test)):
        if (X is None) != (y is None):
            raise InputError(
                f"X_{name} and y_{name} belong together",
                "one without the other",
                "Pass both or neither",
            )
    if X_train is None and X_test is None:
        raise InputError(
            "There are no rows to audit on",
            "neither X_train nor X_test",
            "Pass rows with their concept: those of the fit as X_train, new ones as X_test",
        )


def _checked_part(
    subject: Any,
    rows: Any,
    y: Any,
    name: str,
    own: dict[str, Any],
    first: AuditedRows | None,
    concept_type: ConceptType,
    of_the_fit: Mapping[str, Any],
) -> AuditedRows:
    """Rows with all that belongs to them; classes in the codes of the first rows, if any."""
    n = rows.n_samples
    if first is not None:
        check_width(
            rows.n_features,
            first.before.n_features,
            f"X_{name} has",
            "an audit with this X_train",
            remedy="Pass the same columns",
        )
    task = None
    which = "training" if name == "train" else "test"
    if first is None:
        several, kind = split_concepts(y, n) is not None, of_the_fit.get("kind")
        many = kind == "continuous" and len(of_the_fit.get("labels", ())) > 1
        single = (kind == "labels" or many) and np.ndim(y) == 1  # one of those erased together
        if concept_type != "auto" or not kind or several or single:
            kind = concept_type
        concept = check_concept(y, n, concept_type=kind, name=f"y_{name}", owner="An audit")
        if own["task"] is not None:
            task = check_concept(
                own["task"],
                n,
                concept_type="classes",
                name=f"task of the {which} rows",
                owner="An audit",
            )
    else:
        concept = _in_codes_of(first.concept, y, n, f"y_{name}", concept_type)
        if first.task is not None:
            task = _in_codes_of(first.task, own["task"], n, f"task of the {which} rows")
    if rows.dtype == np.float16:
        rows = ChangedRows(rows, lambda X, index: X.astype(np.float32))
    part = _part(subject, rows, concept, task, own["names"], f"X_{name}")
    return part if own["ids"] is None else replace(part, ids=_ids(own["ids"], n, name))


def _ids(ids: Any, n: int, name: str) -> NDArray[Any]:
    found = np.asarray(ids)
    if found.shape != (n,):
        raise InputError(
            f"ids (or groups) must name every row of X_{name}",
            f"shape {found.shape} for {n} rows",
            "Pass one id per row, of training and test rows as a pair (ids_train, ids_test); rows "
            "that belong together may share one",
        )
    missing = np.array([value is None or value != value for value in found.tolist()], dtype=bool)
    missing |= np.array([str(value) in MISSING for value in found], dtype=bool)
    if missing.any():
        raise InputError(
            f"ids must name every row of X_{name}",
            f"{int(missing.sum()):,} of {n:,} are missing",
            "Give rows that belong to nobody else an id of their own",
        )
    return found.astype(str) if found.dtype.kind == "O" else found


def _check_ids_agree(ids: list[NDArray[Any]]) -> None:
    """Refuse ids that are text here and numbers there: 7 and "7" would be two people."""
    if len({"text" if found.dtype.kind in "US" else "numbers" for found in ids}) > 1:
        raise InputError(
            "ids of the training and of the test rows must be of one type",
            " and ".join(str(found.dtype) for found in ids),
            "Pass numbers for both, or text for both",
        )


def _subject(erasure: Any, others: tuple[Any, ...]) -> Any:
    """The map behind a fitted eraser, else what was passed."""
    if isinstance(erasure, type):
        raise InputError(
            "There is nothing to audit: the first argument is a class",
            erasure.__name__,
            f"Pass a fitted one, as in {erasure.__name__}().fit(X, y)",
        )
    for name in ("erasure_", "conditional_erasure_"):
        inner = getattr(erasure, name, None)
        if inner is not None:
            return inner
    if not callable(getattr(erasure, "transform", None)):
        raise no_eraser(
            "There is nothing to audit: the first argument cannot transform rows",
            erasure,
            others,
            "Pass an Erasure, a fitted eraser or an object with transform(X)",
        )
    return erasure


def _part(
    subject: Any,
    rows: Rows,
    concept: Concept,
    task: Concept | None,
    names: Sequence[Any] | None,
    name: str,
) -> AuditedRows:
    after = erased_rows(subject, rows, concept, name)
    n = rows.n_samples
    if names is not None and len(names) != n:
        raise InputError(
            f"words must name every row of {name}",
            f"{len(names)} names for {n} rows",
            "Pass one name per row",
        )
    shown = None if names is None else tuple(map(str, names))
    return AuditedRows(rows, after, concept, task, shown)


def erased_rows(subject: Any, rows: Rows, concept: Concept, name: str) -> Rows:
    """The rows after erasure, checked.

    Maps of this library work row by row, so their rows are made when they are asked for. Any other
    object is given all rows at once, since it may look at several of them together.

    Parameters
    ----------
    subject : object with transform
        One with a true `needs_concept` is told the concept.
    rows : rows of shape (n, d)
    concept : Concept
        Of these rows.
    name : str
        What to call the rows in messages.

    Returns
    -------
    rows of shape (n, e)
    """
    after: Rows
    if isinstance(subject, Map):
        subject.check_width((rows.n_samples, rows.n_features))
        if getattr(subject, "needs_concept", False):
            after = ChangedRows(rows, lambda X, index: _erased(subject, X, concept.take(index)))
        else:
            after = ChangedRows(rows, partial(_erased_alike, subject), alike=True)
    else:
        every = np.arange(rows.n_samples)
        after = _checked(
            np.asarray(_erased(subject, rows.take(every).array(), concept)), rows, name
        )
    if not np.isfinite(extent(after)[2]).all():  # say where
        check_rows(after.array(), name=f"{name} after erasure")
    return flattened(after, rows)


def _checked(after: NDArray[Any], rows: Rows, name: str) -> DenseRows:
    n = rows.n_samples
    if after.ndim != 2 or after.shape[0] != n or after.dtype.kind != "f":
        raise InputError(
            f"transform did not give one row of real numbers for each row of {name}",
            f"shape {after.shape} and type {after.dtype} for shape {(n, rows.n_features)}",
            "Mend the transform",
        )
    return DenseRows(after)


def as_given(concept: Concept) -> NDArray[Any]:
    """Labels, indicators or numbers that become the same concept once more.

    Returns
    -------
    array of shape (n,) or (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.given import as_given
    >>> from expunge.concept import Concept
    >>> as_given(Concept("classes", np.array([0, 1, 0]), ("f", "m")))
    array(['f', 'm', 'f'], dtype='<U1')
    """
    if concept.kind != "classes":
        return concept.values
    found: NDArray[Any] = np.array(concept.labels)[concept.values]
    return found


def _erased_alike(subject: Any, X: NDArray[Any], index: Any) -> Any:
    return subject.transform(X)


def _erased(subject: Any, X: NDArray[Any], concept: Concept) -> Any:
    """Rows after erasure; a conditional erasure is told the concept."""
    if not getattr(subject, "needs_concept", False):
        return subject.transform(X)
    return subject.transform(X, concept=as_given(concept))


def _pair(given: Any, both: bool, name: str, *, lone_is_test: bool = False) -> tuple[Any, Any]:
    """(for the first, for the second rows that were passed) of an optional argument."""
    if given is None:
        return None, None
    if isinstance(given, str):  # a column of either
        return given, given
    if isinstance(given, tuple) and len(given) == 2:
        there = [part for part in given if part is not None]
        if not both and len(there) == 1:
            return there[0], None
        if not both or (any(part is None for part in given) and not lone_is_test):
            raise InputError(
                f"{name} must cover the training and the test rows",
                "a pair with None in it" if both else "two parts for one set of rows",
                f"Pass {name}=(for X_train, for X_test)",
            )
        return given
    if not both:
        return given, None
    if lone_is_test:
        return None, given
    raise InputError(
        f"{name} must be a pair",
        type(given).__name__,
        f"Pass {name}=(for X_train, for X_test)",
    )


def _in_codes_of(
    concept: Concept, y: Any, n: int, name: str, of_several: ConceptType = "auto"
) -> Concept:
    """Labels of the test rows in the codes of the training rows."""
    several = split_concepts(y, n) is not None
    kind: ConceptType = of_several if several else concept.kind
    found = check_concept(y, n, concept_type=kind, name=name, whole=False)
    return match_labels(
        found,
        concept.kind,
        concept.labels,
        name=f"{name} does not go with that of the training rows: it",
        known_from="the same concept",
    )
