"""What erasers leave to the strongest probe, and what they cost, on five sets of real rows.

Erasers are fitted on one part of the rows. The strongest of the thorough probes is chosen and
trained on a second, erased, and tested on a third: balanced accuracy with its 95 % limits. Change
(mean squared move / variance) and the share of the ten nearest neighbours kept are of the second
and third part; the task is the accuracy of a logistic regression trained on the erased rows of the
fit. A baseline from outside the library moves every row to the decision boundary of a network,
20 networks one after the other, each trained on the rows as the last one left them.

Word vectors and faces come with the package; ``--wordsim FILE.tsv`` adds WordSim-353 beside SimLex.
``--dbpedia NAME``, ``--biasbios NAME`` (NAME.minilm.npz and NAME.jsonl.gz) and ``--adult FILE.csv``
add biographies and a census table. ``--only glove,adult`` takes some sets, ``--erasers leace,fold``
those whose names hold one of these, ``--quick`` the default probes, less rows and 5 rounds.
``--speed`` measures fit and transform on 200,000 x 768 made rows instead.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from common import machine
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.audit import strongest_probe
from expunge.data import load_glove, load_orl_faces
from expunge.inputs import check_rows
from expunge.metrics.change import relative_change
from expunge.metrics.neighbours import neighbour_overlap
from expunge.metrics.similarity import similarity_correlation
from expunge.tradeoff.candidates import candidates

Array = NDArray[np.float64]
Map = Callable[[Array], Array]
ADULT_ROWS = 16_000
PROFESSIONS = ["athlete", "politician", "artist"]  # the large classes
HIDDEN, EPOCHS, STEPS, BATCH = 128, 12, 3, 128  # of the networks


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with a concept of two classes, and what else is known of them.

    Attributes
    ----------
    parts : int array of shape (n,)
        0 to fit, 1 to train a probe, 2 to test it.
    task : array of shape (n,) or None
    groups : array of shape (n,) or None
        None is in two parts.
    """

    X: Array
    y: NDArray[np.intp]
    parts: NDArray[np.intp]
    task: NDArray[Any] | None = None
    groups: NDArray[Any] | None = None
    columns: dict[str, Callable[[Map], float]] = field(default_factory=dict)


def cut(n: int, groups: NDArray[Any] | None = None) -> NDArray[np.intp]:
    """Half to fit, a quarter each to train and to test a probe; no group in two of them."""
    ids = np.arange(n) if groups is None else np.unique(groups, return_inverse=True)[1]
    place = np.random.default_rng(0).random(ids.max() + 1)[ids]
    return np.digitize(place, [0.5, 0.75])


def glove_rows(given: argparse.Namespace) -> Rows:
    glove = load_glove()
    parts = (glove.train, glove.dev, glove.test)

    def agreement(pairs: str | None) -> Callable[[Map], float]:
        return lambda clean: (
            similarity_correlation(
                clean(np.asarray(glove.vectors, float)), glove.words, pairs
            ).spearman
        )

    columns = {"SimLex": agreement(None)}
    if given.wordsim:
        columns["WordSim"] = agreement(given.wordsim)
    return Rows(
        np.vstack([part.X for part in parts]).astype(float),
        np.concatenate([part.y for part in parts]).astype(np.intp),
        np.repeat(np.arange(3), [len(part) for part in parts]),
        columns=columns,
    )


def biographies(name: str, only: list[str] | None) -> Rows:
    import pandas as pd

    table = pd.read_json(f"{name}.jsonl.gz", lines=True)
    some = np.ones(len(table), bool) if only is None else table.profession.isin(only).to_numpy()
    X = np.load(f"{name}.minilm.npz")["mean"][some].astype(float)
    y = (table.gender[some].str[0] == "f").to_numpy().astype(np.intp)
    job = table.profession[some].to_numpy().astype(str)
    if only is None:  # one class has four fifths of the rows
        job = np.where(job == "accountant", "accountant", "other")
    return Rows(X, y, cut(len(X)), job)


def adult_rows(given: argparse.Namespace) -> Rows:
    """Numbers and a column per category; without what says husband and wife."""
    import pandas as pd

    frame = pd.read_csv(given.adult).drop(columns=["fnlwgt", "relationship", "split"])
    frame = frame.iloc[np.random.default_rng(1).permutation(len(frame))[:ADULT_ROWS]]
    y = frame.pop("sex").str.strip().eq("Male").to_numpy().astype(np.intp)
    income = frame.pop("income").str.strip(" .").to_numpy().astype(str)
    X = pd.get_dummies(frame, dtype=float).to_numpy()
    X = X[:, (np.median(X, axis=0) != X).mean(axis=0) > 0.01]  # without rare categories
    return Rows(X / X.std(axis=0), y, cut(len(X)), income)


