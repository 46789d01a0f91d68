"""The probes there are, and how to choose among them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from expunge.audit.linear_probes import LINEAR_PROBES
from expunge.audit.nonlinear_probes import NONLINEAR_PROBES
from expunge.audit.probe import Probe
from expunge.concept import Kind
from expunge.errors import InputError

__all__ = ["PROBES", "choose_probes"]

PROBES: dict[str, Probe] = {probe.name: probe for probe in (*LINEAR_PROBES, *NONLINEAR_PROBES)}


def choose_probes(probes: Any, kind: Kind) -> tuple[Probe, ...]:
    """The probes a user asked for that can learn this kind of concept.

    Parameters
    ----------
    probes : {"default", "linear", "nonlinear"} or iterable of str and Probe
        "default": all of them.
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
    (6, 4)
    """
    if isinstance(probes, str):
        if probes not in ("default", "linear", "nonlinear"):
            probes = [probes]
        else:
            probes = [p for p in PROBES.values() if probes in ("default", p.family)]
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


def _listed(probes: Any) -> list[Any]:
    if not isinstance(probes, Iterable):
        raise InputError(
            "probes must be a word or a list of probes",
            repr(probes),
            "Pass probes='default', 'linear', 'nonlinear', or a list of names",
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
