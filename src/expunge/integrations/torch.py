"""Erasures inside torch models: a layer of low rank, and folding into a neighbouring Linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
import torch
from torch import nn

from expunge.erasure import Erasure
from expunge.errors import InputError
from expunge.inputs import check_choice, check_width
from expunge.inputs.matrices import as_numpy
from expunge.linalg import Array
from expunge.maps import as_erasure, as_row_map
from expunge.nonlinear_erasure import NonlinearErasure
from expunge.rows.apply_tensor import affine, double
from expunge.rows.nonlinear_tensor import nonlinear, nonlinear_factors

__all__ = ["ErasureLayer", "fold_into"]

Side = Literal["input", "output"]


class ErasureLayer(nn.Module):
    """An erasure as a module: ``x - ((x - center) @ right.T) @ left.T + offset``.

    The factors are buffers: they follow the module to a device and are in its state dict. They
    are never rounded: ``model.half()`` and ``model.float()`` leave them as they are, and inputs of
    any type are erased in that of the factors and rounded once, at the end. Only on a device
    without float64 they become float32. `torch.compile` and `torch.export` take it whole.

    Parameters
    ----------
    erasure : Erasure, NonlinearErasure or fitted eraser
    device : torch.device or str, optional
    dtype : torch.float64 or torch.float32
        Of the factors, by default the widest the device has. With float32 part of the concept may
        come back where columns differ much in spread.

    Examples
    --------
    >>> import torch
    >>> import expunge as ex
    >>> layer = ex.integrations.torch.ErasureLayer(ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]]))
    >>> layer(torch.tensor([[3.0, 4.0]], dtype=torch.bfloat16))
    tensor([[0., 4.]], dtype=torch.bfloat16)
    >>> layer
    ErasureLayer(n_features=2, rank=1)
    """

    left: torch.Tensor
    right: torch.Tensor
    center: torch.Tensor | None
    offset: torch.Tensor | None

    def __init__(
        self,
        erasure: Any,
        *,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        device = torch.get_default_device() if device is None else torch.device(device)
        dtype = double(device) if dtype is None else dtype
        if dtype not in (torch.float32, torch.float64):
            raise InputError(
                "The factors of an erasure are float32 or float64",
                f"dtype={dtype}",
                "Leave dtype away; half inputs are taken all the same",
            )
        found = as_row_map(erasure)
        self.n_features, self.rank = found.n_features, found.rank
        self.kind, self.noun, self.strength = "", "", 1.0
        if isinstance(found, NonlinearErasure):
            self.kind, self.noun, self.strength = found.file_kind, found.noun, found.strength
            for name, part in nonlinear_factors(found, device, keep=False).items():
                self.register_buffer(name, part.to(dtype))
            self.parts = tuple(self._buffers)
            return
        for name in ("left", "right", "center", "offset"):
            values = getattr(found, name)
            factor = None if values is None else torch.tensor(values, dtype=dtype, device=device)
            self.register_buffer(name, factor)

    @property
    def erasure(self) -> Erasure:
        """The erasure of these factors.

        Raises
        ------
        InputError
            Where the layer is not linear.
        """
        if self.kind:
            raise InputError(
                f"{self.noun[0].upper()}{self.noun[1:]} is not linear, so no matrix does what it "
                "does",
                f"{self}",
                "Leave the layer where it is, or take LEACE()",
            )
        return Erasure(self.left, self.right, self.center, self.offset)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Erased rows.

        Parameters
        ----------
        x : tensor of shape (..., d)
            Of a floating type.

        Returns
        -------
        tensor of the shape and type of x
        """
        check_width(
            x.shape[-1],
            self.n_features,
            "x has",
            received=f"shape {tuple(x.shape)}",
            remedy="Put the layer where rows have the width it was fitted on",
        )
        if self.kind:
            parts = {name: getattr(self, name) for name in self.parts}
            return nonlinear(x, self.kind, parts, self.strength)
        return affine(x, self.left, self.right, self.center, self.offset)

    def fold_into(
        self, linear: nn.Linear, *, side: Side = "input", add_bias: bool = False
    ) -> nn.Linear:
        """The Linear that does this erasure too; see `fold_into`.

        Parameters
        ----------
        linear : torch.nn.Linear
        side : {"input", "output"}
        add_bias : bool

        Returns
        -------
        torch.nn.Linear
        """
        return fold_into(self.erasure, linear, side=side, add_bias=add_bias)

    def extra_repr(self) -> str:
        """What stands between the parentheses when it is printed."""
        return f"n_features={self.n_features}, rank={self.rank}"

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        """Move or cast: a factor that would be rounded is moved only."""
        before = dict(self._buffers)

        def moved(factor: torch.Tensor) -> torch.Tensor:
            try:
                return fn(factor)
            except TypeError:  # the device has no float64
                return fn(factor.float())

        super()._apply(moved, recurse)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            new = self._buffers[name]
            if old is not None and new is not None and new.dtype.itemsize < old.dtype.itemsize:
                kept = min(old.dtype, double(new.device), key=lambda dtype: dtype.itemsize)
                self._buffers[name] = old.to(new.device, kept)
        return self


