"""A certificate proves; it must refuse whatever is not proven."""

import numpy as np
import pytest
from test_closed_form import best_loss, encoded

import expunge as ex
from expunge.game.certificate import certify, certify_moments
from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows
from expunge.rows.dense import DenseRows
from planted import plant


def identity(d):
    return ex.Erasure(np.zeros((d, 0)), np.zeros((0, d)))


def certificate(X, y, erasure, loss="cross_entropy", **options):
    rows = check_rows(X)
    concept = check_concept(y, rows.n_samples)
    return certify(rows, concept, erasure, loss_for(loss, concept.kind, concept.width), **options)


def test_an_exact_erasure_is_certified_and_says_so():
    data = plant("binary")
    found = certificate(data.X, data.y, ex.RLACE().fit(data.X, data.y).erasure_)
    assert found.erased
    assert found.gap <= 1e-8 * found.bound
    assert found.bits_left == pytest.approx(found.gap / np.log(2))
    assert str(found).startswith("erased: every linear predictor has cross_entropy loss >=")
    assert found.to_dict()["ridge"] == found.ridge


@pytest.mark.parametrize("passes", [1, 2, 4])
def test_a_half_converged_predictor_proves_nothing(passes):
    data = plant("binary")
    found = certificate(data.X, data.y, identity(8), max_passes=passes)
    assert not found.erased
    assert found.value <= certificate(data.X, data.y, identity(8)).primal + 1e-9


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_scaling_the_rows_changes_nothing(scale):
    data = plant("binary")
    found = certificate(data.X * scale, data.y, identity(8))
    assert not found.erased
    plain = certificate(data.X, data.y, identity(8))
    assert found.value == pytest.approx(plain.value, rel=1e-6)
    assert found.ridge == pytest.approx(plain.ridge * scale**2)
    erased = certificate(data.X * scale, data.y, ex.RLACE().fit(data.X, data.y).erasure_)
    assert erased.erased


def test_an_erasure_rotated_by_one_degree_is_rejected():
    data = plant("binary")
    u = ex.RLACE().fit(data.X, data.y).erasure_.basis[0]
    v = np.linalg.qr(np.column_stack([u, np.eye(8)]))[0][:, 1]
    turned = np.cos(np.radians(1)) * u + np.sin(np.radians(1)) * v
    found = certificate(data.X, data.y, ex.Erasure(turned[:, None], turned[None]))
    assert not found.erased
    assert found.gap > 1e-4


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", ["cross_entropy", "squared", "squared_hinge", "hinge"])
def test_the_value_brackets_the_true_loss(loss, intercept):
    data = plant("binary")
    erasure = ex.RayleighEraser(1, objective="pca").fit(data.X).erasure_
    found = certificate(data.X, data.y, erasure, loss, fit_intercept=intercept, alpha=1e-2)
    exact, Y = encoded("binary", loss, data.Z)
    # an independent solver on rows erased by hand, with the same ridge for each column
    truth = best_loss(exact, erasure(data.X) / np.sqrt(found.ridges), Y, intercept, ridge=1.0)
    assert found.value <= truth + 1e-7
    assert found.primal >= truth - 1e-7
    assert found.primal - found.value < (0.01 if loss == "hinge" else 1e-6) * found.bound
    assert truth < 0.9 * found.bound


def test_moments_alone_give_a_valid_if_loose_bound():
    data = plant("classes")
    rows, concept = check_rows(data.X), check_concept(data.y, len(data.X))
    loss = loss_for("cross_entropy", "classes", 4)
    partly = ex.RayleighEraser(1, objective="pls").fit(data.X, data.y).erasure_
    quick = certify_moments(rows.moments(concept, second=False), partly, loss)
    full = certify(rows, concept, partly, loss)
    assert not quick.erased
    assert quick.value <= full.primal
    assert full.value > quick.value


def test_weights_count():
    data = plant("binary")
    w = np.where(data.y == 1, 3.0, 1.0)
    eraser = ex.RLACE().fit(data.X, data.y, sample_weight=w)
    assert eraser.certificate_.erased
    repeated = np.repeat(np.arange(len(w)), w.astype(int))
    again = ex.RLACE().fit(data.X[repeated], data.y[repeated])
    assert eraser.certificate_.bound == pytest.approx(again.certificate_.bound)
    np.testing.assert_allclose(eraser.erasure_.matrix(), again.erasure_.matrix(), atol=1e-12)


def test_no_tolerance_at_all_does_not_mean_endless_passes():
    class Counted(DenseRows):
        passes = 0

        def glm_pass(self, *args, **options):
            Counted.passes += 1
            return super().glm_pass(*args, **options)

    data = plant("binary")
    concept = check_concept(data.y, len(data.X))
    loss = loss_for("cross_entropy", concept.kind, concept.width)
    found = certify(Counted(data.X), concept, identity(8), loss, tol=0.0)
    exact = certificate(data.X, data.y, identity(8), tol=1e-9)
    assert not found.erased
    assert found.value == pytest.approx(exact.value, rel=1e-7)
    assert Counted.passes < 100
