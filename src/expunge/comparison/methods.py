"""The methods of a comparison: what was asked for, at which ranks, and what has to be left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from numpy.typing import NDArray
from sklearn.base import clone

from expunge.concept import Concept
from expunge.erasers import ERASERS, INLP, SPLINCE, PairPCA
from expunge.erasers.base import BaseEraser
from expunge.errors import InputError
from expunge.inputs import check_rows

__all__ = ["Method", "check_pairs", "choose_methods"]

Rank = int | Literal["auto"]
Pairs = tuple[NDArray[Any], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Method:
    """One method at one rank.

    Attributes
    ----------
    name : str
        As it is shown.
    eraser : BaseEraser
        Not fitted.
    asked : int, "auto" or None
        The rank to give it: "auto" is the concept's own; None leaves the eraser as it is.
    """

    name: str
    eraser: BaseEraser
    asked: Rank | None

    def made(self, kind: str, own: Callable[[], int]) -> BaseEraser:
        """An eraser to fit, for a concept of this kind; `own` finds its own rank, if asked."""
        eraser: BaseEraser = clone(self.eraser)
        settings = eraser.get_params()
        if settings.get("concept_type") == "auto":
            eraser.set_params(concept_type=kind)
        if self.asked == "auto":
            # INLP would go on until a probe is at chance, and pairs know of no concept
            forced = isinstance(eraser, INLP | PairPCA)
            eraser.set_params(rank=own() if forced else "auto")
        elif self.asked is not None:
            eraser.set_params(rank=self.asked)
        return eraser


def choose_methods(
    methods: Any, ranks: list[Rank], target: Concept, *, task: bool, pairs: bool
) -> tuple[list[Method], dict[str, str]]:
    """The methods at their ranks in order, and those left out with the reason.

    A name is taken at every rank, where the method has a choice. An eraser that has a rank of its
    own keeps it.

    Parameters
    ----------
    methods : sequence of str and BaseEraser, one of them, or None for all
    ranks : list of int and "auto"
    target : Concept
    task, pairs : bool
        Whether there are any.

    Returns
    -------
    methods : list of Method
    left_out : dict from str to str
    """
    chosen: dict[tuple[str, Rank | None], Method] = {}
    left_out: dict[str, str] = {}
    for item in _listed(methods):
        eraser = _named(item) if isinstance(item, str) else item
        if not isinstance(eraser, BaseEraser):
            raise InputError(
                "A method is a name or an eraser",
                repr(item),
                f"Pass erasers such as LEACE(), or some of {', '.join(ERASERS)}",
            )
        name = type(eraser).__name__ if isinstance(item, str) else repr(clone(eraser))
        if reason := _why_not(eraser, target, task, pairs):
            left_out[name] = reason
            continue
        for asked in _asked(eraser, ranks, named=isinstance(item, str)):
            chosen.setdefault((name, asked), Method(name, eraser, asked))
    if not chosen:
        raise InputError(
            "No method applies",
            "; ".join(f"{name}: {reason}" for name, reason in left_out.items()),
            "Name others in methods=",
        )
    return list(chosen.values()), left_out


def _listed(methods: Any) -> list[Any]:
    if methods is None:
        return list(ERASERS)
    if isinstance(methods, str | BaseEraser):
        return [methods]
    if not isinstance(methods, Iterable) or not (found := list(methods)):
        raise InputError(
            "methods must be names or erasers",
            f"methods={methods!r}",
            f"Pass some of {', '.join(ERASERS)}, or None for all",
        )
    return found


def _named(name: str) -> BaseEraser:
    known = {known.lower(): known for known in ERASERS}
    if name.lower() not in known:
        raise InputError("Unknown method", repr(name), f"Pass some of {', '.join(ERASERS)}")
    return ERASERS[known[name.lower()]]()


def _why_not(eraser: BaseEraser, target: Concept, task: bool, pairs: bool) -> str:
    if isinstance(eraser, PairPCA):
        return "" if pairs else "it needs pairs=(A, B)"
    if isinstance(eraser, SPLINCE) and not task:
        return "without task= it is LEACE"
    return "" if target.kind in eraser.kinds else f"it takes no concept of kind {target.kind!r}"


def _asked(eraser: BaseEraser, ranks: list[Rank], *, named: bool) -> list[Rank | None]:
    """The ranks to give it; None where it has no choice or has made it."""
    settings = eraser.get_params()
    if "rank" not in settings or getattr(eraser, "label_free", True) is False:
        return [None]
    if not named and settings["rank"] != "auto":
        return [None]
    return [None if rank == "auto" and not named else rank for rank in ranks]


def check_pairs(pairs: Any, n_features: int) -> Pairs | None:
    """The two sides of definitional pairs as matrices.

    Returns
    -------
    pair of arrays of shape (p, d), or None
    """
    if pairs is None:
        return None
    if not isinstance(pairs, tuple | list) or len(pairs) != 2:
        raise InputError("pairs must have two sides", type(pairs).__name__, "Pass pairs=(A, B)")
    A, B = (check_rows(side, name=f"pairs[{i}]", least=1).array() for i, side in enumerate(pairs))
    if A.shape != B.shape or A.shape[1] != n_features:
        raise InputError(
            f"The two sides of pairs must have one row per pair and {n_features} columns, as X has",
            f"shapes {A.shape} and {B.shape}",
            "Pass the vectors of both sides in the same order",
        )
    return A, B