def fold_into(
    erasure: Erasure, linear: nn.Linear, *, side: Side = "input", add_bias: bool = False
) -> nn.Linear:
    """A Linear that erases too, at no cost when it runs.

    With the erasure ``x -> Mx + t`` and the layer ``x -> Wx + b`` these are

        side "input":   W(Mx + t) + b = (WM) x + (Wt + b)       erase, then the layer
        side "output":  M(Wx + b) + t = (MW) x + (Mb + t)       the layer, then erase

    The new weights are formed in float64 and rounded once to the type of the old ones. With half
    precision weights this rounding is that of the weights, not of the rows: what was erased comes
    back at about their precision. Where that matters, keep the layer in float32.

    Parameters
    ----------
    erasure : Erasure or fitted eraser
        Of the width of that side.
    linear : torch.nn.Linear
        Left as it is. Its hooks are not carried over.
    side : {"input", "output"}
        Where the erasure stands.
    add_bias : bool
        Whether a layer without a bias may get one. A model that is built without that bias, such as
        a LLaMA whose configuration says ``attention_bias=False``, drops it when it is loaded again,
        and the concept comes back: there, take `expunge.integrations.transformers.bake`.

    Returns
    -------
    torch.nn.Linear
        New, on the same device and of the same type.

    Raises
    ------
    InputError
        When a bias is needed and there is none; an erasure without center and offset needs none.

    Examples
    --------
    >>> import torch
    >>> import expunge as ex
    >>> from expunge.integrations.torch import fold_into
    >>> erasure, linear = ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]]), torch.nn.Linear(2, 3)
    >>> folded, x = fold_into(erasure, linear), torch.randn(5, 2)
    >>> torch.allclose(folded(x), linear(erasure(x)), atol=1e-6)
    True
    """
    check_choice(side, ("input", "output"), "side")
    erasure = as_erasure(erasure)
    width = _width(linear, side)
    if width != erasure.n_features:
        raise InputError(
            f"The erasure has {erasure.n_features} features, but the {side} of this layer has "
            f"{width}",
            f"{linear}",
            "Fold into the layer next to where the rows were taken, on its right side",
        )
    W, b = _double(linear.weight), _double(linear.bias)
    L, R = erasure.left, erasure.right
    t = _constant(erasure)
    if side == "input":
        bias = _sum(None if t is None else W @ t, b)
        W = W - (W @ L) @ R
    else:
        bias = _sum(None if b is None else b - L @ (R @ b), t)
        W = W - L @ (R @ W)
    if b is None and bias is not None and not add_bias:
        raise InputError(
            "The folded layer needs a bias, which a saved model may not keep",
            f"{linear}, and an erasure with a center or an offset",
            "Pass add_bias=True if what loads the weights has a place for it; for a Hugging Face "
            "model there is expunge.integrations.transformers.bake",
        )
    return _linear(W, bias, linear)


def _width(linear: Any, side: Side) -> int:
    if not isinstance(linear, nn.Linear) or not linear.weight.is_floating_point():
        raise InputError(
            "An erasure folds into a torch.nn.Linear with floating weights only",
            type(linear).__name__,
            "Use ErasureLayer beside other layers",
        )
    return int(linear.in_features if side == "input" else linear.out_features)


def _double(parameter: torch.Tensor | None) -> Any:
    if parameter is None:
        return None
    return np.asarray(as_numpy(parameter), dtype=np.float64)


def _constant(erasure: Erasure) -> Array | None:
    """The constant t in x -> Mx + t, or None for zero: LRc + o."""
    moved = None if erasure.center is None else erasure.left @ (erasure.right @ erasure.center)
    return _sum(moved, erasure.offset)


def _sum(a: Array | None, b: Array | None) -> Array | None:
    if a is None or b is None:
        return b if a is None else a
    return a + b


def _linear(W: Array, bias: Array | None, like: nn.Linear) -> nn.Linear:
    """A Linear of these numbers on the device and of the type of another."""
    weight = like.weight
    made: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear,
        W.shape[1],
        W.shape[0],
        bias=bias is not None,
        device=weight.device,
        dtype=weight.dtype,
    )
    with torch.no_grad():
        made.weight.copy_(torch.tensor(W))
        if bias is not None:
            made.bias.copy_(torch.tensor(bias))
    made.requires_grad_(weight.requires_grad)
    return made.train(like.training)
