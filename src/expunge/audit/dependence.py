"""Rows that are not independent: copies of others, and groups that give the concept away.

Copies are no new evidence. Where they are on both sides of a probe, neighbours and trees read what
they have seen, and intervals that count them are too narrow.

Rows of one person, document or site are alike, and where the concept belongs to the person a probe
reads the person. By how much groups tell the concept is the share of its variance that the mean of
the *other* rows of a group explains,

    1 - Σ (z_i - mean of z over the other rows of the group)² / Σ (z_i - mean of z)²,

which is below 0 where groups tell nothing, however large or pure they are by chance.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.audit.given import AuditedRows, Given
from expunge.audit.near_copies import share_in_bunches
from expunge.audit.repeats import Excess, beyond_chance, by_chance, row_hashes
from expunge.audit.roles import SAME, Roles
from expunge.concept import Concept
from expunge.rows.lazy_rows import SelectedRows

__all__ = ["Copies", "Dependence", "Telling", "copies_in", "dependence_of", "groups_telling"]

MANY = 0.01  # share of rows that are copies, from which on it is said
BUNCHED = 0.5  # share of rows that lie in small bunches, from which on it is said
MOSTLY = 0.7  # share of the variance of the concept that groups explain
FEW_GROUPS = 100  # of a class, below which they are no large sample
TOGETHER = 0.5  # share of rows that are not alone in their group
FRESH, FIT, ROWS = "fresh rows", "rows of the fit", "rows"


@dataclass(frozen=True)
class Copies:
    """Equal rows, more of them than chance makes.

    Attributes
    ----------
    n, n_different : int
        Rows, of one id only those that differ, and different ones among them.
    treated : {"once", "alone", "apart"}
        Whether they count once; or as independent rows, because a table repeats by chance too; or
        have different ids.
    excess : Excess or None
        In a table: how often values occur, against what chance explains.
    """

    n: int
    n_different: int
    treated: Literal["once", "alone", "apart"]
    excess: Excess | None = None


@dataclass(frozen=True)
class Telling:
    """How far groups tell the concept.

    Attributes
    ----------
    n, n_groups : int
    n_several, n_pure : int
        Groups of several rows, and those of them with one value of the concept.
    fewest : int
        Groups that have the rarest class; all groups where there are no classes.
    together : float
        Share of rows that are not alone in their group.
    explained : float
        Share of the variance of the concept that the other rows of the group explain.
    """

    n: int
    n_groups: int
    n_several: int
    n_pure: int
    fewest: int
    together: float
    explained: float

    @property
    def alarming(self) -> bool:
        """Whether groups tell the concept and are few."""
        told = self.explained >= MOSTLY and self.together >= TOGETHER
        return told and self.fewest < FEW_GROUPS


@dataclass(frozen=True)
class Dependence:
    """What is known of rows that belong together, and what to say about it.

    Attributes
    ----------
    copies, groups : dict from "fresh rows", "rows of the fit" or "rows" to what was found
    bunches : dict from the same to the share of rows that lie in small bunches
    warnings : tuple of str
    """

    copies: dict[str, Copies]
    groups: dict[str, Telling]
    bunches: dict[str, float]
    warnings: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values."""
        return {
            "copies": {where: asdict(found) for where, found in self.copies.items()},
            "groups": {where: asdict(found) for where, found in self.groups.items()},
            "bunches": dict(self.bunches),
        }


def dependence_of(given: Given, roles: Roles) -> Dependence:
    """Look for copies and for groups that tell the concept, in the rows audited and of the fit.

    Parameters
    ----------
    given : Given
    roles : Roles

    Returns
    -------
    Dependence
    """
    parts = {FRESH: roles.new, FIT: roles.fit}
    sets = {name: part for name, part in parts.items() if part is not None} or {ROWS: given.first}
    copies, groups, said = dict[str, Copies](), dict[str, Telling](), list[str]()
    bunches = {
        where: share_in_bunches(part.before)
        for where, part in sets.items()
        if part.ids is None and not (where == FIT and _fitted_by_group(given.meta))
    }
    said += [_on_bunches(share, where) for where, share in bunches.items() if share >= BUNCHED][:1]
    for where, part in sets.items():
        if where == FIT and _fitted_by_group(given.meta):
            continue
        if (found := copies_in(part)) is not None:
            copies[where] = found
            said.append(_on_copies(found, where))
    for where, part in sets.items():
        if part.ids is None:
            continue
        groups[where] = groups_telling(part.concept, part.ids)
        if groups[where].alarming and where == next(iter(sets)):
            said.append(_on_groups(groups[where], where, part.concept, _crossing(roles)))
    return Dependence(copies, groups, bunches, tuple(said))


def copies_in(part: AuditedRows) -> Copies | None:
    """Rows that are there more than once, if chance does not explain them.

    Parameters
    ----------
    part : AuditedRows
        Of rows with ids, copies under one id are no matter.

    Returns
    -------
    Copies or None
        None where there are next to none.
    """
    hashes, rows = row_hashes(part.before), part.before
    if part.ids is not None:
        own = np.unique(part.ids, return_inverse=True)[1].reshape(-1)
        _, which = np.unique(hashes, return_inverse=True)
        pairs = own.astype(np.int64) * (int(which.max()) + 1) + which.reshape(-1)
        kept = np.sort(np.unique(pairs, return_index=True)[1])
        hashes, rows = hashes[kept], SelectedRows(part.before, kept)
    n, different = len(hashes), len(np.unique(hashes))
    if n - different < max(MANY * n, 1):
        return None
    apart = part.ids is not None
    if not by_chance(rows):
        return Copies(n, different, "apart" if apart else "once")
    excess = beyond_chance(hashes)
    if excess is None:
        return None
    return Copies(n, different, "apart" if apart else "alone", excess)


