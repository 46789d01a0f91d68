"""What is measured on faces: one part for each concept, and the paper's own algorithm once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.audit.families import FamilyResult
from expunge.audit.probe import Training
from expunge.audit.residue import expected_residue
from expunge.audit.sampling import stratified
from expunge.concept import Concept
from expunge.erasers import LEACE, RLACE
from expunge.erasure import Erasure
from expunge.game.descent_ascent import paper_settings
from expunge.reproduce.faces.labelled_faces import CONCEPTS, Faces
from expunge.reproduce.faces.people_split import FaceRows, FacesSplit, balanced, dealt, split_faces
from expunge.reproduce.faces.pixel_probe import RIDGE, compact, fresh_rows, same_rows, span
from expunge.reproduce.runner.declaration import ExperimentPart, SkipPart
from expunge.reproduce.runner.runs import ExperimentRun

__all__ = ["DESCENT", "METHODS", "NOT_CENTRED", "PARTS", "SHOWN", "at_strength", "pictures_of"]

METHODS = ("original", "RLACE, strength 0.5", "RLACE", "LEACE")
NOT_CENTRED = "RLACE, mean not kept"
MOST, QUICK_MOST = 4000, 250  # faces of each class in a part
NATURAL_MOST, QUICK_NATURAL_MOST = 8000, 500  # faces in a part with the shares as they are
FOLDS, QUICK_FOLDS = 5, 3
SHOWN = 4  # faces of each class in a figure
DESCENT = "descent"
STEPS, QUICK_STEPS = 10_000, 4_000
ENOUGH = 5e-4  # share of the label entropy a linear predictor may still gain when descent stops
GREYS = 255


def measure(concept: str, run: ExperimentRun) -> dict[str, Any]:
    """Everything that is measured for a concept."""
    faces: Faces = run.data
    rng = np.random.default_rng([run.seed, CONCEPTS.index(concept)])
    split = split_faces(faces, concept, rng)
    most = QUICK_MOST if run.quick else MOST
    fit, held_out = (balanced(part, rng, most) for part in (split.fit, split.held_out))
    X, Y = _pixels(faces, fit), _pixels(faces, held_out)
    erasures = erasers(X, fit.y)
    shown = {name: erasures[name] for name in METHODS}
    run.tell(0.2, "(probes of the rows of the fit)")
    same = same_rows((X, _concept(fit)), (Y, _concept(held_out)), shown)
    run.tell(0.4, "(probes of fresh rows)")
    fresh = _fresh(faces, held_out, Y, shown, rng, QUICK_FOLDS if run.quick else FOLDS)
    run.tell(0.7, "(other splits)")
    natural = _natural(faces, split, rng, QUICK_NATURAL_MOST if run.quick else NATURAL_MOST)
    by_image = _by_image(faces, concept, rng, most)
    if run.number == 0:
        make = partial(pictures_of, (X, fit.y), (Y, held_out.y), erasures, run.seed)
        run.kept(f"pictures-{concept}", make)
    return {
        "rows": _counts(faces, split, fit, held_out),
        "same": {name: _values(found) for name, found in same.items()},
        "fresh": {name: _values(found) for name, found in fresh.items()},
        "expected": _expected(X, fit, fresh["original"].n_train if fresh else len(Y)),
        "natural": natural,
        "by_image": by_image,
        "change": {name: _change(erasure, Y) for name, erasure in erasures.items()},
    }


def erasers(X: NDArray[Any], y: NDArray[Any]) -> dict[str, Erasure]:
    """Fitted erasures by name: those of `METHODS`, the first at strength 0, and the paper's map.

    That one is x -> (I - Q)x, which does not keep the mean. The covariance in LEACE is shrunk by
    the share that the ridge of the probe has.
    """
    full = RLACE(1).fit(X, y).erasure_
    return {
        METHODS[0]: at_strength(full, 0.0),
        METHODS[1]: at_strength(full, 0.5),
        METHODS[2]: full,
        METHODS[3]: LEACE(1, shrinkage=RIDGE).fit(X.astype(np.float64), y).erasure_,
        NOT_CENTRED: Erasure(full.left, full.right),
    }


def at_strength(erasure: Erasure, strength: float) -> Erasure:
    """A fitted erasure at another strength, as `RLACE(strength=...)` gives it.

    Parameters
    ----------
    erasure : Erasure
        At strength 1.
    strength : float
        From 0, the identity, to 1.

    Returns
    -------
    Erasure

    Examples
    --------
    >>> import numpy as np
    >>> from expunge import Erasure
    >>> from expunge.reproduce.faces.measurements import at_strength
    >>> e = Erasure([[1.0], [0.0]], [[1.0, 0.0]])
    >>> at_strength(e, 0.5)(np.array([[4.0, 3.0]]))
    array([[2., 3.]])
    """
    kept = slice(None) if strength > 0 else slice(0)
    return Erasure(strength * erasure.left[:, kept], erasure.right[kept], erasure.center)


def pictures_of(
    fit: tuple[NDArray[Any], NDArray[Any]],
    held_out: tuple[NDArray[Any], NDArray[Any]],
    erasures: Mapping[str, Erasure],
    seed: int,
) -> dict[str, NDArray[Any]]:
    """Held-out faces drawn at random, before and after, and the directions.

    Parameters
    ----------
    fit, held_out : pairs of an array (n, 2500) and labels (n,)
    erasures : mapping from str to Erasure
        As `erasers` gives them.
    seed : int

    Returns
    -------
    dict from str to array
        "faces" (erasures, 2 * SHOWN, 2500), first those with the concept; "removed" and "read", the
        directions that RLACE removes and LEACE reads, with minus without; "with" and "without", the
        mean faces of the fit.
    """
    (X, y), (Y, z) = fit, held_out
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(np.flatnonzero(z == label), SHOWN, replace=False) for label in (1, 0)]
    shown = Y[np.concatenate(drawn)]
    having, lacking = X[y == 1].mean(axis=0), X[y == 0].mean(axis=0)

    def turned(direction: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(direction * np.sign(direction @ (having - lacking)))

    return {
        "faces": np.stack([erasure.transform(shown) for erasure in erasures.values()]),
        "removed": turned(erasures["RLACE"].right[0]),
        "read": turned(erasures["LEACE"].right[0]),
        "with": having,
        "without": lacking,
    }


def descent(run: ExperimentRun) -> dict[str, Any]:
    """The paper's algorithm on the first concept there is, beside the closed form."""
    faces: Faces = run.data
    concept, split, rng = _first(faces, run.seed)
    most = QUICK_MOST if run.quick else MOST
    fit, held_out = (balanced(part, rng, most) for part in (split.fit, split.held_out))
    X, Y = _pixels(faces, fit), _pixels(faces, held_out)
    eraser, found = _descended(X, fit.y, QUICK_STEPS if run.quick else STEPS, run.seed)
    exact = RLACE(1).fit(X, fit.y).erasure_
    erasures = {"descent": found, "exact": exact}
    probed = same_rows((X, _concept(fit)), (Y, _concept(held_out)), erasures)
    assert eraser.certificate_ is not None
    return {
        "concept": concept,
        "steps": eraser.history_[-1].step,
        "cosine": abs(float((found.basis @ exact.basis.T)[0, 0])),
        "gap": eraser.certificate_.gap / eraser.certificate_.bound,
        **{name: _values(result) for name, result in probed.items()},
    }


