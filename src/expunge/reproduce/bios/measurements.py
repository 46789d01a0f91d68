"""What is measured on biographies, frozen, fine-tuned and adversarially trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from expunge.audit.linear_probes import logistic_scores
from expunge.audit.probe import Training
from expunge.audit.probes import PROBES
from expunge.audit.running import cross_fitted
from expunge.erasers import INLP, LEACE, RLACE, SPLINCE, MeanProjection, QuadraticLEACE
from expunge.erasers.base import BaseEraser
from expunge.erasure import Erasure
from expunge.game.descent_ascent import paper_settings
from expunge.inputs import check_concept
from expunge.linalg import Array
from expunge.metrics import tpr_gaps
from expunge.reproduce.bios.biographies import BiosData, BiosSplit, women_of
from expunge.reproduce.bios.encodings import frozen, trained
from expunge.reproduce.runner.declaration import ExperimentPart
from expunge.reproduce.runner.runs import ExperimentRun

__all__ = ["MANY", "PARTS"]

MANY = {"frozen": 50, "finetuned": 100}  # the larger of the two ranks of the paper's table
RIDGE = {"gender": 1e-4, "profession": 1e-3}  # of the classifiers, relative
FRESH_PROBES = [PROBES[f"logistic regression, ridge {ridge:g}"] for ridge in (1e-4, 1e-2, 1.0)]
FRESH_FOLDS = 4
QUICK_STEPS = 2000  # of descent-ascent
CURVE_POINTS = 12  # ranks measured of the curve when quick
CURVE_BLOCK = 10  # ranks that a crash can lose

Map = Callable[[NDArray[Any]], NDArray[Any]]


class _Accuracies(NamedTuple):
    """Shares of test rows that a classifier gets right, and its answers for the profession."""

    gender: float
    profession: float
    answers: NDArray[Any]


def _accuracy(
    X: NDArray[Any], y: NDArray[Any], X_test: NDArray[Any], y_test: NDArray[Any], ridge: float
) -> tuple[float, NDArray[Any]]:
    """Held-out accuracy of a logistic regression, and its answers."""
    concept = check_concept(y, len(y), concept_type="classes")
    scores = logistic_scores(Training(X, concept), np.asarray(X_test, dtype=np.float64), ridge)
    answers = np.asarray(concept.labels)[scores.argmax(axis=1)]
    return float(np.mean(answers == y_test)), answers


def _accuracies(
    data: BiosData, split: BiosSplit, train: NDArray[Any], test: NDArray[Any]
) -> _Accuracies:
    """Of classifiers for gender and profession, trained on the rows of the fit."""
    gender, profession = data.gender, data.profession
    left, _ = _accuracy(train, gender[split.train], test, gender[split.test], RIDGE["gender"])
    task, answers = _accuracy(
        train, profession[split.train], test, profession[split.test], RIDGE["profession"]
    )
    return _Accuracies(left, task, answers)


def _fresh_accuracy(X: NDArray[Any], y: NDArray[Any]) -> float:
    """Cross-fitted accuracy on rows that no eraser has seen, with the ridge that finds most."""
    concept = check_concept(y, len(y), concept_type="classes")
    folds = np.random.default_rng(0).permutation(len(X)) % FRESH_FOLDS
    found = cross_fitted(FRESH_PROBES, X, concept, folds, 0, lambda name: None)
    return max(float(np.mean(s.values.argmax(axis=1) == concept.values)) for s in found)


def _measures(data: BiosData, split: BiosSplit, X: NDArray[Any], erase: Map) -> dict[str, Any]:
    """One line of the table."""
    train, test, gender = erase(X[split.train]), erase(X[split.test]), data.gender
    found = _accuracies(data, split, train, test)
    unseen = np.concatenate([split.dev, split.test])
    gaps = tpr_gaps(
        data.profession[split.test],
        found.answers,
        gender[split.test],
        positive=women_of(gender),
    )
    return {
        "gender": found.gender,
        "fresh": _fresh_accuracy(erase(X[unseen]), gender[unseen]),
        "profession": found.profession,
        "gap": gaps.rms,
        "correlation": gaps.correlation,
        "undefined": [str(name) for name, _ in gaps.undefined],
        "professions": [str(name) for name in gaps.classes],
        "gaps": gaps.gaps[:, 0].tolist(),
        "women": gaps.shares[:, 0].tolist(),
    }


def _projector(basis: Array, center: Array | None) -> Map:
    erasure = Erasure(basis, basis.T, center)
    return lambda X: np.asarray(erasure.transform(X))


def _nothing(X: NDArray[Any]) -> NDArray[Any]:
    return X


def _by(eraser: BaseEraser) -> Map:
    return lambda X: np.asarray(eraser.transform(X))


class _Stage:
    """Encodings of one kind, the split of the run and the directions that methods remove."""

    def __init__(self, run: ExperimentRun, name: str, X: NDArray[Any]) -> None:
        self.run, self.name, self.X = run, name, X
        self.data: BiosData = run.data
        self.split = self.data.split(run.seed)
        self.gender = self.data.gender[self.split.train]
        self.many = min(MANY[name], self.X.shape[1] - 1)

    @cached_property
    def train(self) -> NDArray[Any]:
        """The rows that erasers are fitted on."""
        return np.asarray(self.X[self.split.train])

    def bases(self) -> dict[str, Array]:
        """Orthonormal columns by method, the first K of which are the answer at rank K."""

        def make() -> Mapping[str, Array]:
            inlp = INLP(self.many).fit(self.train, self.gender).erasure_
            exact = RLACE(self.many).fit(self.train, self.gender).erasure_
            assert exact.center is not None
            return {"INLP": inlp.left, "RLACE exact": exact.left, "center": exact.center}

        return self.run.kept(f"{self.name}-bases", make)

    def paper_basis(self, rank: int) -> Array:
        """What the paper's solver finds."""
        settings: dict[str, Any] = dict(paper_settings("deep"))
        if self.run.quick:
            settings["max_iter"] = QUICK_STEPS

        def make() -> Mapping[str, Array]:
            eraser = RLACE(rank, random_state=self.run.seed, **settings)
            return {"basis": eraser.fit(self.train, self.gender).erasure_.left}

        return self.run.kept(f"{self.name}-paper-{rank}", make)["basis"]

    def measure(self, erase: Map) -> dict[str, Any]:
        return _measures(self.data, self.split, self.X, erase)

    def table(self) -> dict[str, Any]:
        """The lines of the paper's table, with the exact solution beside the paper's solver."""
        bases = self.bases()
        center = bases.pop("center")
        found = {"nothing": self.measure(_nothing)}
        ranks = sorted({1, self.many})
        for place, rank in enumerate(ranks):
            size = "one" if rank == 1 else "many"
            self.run.tell((place + 0.1) / (len(ranks) + 1), f"rank {rank}")
            paper = _projector(self.paper_basis(rank), center)
            found[f"RLACE {size}"] = self.measure(paper)
            for method, basis in bases.items():
                found[f"{method} {size}"] = self.measure(_projector(basis[:, :rank], center))
        return {"many": self.many, "lines": found}

    def curve(self) -> dict[str, Any]:
        """Gender and profession accuracy against K."""
        bases = self.bases()
        center = bases.pop("center")
        ranks = list(range(1, self.many + 1))
        if self.run.quick:
            places = np.linspace(0, len(ranks) - 1, CURVE_POINTS).round().astype(int)
            ranks = [ranks[place] for place in dict.fromkeys(places.tolist())]
        found: dict[str, Any] = {"ranks": ranks}
        for number, (method, basis) in enumerate(bases.items()):
            found[method] = {"gender": [], "profession": []}
            for start in range(0, len(ranks), CURVE_BLOCK):
                some = ranks[start : start + CURVE_BLOCK]
                share = (number + start / len(ranks)) / len(bases)
                self.run.tell(share, f"({method}, from rank {some[0]})")
                values = self.run.kept(
                    f"{self.name}-curve-{method.replace(' ', '-')}-{some[0]:03d}",
                    partial(self._curve_block, basis, center, some),
                )
                for key, into in found[method].items():
                    into.extend(values[key].tolist())
        return found

    def _curve_block(self, basis: Array, center: Array, ranks: list[int]) -> Mapping[str, Array]:
        test, lines = self.X[self.split.test], []
        for rank in ranks:
            erase = _projector(basis[:, :rank], center)
            lines.append(_accuracies(self.data, self.split, erase(self.train), erase(test)))
        return {
            "gender": np.array([line.gender for line in lines]),
            "profession": np.array([line.profession for line in lines]),
        }

    def extras(self) -> dict[str, Any]:
        """Erasers that came after the paper."""
        job = self.data.profession[self.split.train]
        found = {}
        for name, eraser in {
            "LEACE": LEACE(),
            "SPLINCE": SPLINCE(),
            "MeanProjection": MeanProjection(),
            "QuadraticLEACE": QuadraticLEACE(label_free=True),
        }.items():
            eraser.fit(self.train, job, concept=self.gender)
            measured = self.measure(_by(eraser))
            found[name] = {**measured, "rank": eraser.rank_}
        return found


