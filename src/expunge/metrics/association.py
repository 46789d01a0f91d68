"""The word embedding association test, WEAT.

For a target word w and two sets of attribute words A and B (Caliskan et al. 2017)

    s(w) = mean over a in A of cos(w, a) - mean over b in B of cos(w, b)

and for two sets of targets X and Y

    S = Σ_X s - Σ_Y s        d = (mean_X s - mean_Y s) / std of s over X and Y.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, combinations
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

from expunge.errors import InputError
from expunge.inputs import check_list, check_number, check_rng, check_rows
from expunge.linalg import Array
from expunge.metrics.similarity import directions, places
from expunge.parallel import blocks

if TYPE_CHECKING:
    from expunge.data import WeatTest

__all__ = [
    "Weat",
    "WordWeat",
    "paper_weat_tests",
    "weat",
    "weat_tests",
]

EXACT_PARTITIONS = 200_000  # up to here every partition of the targets is tried
TIE = 1e-12  # sums of cosines this close are the same sum, added in another order


@dataclass(frozen=True)
class Weat:
    """One word embedding association test.

    Attributes
    ----------
    statistic : float
        S: positive when X goes with A and Y with B.
    effect_size : float
        d, in standard deviations (ddof = 1); nan when all targets are associated alike.
    p_value : float
        One-sided: share of partitions of the targets, of the same sizes, with a statistic at least
        as large. The given partition is one of them, so it is never 0.
    exact : bool
        Whether all partitions were tried; else `partitions` random ones, and p = (k + 1)/(m + 1).
    partitions : int
    n_targets, n_attributes : (int, int)
        Sizes of X and Y, and of A and B.
    """

    statistic: float
    effect_size: float
    p_value: float
    exact: bool
    partitions: int
    n_targets: tuple[int, int]
    n_attributes: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """All numbers as plain values, None for an undefined effect size."""
        size = None if np.isnan(self.effect_size) else self.effect_size
        pairs = {"n_targets": list(self.n_targets), "n_attributes": list(self.n_attributes)}
        return {**asdict(self), "effect_size": size, **pairs}


@dataclass(frozen=True)
class WordWeat:
    """A `Weat` on named words, and the words it had to do without."""

    name: str
    weat: Weat
    missing: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, those of the test on the same level."""
        return {"name": self.name, **self.weat.to_dict(), "missing": list(self.missing)}


def weat(
    targets_x: Any,
    targets_y: Any,
    attributes_a: Any,
    attributes_b: Any,
    *,
    permutations: int = 10_000,
    random_state: Any = 0,
) -> Weat:
    """The word embedding association test on vectors.

    All partitions of the targets are tried if there are at most 200,000, else random ones.

    Parameters
    ----------
    targets_x, targets_y : arrays of shape (n, d)
        Two sets of targets.
    attributes_a, attributes_b : arrays of shape (m, d)
        Two sets of attributes.
    permutations : int
        Random partitions, where all would be too many.
    random_state : int, Generator or None

    Returns
    -------
    Weat

    References
    ----------
    Caliskan, Bryson, Narayanan (2017), Semantics derived automatically from language corpora
    contain human-like biases, Science 356. Their p counts strictly larger statistics only.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.metrics.association import weat
    >>> up, right = np.array([[0.0, 1.0], [0.1, 1.0]]), np.array([[1.0, 0.0], [1.0, 0.1]])
    >>> found = weat(up, right, [[0.0, 2.0]], [[2.0, 0.0]])
    >>> found.exact, round(found.p_value, 4), round(found.effect_size, 2)
    (True, 0.1667, 1.73)
    """
    check_number(permutations, "permutations", least=1, whole=True)
    X, Y = directions(targets_x, "targets_x"), directions(targets_y, "targets_y")
    A, B = directions(attributes_a, "attributes_a"), directions(attributes_b, "attributes_b")
    if len({part.shape[1] for part in (X, Y, A, B)}) > 1:
        raise InputError(
            "The four sets of vectors differ in width",
            ", ".join(str(part.shape[1]) for part in (X, Y, A, B)),
            "Pass vectors of one space",
        )
    targets = np.vstack([X, Y])
    s = targets @ (A.mean(axis=0) - B.mean(axis=0))
    x, y = s[: len(X)], s[len(X) :]
    spread = float(s.std(ddof=1))
    p, exact, partitions = _p_value(s, len(X), permutations, check_rng(random_state))
    return Weat(
        statistic=float(x.sum() - y.sum()),
        effect_size=float(x.mean() - y.mean()) / spread if spread > TIE else float("nan"),
        p_value=p,
        exact=exact,
        partitions=partitions,
        n_targets=(len(X), len(Y)),
        n_attributes=(len(A), len(B)),
    )