def _descended(X: NDArray[Any], y: NDArray[Any], steps: int, seed: int) -> tuple[RLACE, Erasure]:
    """Descent-ascent, and its erasure.

    Rows fewer than pixels are taken in coordinates of their span: the game there is the same.
    """
    n, d = X.shape
    settings = paper_settings("static") | {"max_iter": steps, "tol": ENOUGH, "random_state": seed}
    if n >= d:
        eraser = RLACE(1, **settings).fit(X, y)
        return eraser, eraser.erasure_
    center, Q = span(X)
    ridge = RLACE().alpha * n / d  # relative to the variance of a pixel, not of a coordinate
    eraser = RLACE(1, alpha=ridge, **settings).fit((X - center) @ Q, y)
    direction = Q @ eraser.erasure_.left
    return eraser, Erasure(direction, direction.T, center)


def _first(faces: Faces, seed: int) -> tuple[str, FacesSplit, np.random.Generator]:
    for concept in CONCEPTS:
        rng = np.random.default_rng([seed, CONCEPTS.index(concept)])
        try:
            return concept, split_faces(faces, concept, rng), rng
        except SkipPart:
            continue
    raise SkipPart("no concept has enough faces")


def _fresh(
    faces: Faces,
    rows: FaceRows,
    Y: NDArray[Any],
    erasures: Mapping[str, Erasure],
    rng: np.random.Generator,
    parts: int,
) -> dict[str, FamilyResult]:
    """Cross-fitted in folds without a common person; nothing if a class has too few people."""
    person = rows.index if faces.person is None else faces.person[rows.index]
    folds = dealt(rows.y, person, parts, rng)
    if any(np.bincount(rows.y[folds == fold], minlength=2).min() == 0 for fold in range(parts)):
        return {}
    return fresh_rows(Y, _concept(rows), folds, erasures)