def _of_frozen(run: ExperimentRun) -> dict[str, Any]:
    return _Stage(run, "frozen", frozen(run)).table()


def _extras(run: ExperimentRun) -> dict[str, Any]:
    return _Stage(run, "frozen", frozen(run)).extras()


def _frozen_curve(run: ExperimentRun) -> dict[str, Any]:
    return _Stage(run, "frozen", frozen(run)).curve()


def _of_finetuned(run: ExperimentRun) -> dict[str, Any]:
    done = trained(run, None)
    found = _Stage(run, "finetuned", done["vectors"]).table()
    return {**found, "step": int(done["step"]), "steps": run.data.steps}


def _finetuned_curve(run: ExperimentRun) -> dict[str, Any]:
    return _Stage(run, "finetuned", trained(run, None)["vectors"]).curve()


def _adversarial(kind: Literal["mlp", "linear"]) -> Callable[[ExperimentRun], dict[str, Any]]:
    def measure(run: ExperimentRun) -> dict[str, Any]:
        done = trained(run, kind)
        found = _Stage(run, "finetuned", done["vectors"]).measure(_nothing)
        return {**found, "adversary": float(done["adversary"]), "step": int(done["step"])}

    return measure


def _majority(run: ExperimentRun) -> dict[str, Any]:
    """Accuracy of the commonest answer of the training rows."""
    data: BiosData = run.data
    split = data.split(run.seed)

    def share(column: NDArray[Any]) -> float:
        labels, counts = np.unique(column[split.train], return_counts=True)
        return float(np.mean(column[split.test] == labels[counts.argmax()]))

    return {"gender": share(data.gender), "profession": share(data.profession)}


PARTS = (
    ExperimentPart("majority", "commonest answers", _majority, weight=0.1),
    ExperimentPart("frozen", "frozen encoder", _of_frozen, weight=60),
    ExperimentPart("extras", "later erasers", _extras, weight=10),
    ExperimentPart("frozen-curve", "accuracy against K, frozen", _frozen_curve, weight=40),
    ExperimentPart("finetuned", "fine-tuning", _of_finetuned, weight=200),
    ExperimentPart(
        "finetuned-curve", "accuracy against K, fine-tuned", _finetuned_curve, weight=80
    ),
    ExperimentPart("adversarial-mlp", "adversarial training, MLP", _adversarial("mlp"), weight=200),
    ExperimentPart(
        "adversarial-linear", "adversarial training, linear", _adversarial("linear"), weight=200
    ),
)