def orl_rows(new_people: bool) -> Rows:
    """Pixels in the directions that the images span, which keeps every distance and every line.

    The directions are turned at random: principal ones have spreads so uneven that probes take them
    for columns in units of their own and scale each, and then read nothing at all.

    With new people, each is in one part, dealt out in the order of how often they wear glasses.
    Ten to learn from are then too few for any probe here, before erasure too: such a table shows
    nothing about erasers. Else every part has images of every person. Probes may then recognise
    people, and limits that count images are too narrow for a claim about people.
    """
    faces = load_orl_faces()
    pixels = faces.images.reshape(len(faces), -1) / 255.0
    U, s, _ = np.linalg.svd(pixels - pixels.mean(axis=0), full_matrices=False)
    X, y = (U * s)[:, s > 1e-9 * s[0]], faces.glasses.astype(np.intp)
    X = X @ np.linalg.qr(np.random.default_rng(0).normal(size=(X.shape[1],) * 2))[0]
    people, who = np.unique(faces.person_id, return_inverse=True)
    if not new_people:
        return Rows(X, y, cut(len(X)))
    worn = np.bincount(who, weights=faces.glasses)
    dealt = np.empty(len(people), dtype=np.intp)
    dealt[np.argsort(worn, kind="stable")] = np.resize([0, 1, 0, 2], len(people))
    return Rows(X, y, dealt[who], None, who)


def data_sets(given: argparse.Namespace) -> Iterator[tuple[str, Rows]]:
    makers: dict[str, tuple[bool, Callable[[], Rows]]] = {
        "glove": (True, lambda: glove_rows(given)),
        "dbpedia": (bool(given.dbpedia), lambda: biographies(given.dbpedia, PROFESSIONS)),
        "biasbios": (bool(given.biasbios), lambda: biographies(given.biasbios, None)),
        "adult": (bool(given.adult), lambda: adult_rows(given)),
        "orl": (True, lambda: orl_rows(new_people=False)),
        "orl-people": (True, lambda: orl_rows(new_people=True)),
    }
    only = given.only.split(",") if given.only else list(makers)
    if unknown := [name for name in only if name not in makers]:
        raise SystemExit(f"--only takes {', '.join(makers)}, not {', '.join(unknown)}")
    for name in only:
        there, make = makers[name]
        if there:
            yield name, make()
        else:
            print(f"{name}: no file was passed")


def to_boundary(X: Array, y: NDArray[np.intp], rounds: int) -> Map:
    """Every row moved to where a network cannot tell, by Newton steps x - f(x) ∇f / ‖∇f‖²."""
    import torch

    torch.manual_seed(0)
    unit = float(X.std())
    target = torch.tensor(y, dtype=torch.float32)
    share = target.mean()
    balance = torch.where(target > 0, 0.5 / share, 0.5 / (1 - share))
    networks = []

    def moved(rows: torch.Tensor, network: Any) -> torch.Tensor:
        for _ in range(STEPS):
            rows = rows.detach().requires_grad_(True)
            f = network(rows)[:, 0]
            (slope,) = torch.autograd.grad(f.sum(), rows)
            size = (slope**2).sum(dim=1, keepdim=True).clamp_min(1e-6)
            rows = rows.detach() - f.detach()[:, None] * slope / size
        return rows

    now = torch.tensor(X / unit, dtype=torch.float32)
    for _ in range(rounds):
        network = torch.nn.Sequential(
            torch.nn.Linear(X.shape[1], HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, 1)
        )
        optimiser = torch.optim.AdamW(network.parameters(), lr=2e-3, weight_decay=1e-2)
        for _ in range(EPOCHS):
            for some in torch.randperm(len(now)).split(BATCH):
                loss = torch.nn.functional.binary_cross_entropy_with_logits(
                    network(now[some])[:, 0], target[some], weight=balance[some]
                )
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
        networks.append(network)
        now = moved(now, network)

    def apply(rows: Array) -> Array:
        out = torch.tensor(rows / unit, dtype=torch.float32)
        for network in networks:
            out = moved(out, network)
        return np.asarray(out.numpy(), dtype=float) * unit

    return apply


def maps(rows: Rows, given: argparse.Namespace) -> Iterator[tuple[str, Map, float]]:
    """Erasers by name with the seconds of their fit, each fitted when it is asked for."""
    X, y = rows.X[rows.parts == 0], rows.y[rows.parts == 0]
    more = {} if rows.groups is None else {"groups": rows.groups[rows.parts == 0]}
    rounds = 5 if given.quick else 20
    makers: list[tuple[str, Callable[[], Map]]] = [("nothing", lambda: lambda A: A)]
    for method in candidates(None, "classes", X.shape[1]):
        makers.append((method.name, lambda m=method: m.eraser.fit(X, y, **more).transform))
    free = ex.LEACE(predictor="random_features")
    makers.append(("LEACE, random features", lambda: free.fit(X, y, **more).transform))
    new = rows.X[rows.parts > 0]
    for moves in (0, 2, 5):  # the rows that will be published are at hand, without their labels
        fold = ex.FoldEraser(rounds=moves)
        makers.append(
            (
                f"FoldEraser(rounds={moves}), new rows unlabelled",
                lambda fold=fold: fold.fit(X, y, unlabelled=new, **more).transform,
            )
        )
    makers.append((f"MLP boundary, {rounds} rounds", lambda: to_boundary(X, y, rounds)))
    wanted = [part.lower() for part in given.erasers.split(",") if part]
    for name, make in makers:
        if not wanted or any(part in name.lower() for part in wanted):
            start = time.perf_counter()
            clean = make()
            yield name, clean, time.perf_counter() - start