def _natural(
    faces: Faces, split: FacesSplit, rng: np.random.Generator, most: int
) -> dict[str, Any]:
    """The paper's protocol with the classes as common as they are."""
    fit, held_out = (
        part.take(stratified(_concept(part), most, int(rng.integers(2**31))))
        for part in (split.fit, split.held_out)
    )
    return _before_and_after(faces, fit, held_out)


def _by_image(
    faces: Faces, concept: str, rng: np.random.Generator, most: int
) -> dict[str, Any] | None:
    """The paper's protocol with parts that share people; None where people are not known."""
    if faces.person is None:
        return None
    split = split_faces(replace(faces, person=None), concept, rng)
    fit, held_out = (balanced(part, rng, most) for part in (split.fit, split.held_out))
    return _before_and_after(faces, fit, held_out)


def _before_and_after(faces: Faces, fit: FaceRows, held_out: FaceRows) -> dict[str, Any]:
    X, Y = _pixels(faces, fit), _pixels(faces, held_out)
    full = RLACE(1).fit(X, fit.y).erasure_
    erasures = {"original": at_strength(full, 0.0), "RLACE": full}
    found = same_rows((X, _concept(fit)), (Y, _concept(held_out)), erasures)
    return {name: _values(result) for name, result in found.items()}


def _expected(X: NDArray[Any], fit: FaceRows, probe_rows: int) -> dict[str, Any]:
    """What sampling error leaves for a probe of fresh rows, from the moments of the fit."""
    small, _, _ = compact(Training(X, _concept(fit)), X[:0])
    found = expected_residue(small.moments, probe_rows)
    return {} if found is None else found.to_dict()


def _change(erasure: Erasure, Y: NDArray[Any]) -> float:
    """Root mean square change of a pixel, in grey levels of 256."""
    moved = np.subtract(erasure.transform(Y), Y, dtype=np.float64)
    return float(np.sqrt(np.mean(moved**2))) * GREYS


def _counts(faces: Faces, split: FacesSplit, fit: FaceRows, held_out: FaceRows) -> dict[str, Any]:
    found: dict[str, Any] = {"fit": len(fit), "held_out": len(held_out)}
    everything = np.concatenate([split.fit.y, split.held_out.y])
    found |= {"with": int(everything.sum()), "without": int((everything == 0).sum())}
    if faces.person is not None:
        people = [np.unique(faces.person[part.index]) for part in (fit, held_out)]
        found |= {"people_fit": len(people[0]), "people_held_out": len(people[1])}
        found["people_shared"] = len(np.intersect1d(people[0], people[1]))
    return found


def _values(found: FamilyResult) -> dict[str, Any]:
    """Accuracies with their limits, and the majority."""
    intervals = found.probes[0].intervals
    wanted = ("accuracy", "balanced_accuracy", "auc")
    values = {name: intervals[name].to_dict() for name in wanted}
    return {**values, "majority": found.majority, "train": found.n_train, "test": found.n_test}


def _pixels(faces: Faces, rows: FaceRows) -> NDArray[np.float32]:
    """Grey values from 0 to 1."""
    return faces.pixels[rows.index].astype(np.float32) / np.float32(GREYS)


def _concept(rows: FaceRows) -> Concept:
    return Concept("classes", rows.y, (0, 1))


PARTS = (
    *(
        ExperimentPart(concept, concept, partial(measure, concept), weight=30.0)
        for concept in CONCEPTS
    ),
    ExperimentPart(DESCENT, "the paper's algorithm", descent, runs=1, weight=30.0),
)
