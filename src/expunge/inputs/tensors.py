"""Torch tensors as a home of rows; imported only when a tensor was passed, so torch is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.rows.apply_tensor import apply_to_tensor
from expunge.rows.tensor import TensorRows

if TYPE_CHECKING:
    from expunge.erasure import Erasure

__all__ = ["apply", "array_of", "check", "rows_of"]

WIDE = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def check(X: torch.Tensor, name: str) -> None:
    """Refuse a tensor that is not strided or holds no real numbers.

    Parameters
    ----------
    X : tensor
    name : str
        What to call it in messages.
    """
    if X.layout != torch.strided or X.is_nested:
        raise InputError(
            f"Sparse input {name} is not supported: an erased row is dense",
            f"tensor of layout {X.layout}",
            f"Pass {name}.to_dense(), or cut it into rows",
        )
    if X.is_complex():
        raise InputError(
            f"Complex data not supported in {name}",
            f"type {X.dtype}",
            f"Pass {name}.real or its modulus",
        )
    if X.is_quantized or (X.is_floating_point() and X.dtype not in WIDE):
        raise InputError(
            f"Numbers of this type are not supported in {name}",
            f"type {X.dtype}",
            f"Pass {name}.dequantize() or {name}.float()",
        )


def rows_of(X: torch.Tensor) -> TensorRows:
    """A checked matrix as rows, on its device."""
    _refuse_meta(X)
    return TensorRows(X)


def array_of(X: torch.Tensor) -> NDArray[Any]:
    """A checked tensor as a NumPy array, without its gradient; bfloat16 becomes float32."""
    _refuse_meta(X)
    values = X.detach().cpu().resolve_neg()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()


def apply(erasure: Erasure, X: torch.Tensor, out: Any) -> torch.Tensor:
    """Erased vectors (..., d) of a checked tensor, with its gradient."""
    return apply_to_tensor(erasure, X, out, check=True)


def _refuse_meta(X: torch.Tensor) -> None:
    if X.is_meta:
        raise InputError(
            "A tensor without numbers cannot be read",
            f"a tensor of shape {tuple(X.shape)} on the device 'meta'",
            "Pass a tensor that has been filled",
        )
