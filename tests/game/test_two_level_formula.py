"""The preconditioner of two levels where curvature does depend on x: its formula, written out."""

import numpy as np
import pytest

from expunge.game import two_level as module
from expunge.game.losses import loss_for
from expunge.game.two_level import Sample, coarse_hessian, two_level_inverse

D_, M_, ALPHA = 9, 3, 0.05


def setting(erased):
    rng = np.random.default_rng(1)
    A = rng.standard_normal((D_, D_))
    U = np.linalg.qr(rng.standard_normal((D_, erased)))[0] if erased else np.zeros((D_, 0))
    C = rng.standard_normal((M_, M_))
    return rng, A @ A.T / D_, U, C @ C.T + np.eye(M_)


@pytest.mark.parametrize("erased", [0, 2])
def test_the_coarse_space_has_its_own_hessian_and_the_rest_the_product(erased):
    rng, S, U, C = setting(erased)
    B = rng.standard_normal((D_, 3))
    if erased:
        B = np.hstack(
            [B, U[:, :1], 1e-9 * rng.standard_normal((D_, 1))]
        )  # nothing of these is left
    seen = []
    q = 3
    R = rng.standard_normal((M_ * (q + 1),) * 2)
    H = R @ R.T + np.eye(len(R))

    def hessian(D):
        seen.append(D)
        return H.copy()

    solve = two_level_inverse(*np.linalg.eigh(S), C, ALPHA, U, B, hessian)
    M = np.eye(D_) - U @ U.T
    keep = np.linalg.svd(M)[0][:, : D_ - erased]  # a basis of what is left
    lam = np.trace(C) / M_
    own = keep @ np.linalg.solve(keep.T @ (lam * S + ALPHA * np.eye(D_)) @ keep, keep.T @ B[:, :3])
    (D,) = seen
    np.testing.assert_allclose(D.T @ D, np.eye(q), atol=1e-12)
    np.testing.assert_allclose(D @ (D.T @ own), own, atol=1e-9)  # the same span
    N = np.linalg.svd(
        np.eye(D_) - np.linalg.pinv(np.hstack([U, M @ B[:, :3]]).T) @ np.hstack([U, M @ B[:, :3]]).T
    )[0][:, : D_ - erased - q]
    fine = np.kron(C, N.T @ S @ N) + ALPHA * np.eye(M_ * N.shape[1])
    ridge = np.tile([ALPHA] * q + [1e-6 * np.diag(H).max()], M_)
    coarse = np.linalg.inv(H + np.diag(ridge))
    G = rng.standard_normal((D_ + 1, M_))
    Z = np.kron(np.eye(M_), N)
    expected = (Z @ np.linalg.solve(fine, Z.T @ G[:-1].T.ravel())).reshape(M_, D_).T
    down = np.zeros((D_ + 1, q + 1))
    down[:-1, :-1], down[-1, -1] = D, 1
    step = (coarse @ (down.T @ G).T.ravel()).reshape(M_, q + 1).T
    expected = down @ step + np.vstack([expected, np.zeros((1, M_))])
    np.testing.assert_allclose(solve(G), expected, atol=1e-8)


@pytest.mark.parametrize("name", ["cross_entropy", "squared"])
@pytest.mark.parametrize("block", [512, 7])
def test_a_coarse_hessian_block_by_block(monkeypatch, name, block):
    monkeypatch.setattr(module, "BLOCK", block)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, D_)), rng.integers(0, M_, 40)
    w, Y = rng.uniform(0.5, 2, 40), np.eye(M_)[y]
    loss = loss_for(name, "classes", M_)
    Y = loss.encode(Y, "classes")
    theta, b, D = (
        rng.standard_normal((D_, M_)),
        rng.standard_normal(M_),
        rng.standard_normal((D_, 2)),
    )
    found = coarse_hessian(Sample(X.astype(np.float32), Y, w), loss, theta, b, D)
    own, crossed = loss.hessian(Y, X @ theta + b)
    H = np.einsum("nk,kl->nkl", own, np.eye(M_))
    if crossed is not None:
        H = H - np.einsum("nk,nl->nkl", crossed, crossed)
    Z = np.hstack([X @ D, np.ones((40, 1))])
    expected = np.einsum("n,nkl,ni,nj->kilj", w / w.sum(), H, Z, Z).reshape(3 * M_, 3 * M_)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
