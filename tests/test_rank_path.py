"""The path over ranks: consistent with single fits, monotone, plotted."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

import expunge as ex
from planted import plant


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X / X.std(), y.astype(str), test_size=0.35, random_state=0)


@pytest.fixture(scope="module")
def path(digits):
    A, B, a, b = digits
    return ex.rank_path(A, a, ranks=[2, 4, 9, 12], X_test=B, y_test=b)


def test_loss_rises_to_the_bound_and_accuracy_falls_to_the_majority(path):
    assert [p.rank for p in path.points] == [0, 2, 4, 9, 12]
    losses = [p.loss for p in path.points]
    assert losses == sorted(losses)
    assert path.points[0].accuracy > 0.99
    assert path.points[0].test_accuracy > 0.9
    for exact in path.points[3:]:
        assert exact.solver == "closed_form"
        assert exact.loss == pytest.approx(path.bound)
        assert exact.accuracy == pytest.approx(path.majority)
    kept = [p.variance_kept for p in path.points]
    assert kept == sorted(kept, reverse=True)
    assert kept[0] == 1


def test_each_rank_is_as_good_as_a_fit_of_its_own(path, digits):
    A, _, a, _ = digits
    alone = ex.RLACE(4).fit(A, a)
    assert path.erasures[2].rank == 4
    assert path.points[2].loss > 0.95 * alone.history_[-1].value


def test_accuracy_is_that_of_an_independent_probe(path, digits):
    A, B, a, b = digits
    erasure = path.erasures[1]
    probe = LogisticRegression(C=1e4, max_iter=3000).fit(erasure(A), a)
    assert path.points[1].accuracy == pytest.approx(probe.score(erasure(A), a), abs=0.03)
    assert path.points[1].test_accuracy == pytest.approx(probe.score(erasure(B), b), abs=0.05)
    assert np.var(erasure(A), axis=0).sum() / np.var(A, axis=0).sum() == pytest.approx(
        path.points[1].variance_kept
    )


def test_table_dictionary_and_picture(path, tmp_path):
    pytest.importorskip("matplotlib")
    assert len(str(path).splitlines()) == 7
    assert path.to_dict()["points"][1]["rank"] == 2
    axes = path.plot()
    assert axes.get_xlabel() == "erased directions K"
    axes.figure.savefig(tmp_path / "path.png")
    assert (tmp_path / "path.png").stat().st_size > 5000


def test_numbers_as_concept_and_bad_input():
    data = plant("vector")
    path = ex.rank_path(data.X, data.y, ranks=[1, 2], loss="squared")
    assert path.points[0].loss < path.points[1].loss < path.points[2].loss
    assert path.points[2].loss == pytest.approx(path.bound)
    with pytest.raises(ex.InputError, match="belong together"):
        ex.rank_path(data.X, data.y, ranks=[1], loss="squared", X_test=data.X)
    with pytest.raises(ex.InputError, match="X_test has 3 features"):
        ex.rank_path(data.X, data.y, ranks=[1], loss="squared", X_test=data.X[:, :3], y_test=data.y)
    binary = plant("binary")
    with pytest.raises(ex.InputError, match="classes that y does not have"):
        ex.rank_path(binary.X, binary.y, ranks=[1], X_test=binary.X, y_test=binary.y + 5)
