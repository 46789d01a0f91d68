"""The probes there are, and how to choose among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expunge.audit.linear_probes import LINEAR_PROBES
from expunge.audit.nonlinear_probes import NONLINEAR_PROBES
from expunge.audit.probe import Choosing, Probe
from expunge.audit.thorough_probes import THOROUGH_PROBES
from expunge.concept import Kind
from expunge.errors import InputError

__all__ = ["PROBES", "choose_probes"]

DEFAULT = (*LINEAR_PROBES, *NONLINEAR_PROBES)
WORDS = ("default", "linear", "nonlinear", "thorough")
PROBES: dict[str, Probe] = {probe.name: probe for probe in (*DEFAULT, *THOROUGH_PROBES)}


def choose_probes(probes: Any, kind: Kind) -> tuple[Probe, ...]:
    """The probes a user asked for that can learn this kind of concept.

    Parameters
    ----------
    probes : {"default", "linear", "nonlinear", "thorough"} or iterable of str and Probe
        "default": those that take seconds, of both families; "thorough": all there are, and the
        strongest of the non-linear ones, chosen inside the rows they learn from.
    kind : {"classes", "labels", "continuous"}

    Returns
    -------
    tuple of Probe

    Examples
    --------
    >>> from expunge.audit.probes import choose_probes
    >>> [probe.name for probe in choose_probes(["RBF-SVM", "linear SVM"], "classes")]
    ['RBF-SVM', 'linear SVM']
    >>> len(choose_probes("linear", "classes")), len(choose_probes("linear", "continuous"))
    (7, 5)
    >>> choose_probes("thorough", "classes")[-1].name
    'the strongest, chosen beforehand'
    """
    if isinstance(probes, str):
        probes = _in_a_word(probes, kind)
    chosen = tuple(_probe(probe) for probe in _listed(probes))
    fitting = tuple(probe for probe in chosen if kind in probe.kinds)
    if not fitting:
        able = [probe.name for probe in PROBES.values() if kind in probe.kinds]
        raise InputError(
            f"None of these probes can learn a concept of kind {kind!r}",
            repr([probe.name for probe in chosen]),
            f"Pass probes='default', or some of {', '.join(map(repr, able))}",
        )
    return fitting


def _in_a_word(word: str, kind: Kind) -> list[Any]:
    if word == "thorough":
        hard = [p for p in PROBES.values() if p.family == "nonlinear" and kind in p.kinds]
        return [*PROBES.values(), Choosing.among(tuple(hard), "nonlinear", kind)]
    return [p for p in DEFAULT if word in ("default", p.family)] if word in WORDS else [word]


def _listed(probes: Any) -> list[Any]:
    if not isinstance(probes, Iterable):
        raise InputError(
            "probes must be a word or a list of probes",
            repr(probes),
            "Pass probes='default', 'linear', 'nonlinear', 'thorough', or a list of names",
        )
    return list(probes)


def _probe(probe: Any) -> Probe:
    if isinstance(probe, Probe):
        return probe
    if probe not in PROBES:
        raise InputError(
            "There is no such probe", repr(probe), f"Pass some of {', '.join(map(repr, PROBES))}"
        )
    return PROBES[probe]