def groups_telling(concept: Concept, ids: NDArray[Any]) -> Telling:
    """How far the group of a row tells its concept.

    Parameters
    ----------
    concept : Concept
    ids : array of shape (n,)

    Returns
    -------
    Telling

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.audit.dependence import groups_telling
    >>> from expunge.inputs import check_concept
    >>> who, y = np.repeat(np.arange(40), 5), np.repeat(np.arange(40) % 2, 5)
    >>> groups_telling(check_concept(y, 200), who).explained
    1.0
    """
    _, group, size = np.unique(ids, return_inverse=True, return_counts=True)
    group, Z = group.reshape(-1), concept.columns()
    Z = Z.reshape(len(group), -1)
    sums = np.zeros((len(size), Z.shape[1]))
    np.add.at(sums, group, Z)
    several = size[group] > 1
    own, count = Z[several], size[group][several, None]
    others = (sums[group][several] - own) / np.maximum(count - 1, 1)
    total = float(np.sum((own - Z.mean(axis=0)) ** 2))
    explained = 1 - float(np.sum((own - others) ** 2)) / total if total > 0 else 0.0
    low, high = np.full_like(sums, np.inf), np.full_like(sums, -np.inf)
    np.minimum.at(low, group, Z)
    np.maximum.at(high, group, Z)
    pure = np.all(low == high, axis=1) & (size > 1)
    fewest = len(size)
    if concept.kind != "continuous":
        there = (sums > 0).sum(axis=0)
        fewest = int(there[there > 0].min(initial=len(size)))
    return Telling(
        n=len(group),
        n_groups=len(size),
        n_several=int(np.sum(size > 1)),
        n_pure=int(pure.sum()),
        fewest=fewest,
        together=float(several.mean()),
        explained=explained,
    )


def _fitted_by_group(meta: dict[str, Any]) -> bool:
    """Whether the fit was told that its rows are worth less than their number."""
    n = meta.get("n")
    return n is not None and (meta.get("fit") or {}).get("effective_n", n) < SAME * n


def _crossing(roles: Roles) -> str:
    """Where a group is on both sides of a probe all the same; empty if nowhere."""
    fit, new = roles.fit, roles.new
    if fit is None or new is None:
        return ""
    learnt = "probes that learn from the rows of the fit"
    if fit.ids is None or new.ids is None:
        return f"; of one set of rows none were passed, so {learnt} may read the group"
    met = int(np.isin(new.ids, fit.ids).sum())
    return f"; but {met:,} of the fresh rows are of groups that {learnt} have met" if met else ""


def _on_bunches(share: float, where: str) -> str:
    return (
        f"About {100 * share:.0f} % of the {where} lie in small bunches, ten times nearer to each "
        "other than to the next row: they look like takes or near copies of one thing each. Such "
        "rows are not independent: what holds on them may not hold on new things, and intervals "
        "are too narrow. Say by groups= (or ids=) which rows belong together, here and in fit."
    )


def _on_copies(found: Copies, where: str) -> str:
    told = f"{found.n - found.n_different:,} of {found.n:,} {where} "
    if found.treated == "apart":
        return told + (
            "equal one of another group. Equal rows on both sides of a probe let neighbours and "
            "trees read what they have seen, and make intervals too narrow. Give copies the same "
            "entry of groups= (or ids=)."
        )
    told += f"are exact copies of others; {found.n_different:,} rows differ. "
    if found.excess is not None:
        e = found.excess
        told = (
            f"Among {found.n:,} {where}, {e.values:,} values occur exactly {e.times} times; chance "
            f"explains about {e.chance:,.0f}. So rows were copied. "
        )
    if where == FIT:
        return told + (
            "The fit took them for independent, so it is off by more than its number of rows "
            "suggests. Say by groups= of fit which rows belong together."
        )
    if found.treated == "alone":
        return told + (
            "In a table equal rows may be different ones, so copies count as independent here: "
            "intervals are too narrow, and neighbours and trees may read copies of what they have "
            "seen. Leave copies out, or say by groups= (or ids=) which rows belong together."
        )
    return told + (
        "Here copies count once and are on one side of every probe. Near copies (crops, "
        "paraphrases, rows of one person) are not treated so: say by groups= (or ids=) which rows "
        "belong together, here and in fit."
    )


def _on_groups(found: Telling, where: str, concept: Concept, crossing: str) -> str:
    if concept.kind == "continuous":
        told = f"other rows of its group explain {100 * found.explained:.0f} % of its variance"
        sizes = f"{found.n_groups:,} groups"
    else:
        whole = found.n_pure == found.n_several
        some = "all" if whole else f"{found.n_pure:,} of"
        told = f"{some} {found.n_several:,} groups of several rows have one class only"
        sizes = f"{found.n_groups:,} groups, {found.fewest:,} of the rarest class"
    return (
        f"Groups tell the concept of the {where}: {told}. The sample is {sizes}, not {found.n:,} "
        "rows, and a probe of further rows of known groups reads the group. Rows were split by "
        f"group here{crossing}. Split them so wherever erased rows are used, and pass groups= to "
        "fit."
    )
