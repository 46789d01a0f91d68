"""Rows in a torch tensor: n-sized work stays where the tensor lives, d-sized results are NumPy.

There are three ways to work on a tensor. On the CPU it shares its memory with an array, where NumPy
is quick with its type. Half types on the CPU, and devices without float64, are converted to arrays
block by block. On any other device products are formed there in float64, whatever precision torch
is set to, and only their results come over.

Imported only when a tensor is at hand, so torch is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from expunge.concept import Concept
from expunge.fingerprint import Fingerprint
from expunge.linalg import Array
from expunge.moments import Moments, check_range
from expunge.parallel import SPAN, blocks
from expunge.rows.apply_tensor import DEVICE_BLOCK, copy_serially, double
from expunge.rows.base import GlmPass
from expunge.rows.dense import DenseRows

if TYPE_CHECKING:
    from expunge.erasure import Erasure
    from expunge.game.losses import Loss

__all__ = ["CentredBlock", "ConvertedRows", "DeviceRows", "TensorRows", "TensorView"]

HALF = (torch.float16, torch.bfloat16)


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


@dataclass(frozen=True)
class CentredBlock:
    """A few rows measured from a center, or their transpose, as the left factor of products.

    A product is formed in float64 on the device and comes over. The centred rows exist only inside
    it and one product is formed at a time: the threads of a pass would fill the device's memory.
    """

    rows: torch.Tensor
    center: torch.Tensor | None
    turn: Lock
    transposed: bool = False

    @property
    def T(self) -> CentredBlock:
        """Its transpose, a view."""
        return replace(self, transposed=not self.transposed)

    @property
    def values(self) -> torch.Tensor:
        """The centred rows in float64."""
        C = self.rows.double()
        return C if self.center is None else C - self.center

    def __matmul__(self, B: Array) -> Array:
        with self.turn:
            C, right = self.values, torch.tensor(B, device=self.rows.device).double()
            return np.asarray(((C.T if self.transposed else C) @ right).cpu().numpy())


class ConvertedRows(DenseRows):
    """Rows of a tensor that NumPy cannot read quickly: every block becomes an array on its way.

    Parameters
    ----------
    tensor : tensor of shape (n, d), detached
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor
        super().__init__(cast(NDArray[Any], TensorView(tensor)))

    def _views(self, start: int, stop: int) -> Iterator[tuple[int, int, NDArray[Any]]]:
        for lo, hi, X in super()._views(start, stop):
            yield lo, hi, np.asarray(X)

    def sample(self, size: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """`size` rows drawn with replacement, as float32 or float64, and their numbers."""
        index = rng.integers(0, self.n_samples, size)
        return np.asarray(self.X[index]), index


class DeviceRows(ConvertedRows):
    """Rows of a tensor on a device with float64: products are formed there.

    Parameters
    ----------
    tensor : tensor of shape (n, d), detached
    """

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor)
        self._turn = Lock()

    def moments(
        self, concept: Concept, weights: Array | None = None, *, second: bool = True
    ) -> Moments:
        """One pass: counts, means and centred second moments."""
        parts = (
            self._block_moments(lo, hi, concept, weights, second)
            for lo, hi in self._cuts(0, self.n_samples, concept.width)
        )
        total = reduce(Moments.merge, parts)
        check_range(total, self.X, weights)
        return total

    def glm_pass(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
        single: bool = False,
    ) -> GlmPass:
        """One pass of the model with scores ``(x - center) @ coef + intercept``, in float64."""
        return super().glm_pass(loss, coef, intercept, concept, weights, center=center)

    def glm_hessian(
        self,
        loss: Loss,
        coef: Array,
        intercept: Array,
        concept: Concept,
        weights: Array | None = None,
        *,
        center: Array | None = None,
    ) -> Array:
        """One pass: the second derivative in (coef, intercept), as of `DenseRows`."""
        encode = loss.encoder(concept)
        m, size = intercept.size, self.n_features + 1
        own, cross = self._zeros(m, size, size), self._zeros(m * size, m * size)
        coupled = False
        w = np.ones(self.n_samples) if weights is None else weights
        for lo, hi, C in self._blocks(0, self.n_samples, center):
            D, F = loss.hessian(encode(lo, hi), C @ coef + intercept)
            rows = cast(CentredBlock, C).values
            C1 = torch.cat([rows, torch.ones_like(rows[:, :1])], dim=1)
            for k, column in enumerate(self._here(w[lo:hi, None] * D).T):
                own[k] += (C1 * column[:, None]).T @ C1
            if F is not None:
                scaled = self._here(np.sqrt(w[lo:hi, None]) * F)
                Z = (scaled[:, :, None] * C1[:, None, :]).reshape(hi - lo, -1)
                cross += Z.T @ Z
                coupled = True
        if not coupled:
            return np.asarray(own.cpu().numpy() / w.sum())
        full = -cross.reshape(m, size, m, size)
        full.diagonal(dim1=0, dim2=2).add_(own.permute(1, 2, 0))  # the blocks of one class
        return np.asarray(full.cpu().numpy() / w.sum())

    def _block_moments(
        self, lo: int, hi: int, concept: Concept, weights: Array | None, second: bool
    ) -> Moments:
        """Moments of a few rows: the mean first, so that all sums are centred."""
        w = np.ones(hi - lo) if weights is None else weights[lo:hi]
        W = float(w.sum())
        share = w / (W if W > 0 else 1.0)  # rows that all have weight zero add nothing
        Z = concept.columns(lo, hi)
        mean_z = share @ Z
        Z = Z - mean_z
        C, on_device = self.tensor[lo:hi].double(), self._here(w[:, None])
        mean_x = self._here(share) @ C
        C = C - mean_x
        weighted = C * on_device
        return Moments(
            n=hi - lo,
            weight=W,
            mean_x=mean_x.cpu().numpy(),
            mean_z=mean_z,
            xz=(weighted.T @ self._here(Z)).cpu().numpy(),
            zz=Z.T @ (w[:, None] * Z),
            squares=(weighted * C).sum(0).cpu().numpy(),
            xx=(weighted.T @ C).cpu().numpy() if second else None,
            labels=concept.labels,
            kind=concept.kind,
            eps=float(np.finfo(self.dtype).eps),
        )

    def _blocks(
        self, start: int, stop: int, center: Array | None
    ) -> Iterator[tuple[int, int, Array]]:
        """Blocks of rows on the device, measured from the center."""
        shift = None if center is None else self._here(center)
        for lo, hi in self._cuts(start, stop):
            yield lo, hi, cast(Array, CentredBlock(self.tensor[lo:hi], shift, self._turn))

    def _cuts(self, start: int, stop: int, more: int = 0) -> Iterator[tuple[int, int]]:
        """Spans of rows that fit on the device with `more` columns beside them."""
        return blocks(start, stop, min(SPAN, max(1, DEVICE_BLOCK // (self.n_features + more))))

    def _here(self, values: Array) -> torch.Tensor:
        return torch.tensor(values, dtype=torch.float64, device=self.tensor.device)

    def _zeros(self, *shape: int) -> torch.Tensor:
        return torch.zeros(shape, dtype=torch.float64, device=self.tensor.device)


class TensorRows(DenseRows):
    """A checked tensor of shape (n, d) as rows; erased rows are a tensor too, with its gradient.

    Parameters
    ----------
    tensor : tensor of shape (n, d)
        Strided and real; may require a gradient, which only `transform` passes on.
    home : type of rows, optional
        How to work on it; found from its type and device by default.

    Examples
    --------
    >>> import torch
    >>> from expunge.rows.tensor import TensorRows
    >>> rows = TensorRows(torch.eye(3, dtype=torch.bfloat16))
    >>> type(rows.home).__name__, rows.dtype
    ('ConvertedRows', dtype('float32'))
    >>> rows.X
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]], dtype=float32)
    """

    def __init__(self, tensor: torch.Tensor, home: type[DenseRows] | None = None) -> None:
        self.tensor, values = tensor, tensor.detach().resolve_neg()
        kind = home or _home_of(values)
        self.home = kind(cast(Any, values.numpy() if kind is DenseRows else values))

    @cached_property
    def X(self) -> NDArray[Any]:  # type: ignore[override]
        """The rows as an array: shared memory where that is possible, else a copy."""
        return np.asarray(self.home.X)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.home.n_samples

    @property
    def n_features(self) -> int:
        """Width of a row."""
        return self.home.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of the numbers as an array holds them; float32 for half types on the way."""
        return self.home.dtype

    @property
    def shares_memory(self) -> bool:
        """Whether the tensor is seen as an array, without a copy."""
        return type(self.home) is DenseRows

    @property
    def is_finite(self) -> bool:
        """Whether there is neither NaN nor infinity; one pass on the device."""
        if not self.tensor.is_floating_point() or not self.tensor.numel():
            return True
        low, high = torch.aminmax(self.tensor.detach())  # NaN comes through
        return bool(torch.isfinite(low) & torch.isfinite(high))

    def moments(
        self, concept: Concept, weights: Array | None = None, *, second: bool = True
    ) -> Moments:
        """One pass: counts, means and centred second moments."""
        return self.home.moments(concept, weights, second=second)

    def glm_pass(self, *args: Any, **options: Any) -> GlmPass:
        """One pass of a linear model; see `Rows`."""
        return self.home.glm_pass(*args, **options)

    def glm_hessian(self, *args: Any, **options: Any) -> Array:
        """One pass: the second derivative of a linear model; see `Rows`."""
        return self.home.glm_hessian(*args, **options)

    def sample(self, size: int, rng: np.random.Generator) -> tuple[NDArray[Any], NDArray[np.intp]]:
        """`size` rows drawn with replacement, as float32 or float64 arrays, and their numbers."""
        return self.home.sample(size, rng)

    def take(self, index: NDArray[np.intp]) -> TensorRows:
        """The rows with these numbers, on the same device."""
        at = torch.tensor(index, device=self.tensor.device)
        return TensorRows(self.tensor.detach()[at], type(self.home))

    def transform(self, erasure: Erasure, out: Any = None) -> Any:
        """One pass: the rows after an erasure, as a tensor."""
        return erasure.transform(self.tensor, out=out)

    def fingerprint(self) -> Fingerprint:
        """A sketch that recognises these rows again; only the few columns it reads come over."""
        return Fingerprint.of(self.home.X)


def _home_of(values: torch.Tensor) -> type[DenseRows]:
    if values.device.type != "cpu":
        return DeviceRows if double(values.device) == torch.float64 else ConvertedRows
    return ConvertedRows if values.dtype in HALF else DenseRows
