"""What an audit is given: rows before and after, their concept, names and task, all checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import ConceptType, check_concept, check_rows
from expunge.inputs.several import match_labels, split_concepts

__all__ = ["STAGES", "Given", "Part", "Stage", "erased", "gather"]

Stage = Literal["before", "after"]
STAGES: tuple[Stage, ...] = ("before", "after")


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of the fit, or new ones.

    Attributes
    ----------
    before, after : arrays of shape (n, d)
    concept : Concept
    task : Concept or None
    names : tuple of str or None
    """

    before: NDArray[Any]
    after: NDArray[Any]
    concept: Concept
    task: Concept | None
    names: tuple[str, ...] | None

    def __len__(self) -> int:
        return int(self.before.shape[0])

    def at(self, stage: Stage) -> NDArray[Any]:
        """The rows before or after."""
        return self.before if stage == "before" else self.after

    def take(self, index: NDArray[Any]) -> Part:
        """Some of the rows."""
        rows = np.flatnonzero(index) if index.dtype == bool else index
        return Part(
            self.before[rows],
            self.after[rows],
            self.concept.take(rows),
            None if self.task is None else self.task.take(rows),
            None if self.names is None else tuple(self.names[i] for i in rows),
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
    train : Part
    test : Part or None
    """

    subject: Any
    meta: dict[str, Any]
    spectrum: list[float] | None
    train: Part
    test: Part | None

    @property
    def erasure(self) -> Erasure | None:
        """The subject, if it is an affine map that can be certified."""
        return self.subject if isinstance(self.subject, Erasure) else None


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
) -> Given:
    """Check what the user passed and erase the rows.

    Parameters
    ----------
    erasure, X_train, y_train, X_test, y_test, task, concept_type
        As in `audit`.
    names : pair of sequences of str, sequence of str for the test rows, or None

    Returns
    -------
    Given
    """
    subject = _subject(erasure)
    meta = getattr(subject, "meta", None)
    meta = dict(meta) if isinstance(meta, dict) else {}
    found = getattr(erasure, "spectrum_", None)
    spectrum = None if found is None else [float(value) for value in found]
    known_kind = (meta.get("concept") or {}).get("kind")
    if (X_test is None) != (y_test is None):
        raise InputError(
            "X_test and y_test belong together", "one without the other", "Pass both or neither"
        )
    rows = check_rows(X_train, name="X_train")
    several = split_concepts(y_train, rows.n_samples) is not None
    kind = known_kind if concept_type == "auto" and known_kind and not several else concept_type
    concept = check_concept(
        y_train, rows.n_samples, concept_type=kind, name="y_train", owner="An audit"
    )
    tasks = _pair(task, X_test is not None, "task")
    train_task = None
    if tasks[0] is not None:
        train_task = check_concept(
            tasks[0],
            rows.n_samples,
            concept_type="classes",
            name="task of the training rows",
            owner="An audit",
        )
    named = _pair(names, X_test is not None, "words", lone_is_test=True)
    train = _part(subject, rows.X, concept, train_task, named[0], "X_train")
    if X_test is None:
        return Given(subject, meta, spectrum, train, None)
    rows = check_rows(X_test, name="X_test", least=1)
    if rows.n_features != train.before.shape[1]:
        raise InputError(
            f"X_test has {rows.n_features} features, but X_train has {train.before.shape[1]}",
            f"shape ({rows.n_samples}, {rows.n_features})",
            "Pass the same columns",
        )
    test_concept = _in_codes_of(concept, y_test, rows.n_samples, "y_test")
    test_task = None
    if train_task is not None:
        test_task = _in_codes_of(train_task, tasks[1], rows.n_samples, "task of the test rows")
    test = _part(subject, rows.X, test_concept, test_task, named[1], "X_test")
    return Given(subject, meta, spectrum, train, test)


def _subject(erasure: Any) -> Any:
    """The map behind a fitted eraser, else what was passed."""
    for name in ("erasure_", "conditional_erasure_"):
        inner = getattr(erasure, name, None)
        if inner is not None:
            return inner
    if not callable(getattr(erasure, "transform", None)):
        raise InputError(
            "There is nothing to audit: the first argument cannot transform rows",
            type(erasure).__name__,
            "Pass an Erasure, a fitted eraser or an object with transform(X)",
        )
    return erasure


def _part(
    subject: Any,
    X: NDArray[Any],
    concept: Concept,
    task: Concept | None,
    names: Sequence[Any] | None,
    name: str,
) -> Part:
    after = np.asarray(erased(subject, X, concept))
    if after.ndim != 2 or after.shape[0] != X.shape[0] or after.dtype.kind != "f":
        raise InputError(
            f"transform did not give one row of real numbers for each row of {name}",
            f"shape {after.shape} and type {after.dtype} for shape {X.shape}",
            "Mend the transform",
        )
    check_rows(after, name=f"{name} after erasure", least=1)
    if _only_rounding(after):
        after = np.broadcast_to(after.mean(axis=0), after.shape).astype(after.dtype)
    if names is not None and len(names) != X.shape[0]:
        raise InputError(
            f"words must name every row of {name}",
            f"{len(names)} names for {X.shape[0]} rows",
            "Pass one name per row",
        )
    return Part(X, after, concept, task, None if names is None else tuple(map(str, names)))


def _only_rounding(X: NDArray[Any]) -> bool:
    """Whether rows differ by rounding alone, after an erasure of everything there was."""
    level = 8 * np.finfo(X.dtype).eps * float(np.abs(X).max())
    return bool(np.all(np.ptp(X, axis=0) <= level))


def erased(subject: Any, X: NDArray[Any], concept: Concept) -> Any:
    """Rows after erasure; a conditional erasure is told the concept.

    Parameters
    ----------
    subject : object with transform
    X : array of shape (n, d)
    concept : Concept
        Of these rows.

    Returns
    -------
    array of shape (n, d)
    """
    if not getattr(subject, "needs_concept", False):
        return subject.transform(X)
    labels = (
        np.array(concept.labels)[concept.values] if concept.kind == "classes" else concept.values
    )
    return subject.transform(X, concept=labels)


def _pair(given: Any, tested: bool, name: str, *, lone_is_test: bool = False) -> tuple[Any, Any]:
    """(for the training rows, for the test rows) of an optional argument."""
    if given is None:
        return None, None
    if isinstance(given, tuple) and len(given) == 2:
        if (given[1] is None) == tested and not lone_is_test:
            raise InputError(
                f"{name} must cover the training and the test rows",
                "a pair with None in it" if tested else "two parts without X_test",
                f"Pass {name}=(for X_train, for X_test)",
            )
        return given
    if lone_is_test or not tested:
        return (None, given) if tested else (given, None)
    raise InputError(
        f"{name} must be a pair",
        type(given).__name__,
        f"Pass {name}=(for X_train, for X_test)",
    )


def _in_codes_of(concept: Concept, y: Any, n: int, name: str) -> Concept:
    """Labels of the test rows in the codes of the training rows."""
    several = split_concepts(y, n) is not None
    kind: ConceptType = "auto" if several else concept.kind
    found = check_concept(y, n, concept_type=kind, name=name, whole=False)
    try:
        return match_labels(found, concept.kind, concept.labels)
    except InputError as error:
        raise InputError(
            f"{name} does not go with that of the training rows",
            f"{list(found.labels[:5])!r}, not {list(concept.labels[:5])!r}",
            "Pass the same concept, with no new classes",
        ) from error