def paper_weat_tests() -> tuple[WeatTest, ...]:
    """The three tests of Ravfogel et al. (2022): male and female first names are the attributes.

    Targets are math and art, professions and family, science and art words; all lists are those
    of Caliskan et al. (2017), tests 6 to 8.

    Returns
    -------
    tuple of WeatTest

    Examples
    --------
    >>> from expunge.metrics.association import paper_weat_tests
    >>> [test.name for test in paper_weat_tests()]
    ['math-art', 'professions-family', 'science-art']
    """
    from expunge.data import WeatTest, load_word_lists

    career, math, science = load_word_lists().weat[5:8]
    names = career.first_target, career.second_target
    return (
        WeatTest("math-art", math.first_target, math.second_target, *names),
        WeatTest("professions-family", career.first_attribute, career.second_attribute, *names),
        WeatTest("science-art", science.first_target, science.second_target, *names),
    )


def weat_tests(
    vectors: Any,
    words: Sequence[str],
    *,
    tests: Iterable[WeatTest] | None = None,
    permutations: int = 10_000,
    random_state: Any = 0,
) -> tuple[WordWeat, ...]:
    """Association tests by words.

    Parameters
    ----------
    vectors : array of shape (n, d)
    words : sequence of n str
        One for each vector.
    tests : iterable of WeatTest, optional
        By default `paper_weat_tests`.
    permutations, random_state
        As in `weat`.

    Returns
    -------
    tuple of WordWeat
        Each names the words that have no vector and were left out.

    Examples
    --------
    >>> from expunge.metrics.association import weat_tests
    >>> from expunge.data import load_glove
    >>> glove = load_glove()
    >>> for found in weat_tests(glove.vectors, glove.words):
    ...     print(found.name, found.weat.effect_size > 0.5, found.missing)
    math-art True ()
    professions-family True ()
    science-art True ()
    """
    V = check_rows(vectors, name="vectors")
    at = places(words, V.n_samples)
    found = []
    for test in paper_weat_tests() if tests is None else _listed(tests):
        sets = test.first_target, test.second_target, test.first_attribute, test.second_attribute
        missing = tuple(dict.fromkeys(w for part in sets for w in part.words if w not in at))
        known = [[at[word] for word in part.words if word in at] for part in sets]
        for part, rows in zip(sets, known, strict=True):
            if not rows:
                raise InputError(
                    f"No word of the set {part.name!r} of {test.name!r} has a vector",
                    f"{len(words):,} words, among them {', '.join(map(repr, words[:3]))}",
                    "Pass a vocabulary that holds these words, in lower case",
                )
        parts = [V.take(np.array(rows, dtype=np.intp)).array() for rows in known]
        result = weat(*parts, permutations=permutations, random_state=random_state)
        found.append(WordWeat(test.name, result, missing))
    return tuple(found)


def _listed(tests: Any) -> list[WeatTest]:
    from expunge.data import WeatTest

    listed = check_list(tests, "tests")
    for test in listed:
        if not isinstance(test, WeatTest):
            raise InputError(
                "tests must hold word embedding association tests",
                type(test).__name__,
                "Pass some of expunge.metrics.paper_weat_tests(), or WeatTest of your own",
            )
    return listed


def _p_value(
    s: Array, size: int, permutations: int, rng: np.random.Generator
) -> tuple[float, bool, int]:
    """p, whether it is exact, and the number of partitions; `size` targets are on X's side.

    S = 2 Σ_X s - Σ s, so partitions are ordered by their sum over X alone.
    """
    observed = float(s[:size].sum()) - TIE
    total = comb(len(s), size)
    if total <= EXACT_PARTITIONS:
        flat = np.fromiter(chain.from_iterable(combinations(range(len(s)), size)), dtype=np.intp)
        sums = s[flat.reshape(total, size)].sum(axis=1)
        return float(np.mean(sums >= observed)), True, total
    larger = 0
    for lo, hi in blocks(0, permutations, 1000):
        chosen = rng.random((hi - lo, len(s))).argpartition(size, axis=1)[:, :size]
        larger += int((s[chosen].sum(axis=1) >= observed).sum())
    return (larger + 1) / (permutations + 1), False, permutations
