"""What erasing a group costs a task in tables, beside fairlearn's CorrelationRemover.

``--adult FILE`` is the Adult census table with a header (UCI, CC BY 4.0): sex against income.
``--compas FILE`` is ProPublica's ``compas-scores-two-years.csv``: race against two-year recidivism.
Neither comes with the package. Each split halves the rows: eraser and task are fitted on one half
and judged on the other. Needs pandas and fairlearn.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pandas as pd
from common import machine
from fairlearn.preprocessing import CorrelationRemover
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import expunge as ex

Array = NDArray[np.float64]
Labels = NDArray[np.int64]


class Table(NamedTuple):
    """Rows, the group to erase and the task, both 0 or 1."""

    X: Array
    group: Labels
    task: Labels


class Half(NamedTuple):
    """One half of a split."""

    X: Array
    group: Labels
    task: Labels


Change = Callable[[Half, Half], tuple[Array, Array]]  # fit half, other half -> both, erased


def adult(path: str) -> Table:
    """Numbers in their units and a column per category; the sampling weight is left out."""
    frame = pd.read_csv(path)
    numbers = ["age", "education_num", "capital_gain", "capital_loss", "hours_per_week"]
    named = ["workclass", "marital_status", "occupation", "relationship", "race"]
    X = pd.concat([frame[numbers], pd.get_dummies(frame[named], drop_first=True)], axis=1)
    task = frame["income"].str.contains(">50K")
    return table(X, frame["sex"].str.strip() == "Male", task)


def compas(path: str) -> Table:
    """The rows and columns most papers take: African-American and Caucasian defendants."""
    frame = pd.read_csv(path)
    frame = frame[frame["days_b_screening_arrest"].between(-30, 30) & (frame["is_recid"] != -1)]
    frame = frame[(frame["c_charge_degree"] != "O") & (frame["score_text"] != "N/A")]
    frame = frame[frame["race"].isin(["African-American", "Caucasian"])]
    numbers = ["age", "priors_count", "juv_fel_count", "juv_misd_count", "juv_other_count"]
    X = frame[numbers].assign(male=frame["sex"] == "Male", felony=frame["c_charge_degree"] == "F")
    return table(X, frame["race"] == "African-American", frame["two_year_recid"] == 1)


def table(X: pd.DataFrame, group: pd.Series, task: pd.Series) -> Table:
    """Plain arrays, without columns that fewer than a hundred rows have anything in.

    Such a column may be empty in one of the halves. What is then left in it is a trace of what was
    erased and nothing else, which a probe that scales columns reads.
    """
    X = X.loc[:, (X != 0).sum() >= 100]
    return Table(X.to_numpy(float), group.to_numpy(np.int64), task.to_numpy(np.int64))


def by(eraser: ex.LEACE | ex.RLACE) -> Change:
    """An eraser that is fitted on the group and needs it no more."""
    return lambda fit, new: (
        (done := eraser.fit(fit.X, fit.group)).transform(fit.X),
        done.transform(new.X),
    )


def splince(fit: Half, new: Half) -> tuple[Array, Array]:
    """The task's covariance kept."""
    done = ex.SPLINCE().fit(fit.X, fit.task, concept=fit.group)
    return done.transform(fit.X), done.transform(new.X)


def oracle(fit: Half, new: Half) -> tuple[Array, Array]:
    """Told the group of every row, new ones too."""
    done = ex.OracleLEACE().fit(fit.X, fit.group)
    return done.transform(fit.X, concept=fit.group), done.transform(new.X, concept=new.group)


def correlation_remover(fit: Half, new: Half) -> tuple[Array, Array]:
    """fairlearn's: the group is a column of the rows, new ones too."""
    done = CorrelationRemover(sensitive_feature_ids=[0])
    first = done.fit_transform(np.column_stack([fit.group, fit.X]))
    return first, done.transform(np.column_stack([new.group, new.X]))


METHODS: dict[str, Change] = {
    "nothing (no group column)": lambda fit, new: (fit.X, new.X),
    "LEACE()": by(ex.LEACE()),
    'RLACE(scale="std")': by(ex.RLACE(scale="std")),
    "RLACE()": by(ex.RLACE()),
    "SPLINCE()": splince,
    "OracleLEACE()": oracle,
    "CorrelationRemover()": correlation_remover,
}


def judge(change: Change, fit: Half, new: Half, trees: bool) -> list[float]:
    """Accuracy, gaps and what probes find, all on the other half."""
    first, second = change(fit, new)
    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(first, fit.task)
    said = model.predict(second)
    linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    tree = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    probes = [linear, tree] if trees else [linear]
    found = [
        cross_val_score(p, second, new.group, cv=3, scoring="balanced_accuracy").mean()
        for p in probes
    ]
    return [
        np.mean(said == new.task),
        ex.metrics.demographic_parity_difference(said, new.group),
        ex.metrics.equalised_odds_difference(new.task, said, new.group),
        *found,
    ]


def run(name: str, whole: Table, splits: int, trees: bool) -> None:
    """The table of one data set: means over the splits."""
    print(f"\n{name}: {whole.X.shape[0]:,} rows, {whole.X.shape[1]} columns, {splits} splits")
    heads = ["accuracy", "parity gap", "odds gap", "linear probe", "trees"][: 5 if trees else 4]
    print(f"{'':26}" + "".join(f"{head:>16}" for head in heads))
    for method, change in METHODS.items():
        found = []
        for seed in range(splits):
            a, b = train_test_split(
                np.arange(len(whole.X)), test_size=0.5, random_state=seed, stratify=whole.group
            )
            fit, new = (Half(*(part[rows] for part in whole)) for rows in (a, b))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ex.UnitsMatter)  # which is what is shown
                found.append(judge(change, fit, new, trees))
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0)
        cells = [f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread, strict=True)]
        print(f"{method:26}" + "".join(f"{cell:>16}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--adult", metavar="FILE")
    parser.add_argument("--compas", metavar="FILE")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--no-trees", action="store_true")
    asked = parser.parse_args()
    print(machine())
    if not asked.adult and not asked.compas:
        print("Pass --adult FILE or --compas FILE: these tables do not come with the package.")
    if asked.adult:
        run("Adult, sex against income", adult(asked.adult), asked.splits, not asked.no_trees)
    if asked.compas:
        run(
            "COMPAS, race against recidivism",
            compas(asked.compas),
            asked.splits,
            not asked.no_trees,
        )


if __name__ == "__main__":
    main()
