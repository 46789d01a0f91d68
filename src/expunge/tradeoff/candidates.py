"""The erasers of a frontier: those asked for, or some of every kind, of growing cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone

from expunge.comparison.methods import Method
from expunge.concept import Kind
from expunge.erasers import ERASERS, INLP, LEACE, RLACE, QuadraticLEACE
from expunge.erasers.base import BaseEraser
from expunge.errors import InputError

__all__ = ["FOLD", "candidates"]

FOLD = "FoldEraser"
FOLDS: tuple[dict[str, Any], ...] = (
    {"transport": "shift"},
    {},
    {"rounds": 1},
    {"rounds": 2},
    {"rounds": 5},
)
INLP_RANKS = (4, 16, 64)
SHARES = (0.1, 0.25, 0.5)  # of the directions, for the projection that is no longer linear's own


def candidates(erasers: Any, kind: Kind, n_features: int) -> list[Method]:
    """Erasers with the names they are shown by.

    Parameters
    ----------
    erasers : iterable of eraser, name, or pair (name, eraser); or None
        By default LEACE, RLACE, INLP and the label-free QuadraticLEACE at several ranks, and folds
        of growing cost, as far as they take this kind of concept.
    kind : {"classes", "labels", "continuous"}
    n_features : int

    Returns
    -------
    list of Method

    Examples
    --------
    >>> from expunge.tradeoff.candidates import candidates
    >>> [method.name for method in candidates(None, "classes", 20)][:4]
    ['LEACE', 'RLACE', 'INLP, rank 4', 'INLP, rank 16']
    """
    if erasers is not None:
        return [_given(item) for item in _listed(erasers)]
    some: list[tuple[str, BaseEraser]] = [("LEACE", LEACE()), ("RLACE", RLACE())]
    some += [(f"INLP, rank {k}", INLP(rank=k)) for k in INLP_RANKS if k < n_features]
    ranks = sorted({max(1, round(share * n_features)) for share in SHARES})
    some += [
        (f"QuadraticLEACE, rank {k}", QuadraticLEACE(rank=k, label_free=True))
        for k in ranks
        if k < n_features
    ]
    if FOLD in ERASERS:
        some += [(_fold_name(more), ERASERS[FOLD](**more)) for more in FOLDS]
    return [Method(name, eraser, None) for name, eraser in some if kind in eraser.kinds]


def _fold_name(settings: dict[str, Any]) -> str:
    return f"{FOLD}({', '.join(f'{key}={value!r}' for key, value in settings.items())})"


def _listed(erasers: Any) -> list[Any]:
    if isinstance(erasers, str | BaseEraser):
        return [erasers]
    if not isinstance(erasers, Iterable) or not (found := list(erasers)):
        raise InputError(
            "erasers must be some erasers", repr(erasers), "Pass a list such as [LEACE(), INLP()]"
        )
    return found


def _given(item: Any) -> Method:
    name, eraser = item if isinstance(item, tuple) and len(item) == 2 else ("", item)
    if isinstance(eraser, str):
        known = {key.lower(): key for key in ERASERS}
        if eraser.lower() not in known:
            raise InputError("Unknown method", repr(eraser), f"Pass some of {', '.join(ERASERS)}")
        eraser = ERASERS[known[eraser.lower()]]()
        name = name or type(eraser).__name__
    if not isinstance(eraser, BaseEraser):
        raise InputError(
            "A frontier is made of erasers",
            repr(item),
            "Pass erasers such as LEACE(), their names, or pairs (name, eraser)",
        )
    return Method(str(name) or repr(clone(eraser)), eraser, None)