def task_accuracy(rows: Rows, clean: Map) -> float:
    assert rows.task is not None
    fit, test = rows.parts == 0, rows.parts == 2
    A, B = clean(rows.X[fit]), clean(rows.X[test])
    center, unit = A.mean(axis=0), float(A.std())
    machine = LogisticRegression(C=1.0, max_iter=2000).fit((A - center) / unit, rows.task[fit])
    return float(machine.score((B - center) / unit, rows.task[test]))


def judged(rows: Rows, clean: Map, given: argparse.Namespace) -> str:
    learn, test = rows.parts == 1, rows.parts == 2
    new, both = rows.X[learn | test], clean(rows.X[learn | test])
    groups = None if rows.groups is None else (rows.groups[learn], rows.groups[test])
    found = strongest_probe(
        clean(rows.X[learn]),
        rows.y[learn],
        clean(rows.X[test]),
        rows.y[test],
        probes="default" if given.quick else "thorough",
        groups=groups,
        sizes=ex.audit.Sizes(nonlinear_train=1000, nonlinear_test=1000) if given.quick else None,
    )
    change = relative_change(check_rows(new), check_rows(both))
    kept = neighbour_overlap(new, both, 10)
    task = "" if rows.task is None else f"{task_accuracy(rows, clean):8.3f}"
    beside = "".join(f"{measure(clean):9.3f}" for measure in rows.columns.values())
    return (
        f"{found.value:7.3f} [{found.low:.3f}, {found.high:.3f}]{change:9.3f}{kept:7.2f}"
        f"{task:>8}{beside}   {found.name}"
    )


def speed() -> None:
    """Fit against one product X.T @ X, transform against that of LEACE."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200_000)
    X = rng.normal(size=(200_000, 768)).astype(np.float32)
    X[:, :20] *= np.where(y == 1, 5.0, 1.0)[:, None]  # covariances that differ in 20 directions
    X[:, 0] += 6 * y

    def best(call: Callable[[], Any], times: int) -> float:
        found = []
        for _ in range(times):
            start = time.perf_counter()
            call()
            found.append(time.perf_counter() - start)
        return min(found)

    product = best(lambda: X.T @ X, 3)
    leace, fold = ex.LEACE().fit(X, y), ex.FoldEraser(shrinkage=0.1, directions=20)
    fitting = best(lambda: fold.fit(X, y), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ex.NothingToFold)
        choosing = best(lambda: ex.FoldEraser().fit(X, y), 1)
    out = np.empty_like(X)
    plain = best(lambda: leace.transform(X, out=out), 5)
    folding = best(lambda: fold.transform(X, out=out), 3)
    print(f"choosing / X.T @ X         {choosing / product:6.1f}   (at most 25)")
    print(f"fit / X.T @ X              {fitting / product:6.1f}   (at most 25)")
    print(f"transform / that of LEACE  {folding / plain:6.1f}   (at most 6), {fold}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("dbpedia", "biasbios", "adult", "wordsim", "only", "erasers"):
        parser.add_argument(f"--{name}", default="")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--speed", action="store_true")
    given = parser.parse_args()
    print(machine())
    if given.speed:
        speed()
        return
    warnings.simplefilter("ignore", ex.NotConverged)
    warnings.simplefilter("always", ex.OnlyLinear)
    for name, rows in data_sets(given):
        sizes = ", ".join(f"{n:,}" for n in np.bincount(rows.parts))
        print(f"\n{name}: {sizes} rows to fit, to probe, to test; {rows.X.shape[1]:,} columns")
        beside = "".join(f"{title:>9}" for title in rows.columns)
        print(
            f"{'':30}{'strongest probe':^23}{'change':>9}{'nbr':>7}"
            f"{'' if rows.task is None else 'task':>8}{beside}   which       (seconds: fit, judge)"
        )
        for eraser, clean, seconds in maps(rows, given):
            start = time.perf_counter()
            line = judged(rows, clean, given)
            took = time.perf_counter() - start
            print(f"{eraser:30}{line}   ({seconds:.1f}, {took:.0f})", flush=True)


if __name__ == "__main__":
    main()
