"""Rows in a torch tensor: n-sized work stays where the tensor lives, d-sized results are NumPy.

There are three ways to work on a tensor. On the CPU it shares its memory with an array, where NumPy
is quick with its type. Half types on the CPU, and devices without float64, are converted to arrays
block by block. On any other device products are formed there in float64, whatever precision torch
is set to, and only their results come over.

Imported only when a tensor is at hand, so torch is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from expunge.blockmath import NUMPY, BlockMath
from expunge.concept import Concept
from expunge.errors import InputError
from expunge.linalg import Array
from expunge.parallel import SPAN, blocks
from expunge.rows.apply_tensor import (
    DEVICE_BLOCK,
    apply_conditional_to_tensor,
    apply_to_tensor,
    copy_serially,
    double,
)
from expunge.rows.base import Rows

if TYPE_CHECKING:
    from expunge.maps import Map

__all__ = ["DeviceMath", "TensorRows", "TensorView", "Way"]

HALF = (torch.float16, torch.bfloat16)

Way = Literal["shared", "converted", "device"]


class TensorView:
    """A matrix of torch as NumPy code sees it: slices are views, values come over when looked at.

    Parameters
    ----------
    tensor : tensor of shape (n, d), detached

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from expunge.rows.tensor import TensorView
    >>> view = TensorView(torch.eye(3, dtype=torch.bfloat16))
    >>> np.asarray(view[1:, :2])
    array([[0., 1.],
           [0., 0.]], dtype=float32)
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    @property
    def shape(self) -> tuple[int, ...]:
        """As in NumPy."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the array it becomes: float32 for half types, float64 for integers."""
        single = self.tensor.dtype in (*HALF, torch.float32)
        return np.dtype(np.float32 if single else np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> TensorView:
        if isinstance(key, np.ndarray):
            key = torch.tensor(key, device=self.tensor.device)
        return TensorView(self.tensor[key])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        values = here = self.tensor.cpu()
        if here.dtype in HALF:
            values = torch.empty(here.shape, dtype=torch.float32)
            copy_serially(here, values)
        return np.array(values.numpy(), dtype=dtype or self.dtype, copy=copy or None)


class DeviceMath(BlockMath):
    """torch: blocks are tensors on a device, products are formed there in float64.

    Blocks are worked on one after the other: several at a time would fill the device's memory.

    Parameters
    ----------
    device : torch.device
    """

    serial = True

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def here(self, A: Array) -> torch.Tensor:
        """A copy of an array on the device."""
        return torch.tensor(A, dtype=torch.float64, device=self.device)

    def back(self, A: torch.Tensor) -> Array:
        """A result as an array."""
        return np.asarray(A.cpu().numpy())

    def arrays(self, X: torch.Tensor) -> NDArray[Any]:
        """Rows as an array; float32 for half types, float64 for integers."""
        return np.asarray(TensorView(X))

    def glance(self, X: torch.Tensor) -> TensorView:
        """Rows of which only what is looked at comes over."""
        return TensorView(X)

    def rows(self, X: torch.Tensor, index: NDArray[np.intp]) -> torch.Tensor:
        """Some rows, on the device."""
        return X[torch.tensor(index, device=self.device)]

    def with_ones(self, C: torch.Tensor) -> torch.Tensor:
        """A block with a column of ones behind it."""
        return torch.cat([C, torch.ones_like(C[:, :1])], dim=1)

    def at_once(self, n_features: int) -> int:
        """Rows whose products fit on the device."""
        return max(1, DEVICE_BLOCK // n_features)

    def room(self, n_rows: int, n_columns: int) -> None:
        """None: the device keeps its own."""

    def double(self, X: torch.Tensor, center: Array | None = None, room: Any = None) -> Any:
        """The block in float64, measured from the center."""
        C = X.double()
        return C if center is None else C - self.here(center)

    def squares(self, C: torch.Tensor, weights: Array, room: Any = None) -> Array:
        """Σ w c² of each column."""
        return self.back(self.here(weights) @ (C * C))

    def sums(self, D: Array, C: torch.Tensor) -> Array:
        """D C, formed on the device."""
        return self.back(self.here(D) @ C)

    def gram(self, X: Any, shift: Array | None, weights: Array | None, spread: float) -> Array:
        """Σ w (x - shift)(x - shift)ᵀ, in float64."""
        C = self.double(X, shift)
        left = C if weights is None else C * self.here(weights)[:, None]
        return self.back(left.T @ C)

    def eps(self, X: torch.Tensor) -> float:
        """That of the type: though products are float64, the numbers are no better."""
        return float(np.finfo(TensorView(X).dtype).eps)


class TensorRows(Rows):
    """A checked tensor of shape (n, d) as rows; erased rows are a tensor too, with its gradient.

    Parameters
    ----------
    tensor : tensor of shape (n, d)
        Strided and real; may require a gradient, which only `transform` passes on.
    way : {"shared", "converted", "device"}, optional
        How to work on it; found from its type and device by default.

    Examples
    --------
    >>> import torch
    >>> from expunge.rows.tensor import TensorRows
    >>> rows = TensorRows(torch.eye(3, dtype=torch.bfloat16))
    >>> rows.way, rows.dtype
    ('converted', dtype('float32'))
    >>> rows.array()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    in_memory = True
    local = True

    def __init__(self, tensor: torch.Tensor, way: Way | None = None) -> None:
        self.tensor, self.values = tensor, tensor.detach().resolve_neg()
        self.way: Way = way or _way_of(self.values)
        self.math = DeviceMath(self.values.device) if self.way == "device" else NUMPY

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return int(self.values.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers as an array holds them; float32 for half types on the way."""
        if self.way == "shared":
            return self._shared.dtype
        return TensorView(self.values).dtype

    @cached_property
    def _shared(self) -> NDArray[Any]:
        return np.asarray(self.values.numpy())

    @property
    def eps(self) -> float:
        """Distance from 1 to the next number of the type that erased rows have."""
        return float(torch.finfo(self._kept_type).eps)

    def rounded(self, A: Array) -> Array:
        """Numbers as the type of erased rows holds them, in float64."""
        return np.asarray(torch.from_numpy(A).to(self._kept_type).double().numpy())

    @property
    def _kept_type(self) -> torch.dtype:
        return self.values.dtype if self.values.is_floating_point() else torch.float64

    def check_finite(self, name: str = "X") -> None:
        """Refuse NaN and infinity; one pass on the device where there are none."""
        if not self.values.is_floating_point() or not self.values.numel():
            return
        low, high = torch.aminmax(self.values)  # NaN comes through
        if not bool(torch.isfinite(low) & torch.isfinite(high)):
            super().check_finite(name)

    def blocks(self) -> Iterator[tuple[int, Any]]:
        """The tensor as an array, as a view that is converted piece by piece, or in pieces."""
        if self.way == "shared":
            yield 0, self._shared
        elif self.way == "converted":
            yield 0, TensorView(self.values)
        else:
            size = max(SPAN, SPAN * (DEVICE_BLOCK // (SPAN * self.n_features)))
            for lo, hi in blocks(0, self.n_samples, size):
                yield lo, self.values[lo:hi]

    def take(self, index: NDArray[np.intp]) -> TensorRows:
        """The rows with these numbers, on the same device."""
        at = torch.tensor(index, device=self.values.device)
        return TensorRows(self.values[at], self.way)

    def array(self) -> NDArray[Any]:
        """The rows as an array: shared memory where that is possible, else a copy."""
        return self._shared if self.way == "shared" else np.asarray(TensorView(self.values))

    def transform(self, erasure: Map, out: Any = None, *, concept: Concept | None = None) -> Any:
        """One pass: the rows after an erasure, as a tensor."""
        if concept is not None and out is not None:
            raise InputError(
                "A map that is told the concept gives a new tensor",
                f"out={type(out).__name__}",
                "Leave out away",
            )
        if concept is not None:
            return apply_conditional_to_tensor(erasure, self.tensor, concept)  # type: ignore[arg-type]
        return apply_to_tensor(erasure, self.tensor, out, check=True)  # type: ignore[arg-type]


def _way_of(values: torch.Tensor) -> Way:
    if values.device.type != "cpu":
        return "device" if double(values.device) == torch.float64 else "converted"
    return "converted" if values.dtype in HALF else "shared"
