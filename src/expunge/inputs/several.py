"""Several concepts at once, and concepts matched to labels that are known already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.concept import Concept, Indicator, Kind, Label, column_label
from expunge.errors import InputError
from expunge.files.naming import listed
from expunge.inputs.homes import home_of
from expunge.inputs.matrices import frame_or_series
from expunge.inputs.parameters import check_choice

__all__ = [
    "check_types",
    "join_concepts",
    "label_codes",
    "match_labels",
    "split_concepts",
    "split_frame",
    "type_of",
]

KINDS = ("auto", "classes", "labels", "continuous")


def split_concepts(y: Any, n_samples: int) -> dict[str, Any] | None:
    """Several concepts by name, if `y` is a mapping or a list of columns; else None.

    A list whose entries are columns of n values is several concepts; a list of n rows is one.
    """
    if isinstance(y, Mapping):
        if not y:
            raise InputError(
                "There is no concept to erase", "an empty mapping", "Name at least one"
            )
        named = {str(name): column for name, column in y.items()}
        if len(named) < len(y):
            raise InputError(
                "Several concepts have the same name as text",
                ", ".join(map(repr, y))[:200],
                "Give every concept a name of its own",
            )
        return named
    if not isinstance(y, list | tuple) or not y or len(y) == n_samples:
        return None
    columns = all(
        hasattr(column, "__len__") and not isinstance(column, str) and len(column) == n_samples
        for column in y
    )
    return {str(place): column for place, column in enumerate(y)} if columns else None


def split_frame(y: Any, concept_type: Any, name: str) -> dict[str, Any] | None:
    """The columns of a frame as several concepts; None for one column and for one matrix.

    A frame is one matrix where all its columns are floats, or all its values 0 and 1, or where
    `concept_type` says one of the two for all.

    Parameters
    ----------
    y : anything
    concept_type : str or mapping
    name : str
        What to call it in messages.

    Returns
    -------
    dict of str to array, or None
    """
    if isinstance(y, np.ndarray | list | tuple | Mapping) or home_of(y) is not None:
        return None
    frame = frame_or_series(y, name)
    names = getattr(frame, "columns", None)
    if frame is None or names is None or len(names) < 2:
        return None
    if concept_type in ("labels", "continuous"):
        return None
    columns = {str(column): np.asarray(frame[:, at].to_numpy()) for at, column in enumerate(names)}
    if concept_type == "auto":
        kinds = {values.dtype.kind for values in columns.values()}
        if kinds == {"f"} or (kinds <= {*"biuf"} and all(map(_is_binary, columns.values()))):
            return None
    return columns


def _is_binary(values: NDArray[Any]) -> bool:
    return bool(np.isin(values, (0, 1)).all())


def type_of(concept_type: Any, name: str | None) -> Any:
    """What kind of concept one of several is said to be.

    Parameters
    ----------
    concept_type : str, or mapping of names to such
    name : str or None
        Of the concept.

    Returns
    -------
    str
        "auto" for a concept that a mapping does not name.
    """
    return concept_type.get(name, "auto") if isinstance(concept_type, Mapping) else concept_type


def check_types(concept_type: Any, names: Sequence[str | None]) -> None:
    """Refuse kinds that are none, and kinds of concepts that are not there.

    Parameters
    ----------
    concept_type : str, or mapping of names to such
    names : sequence of str
        Of the concepts.
    """
    if not isinstance(concept_type, Mapping):
        check_choice(concept_type, KINDS, "concept_type")
        return
    for kind in concept_type.values():
        check_choice(kind, KINDS, "concept_type")
    odd = [key for key in concept_type if key not in names]
    if odd:
        raise InputError(
            f"concept_type speaks of {listed(odd)}, which is no concept of this fit",
            f"the concepts {listed(name for name in names if name is not None)}",
            "Name the concepts as y or concept= does, by columns or by the keys of a dictionary",
        )


def join_concepts(concepts: Mapping[str, Concept]) -> Concept:
    """One concept whose columns are those of all: erasing it erases each of them.

    Parameters
    ----------
    concepts : mapping of name to Concept
        Over the same rows. Classes become one indicator each.

    Returns
    -------
    Concept
        Of kind "labels", or "continuous" where one of them is.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.concept import Concept
    >>> from expunge.inputs import join_concepts
    >>> sex = Concept("classes", np.array([0, 1]), ("f", "m"))
    >>> age = Concept("continuous", np.array([[30.0], [40.0]]), (0,))
    >>> join_concepts({"sex": sex, "age": age}).labels
    ('sex=f', 'sex=m', 'age')
    """
    if len(concepts) == 1:
        return next(iter(concepts.values()))
    labels: list[Label] = []
    for name, concept in concepts.items():
        if concept.kind == "classes":
            labels += [Indicator.of(name, label) for label in concept.labels]
        else:
            own = concept.labels if concept.width > 1 else [None]
            labels += [column_label(name, column) for column in own]
    numbers = any(concept.kind == "continuous" for concept in concepts.values())
    Z = np.hstack([concept.columns() for concept in concepts.values()])
    return Concept("continuous" if numbers else "labels", Z, tuple(labels))


def label_codes(labels: Sequence[Label], known: Sequence[Label]) -> NDArray[np.intp]:
    """The place of each label among the known ones; -1 for one that is not among them.

    Parameters
    ----------
    labels, known : sequences of str or number

    Returns
    -------
    int array of the length of `labels`

    Examples
    --------
    >>> from expunge.inputs import label_codes
    >>> label_codes(["m", "x"], ["f", "m"])
    array([ 1, -1])
    """
    place = {label: at for at, label in enumerate(known)}
    return np.array([place.get(label, -1) for label in labels], dtype=np.intp)


def match_labels(
    concept: Concept,
    kind: Kind,
    labels: Sequence[Label],
    *,
    name: str = "The concept at transform time",
    known_from: str = "the one that was fitted",
) -> Concept:
    """The same concept over labels known from other rows, which may be more.

    Parameters
    ----------
    concept : Concept
    kind : {"classes", "labels", "continuous"}
    labels : sequence
        In the order wanted.
    name, known_from : str
        What to call the concept and that of the other rows in messages.

    Returns
    -------
    Concept

    Raises
    ------
    InputError
        On a class or column that is not known.
    """
    to = label_codes(concept.labels, labels)
    missing = set() if kind == "classes" else set(labels) - set(concept.labels)
    for label in concept.labels:
        if isinstance(label, Indicator):  # other classes of the same concept may be absent
            own = f"{label.concept}="
            missing = {other for other in missing if not str(other).startswith(own)}
    if concept.kind != kind or missing or np.any(to < 0):
        raise InputError(
            f"{name} is not {known_from}",
            f"{concept.kind} {list(concept.labels)!r}, not {kind} {list(labels)!r}",
            "Pass the same concept, with no new classes",
        )
    if kind == "classes":
        return Concept(kind, to[concept.values], tuple(labels))
    Z = np.zeros((concept.n_samples, len(labels)))
    Z[:, to] = concept.values
    return Concept(kind, Z, tuple(labels))
