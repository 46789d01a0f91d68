"""Tensors against arrays: transform, fit, and a folded layer against a plain one.

100,000 x 768 and, for the overhead of a call, 32 x 768. Every figure is a ratio of two timings of
this one run, taken in turns.
"""

from __future__ import annotations

import numpy as np
import torch
from common import ratio_of, show

import expunge as ex
from expunge.integrations.torch import fold_into

N, D, FEW = 100_000, 768, 32


def main() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D), dtype=np.float32)
    y = rng.integers(0, 2, N)
    X += 0.3 * y[:, None].astype(np.float32)
    for rank in (1, 8):
        Q = np.linalg.qr(rng.normal(size=(D, rank)))[0]
        transforms(ex.Erasure(Q, Q.T, center=X.mean(axis=0)), X)
    fits(X, y)
    folding(ex.RLACE().fit(X, y).erasure_)


def transforms(erasure: ex.Erasure, X: np.ndarray) -> None:
    for dtype in (torch.float32, torch.float64, torch.float16):
        name = str(dtype).removeprefix("torch.")
        x = torch.from_numpy(X[: N // 2 if dtype == torch.float64 else N]).to(dtype)
        array, few, few_array = x.numpy(), x[:FEW], x[:FEW].numpy()
        many = ratio_of(lambda x=x: erasure(x), lambda a=array: erasure(a))
        show(f"transform at rank {erasure.rank}: {name} tensor / array, {len(x):,} rows", many, 1.3)
        out, out_array = torch.from_numpy(np.empty_like(array)), np.empty_like(array)
        into = ratio_of(
            lambda x=x, out=out: erasure.transform(x, out=out),
            lambda a=array, out=out_array: erasure.transform(a, out=out),
        )
        show("    the same with out=, both in memory from NumPy", into, 1.3)
        call = ratio_of(lambda x=few: erasure(x), lambda a=few_array: erasure(a), 500)
        show(f"    the same on {FEW} rows", call, 1.3)
    half = torch.from_numpy(X).to(torch.bfloat16)
    many = ratio_of(lambda: erasure(half), lambda: erasure(X))
    show(f"transform at rank {erasure.rank}: bfloat16 tensor / float32 array", many, 1.5)
    call = ratio_of(lambda: erasure(half[:FEW]), lambda: erasure(X[:FEW]), 500)
    show(f"    the same on {FEW} rows", call, 1.3)


def fits(X: np.ndarray, y: np.ndarray) -> None:
    for make in (ex.RLACE, ex.LEACE):
        name = make.__name__
        for dtype, limit in ((torch.float32, 1.3), (torch.bfloat16, 3.0)):
            x, labels = torch.from_numpy(X).to(dtype), torch.from_numpy(y)
            ratio = ratio_of(
                lambda make=make, x=x, z=labels: make().fit(x, z),
                lambda make=make: make().fit(X, y),
                5,
            )
            kind = str(dtype).removeprefix("torch.")
            show(f"{name}().fit: {kind} tensor / float32 array", ratio, limit)


@torch.inference_mode()
def folding(erasure: ex.Erasure) -> None:
    linear, x = torch.nn.Linear(D, D), torch.randn(1024, D)
    folded = fold_into(erasure, linear)
    show("folded Linear / plain Linear", ratio_of(lambda: folded(x), lambda: linear(x), 200), 1.1)


if __name__ == "__main__":
    main()
