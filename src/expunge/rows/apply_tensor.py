"""An erasure applied to a torch tensor: on its device, in its type, with gradients.

Imported only when a tensor is at hand, so torch is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch.autograd import forward_ad

from expunge.errors import InputError
from expunge.parallel import blocks, map_spans
from expunge.rows.apply import (
    SPAN_BLOCKS,
    apply_to_array,
    block_map,
    overlaps_itself,
    rows_of_a_block,
)
from expunge.rows.finite import Watch, refuse_infinite

if TYPE_CHECKING:
    from expunge.concept import Concept
    from expunge.conditional import ConditionalErasure
    from expunge.erasure import Erasure
    from expunge.nonlinear_erasure import NonlinearErasure

__all__ = [
    "affine",
    "apply_conditional_to_tensor",
    "apply_to_tensor",
    "copy_serially",
    "double",
    "under_autocast",
]

SMALL = 1 << 17  # numbers below which one expression beats a pass by blocks
DEVICE_BLOCK = 1 << 22  # numbers handled at once on a device
SERIAL = 1 << 15  # numbers from which torch starts threads
ORDINARY = (torch.Tensor, torch.nn.Parameter)  # other classes may be shadows inside a trace
SEEN_BY_NUMPY = {torch.float64: np.float64, torch.float32: np.float32, torch.float16: np.float16}

Factors = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor | None]

# beside the erasures and not inside them: they stay frozen, and are pickled without it
_copies: WeakKeyDictionary[Erasure, dict[torch.device, Factors]]
_copies = WeakKeyDictionary()


def affine(
    x: torch.Tensor,
    left: torch.Tensor,
    right: torch.Tensor,
    center: torch.Tensor | None,
    offset: torch.Tensor | None,
) -> torch.Tensor:
    """``x - ((x - center) @ right.T) @ left.T + offset`` as one differentiable expression.

    Parameters
    ----------
    x : tensor of shape (..., d)
    left : tensor of shape (d, r)
    right : tensor of shape (r, d)
    center, offset : tensors of shape (d,) or None

    Returns
    -------
    tensor of the shape and type of x
        Computed in the type of the factors or, if that is wider, in that of x.

    Examples
    --------
    >>> import torch
    >>> from expunge.rows.apply_tensor import affine
    >>> x, u = torch.tensor([3.0, 4.0], dtype=torch.bfloat16), torch.tensor([[1.0], [0.0]])
    >>> affine(x, u, u.T, None, None)
    tensor([0., 4.], dtype=torch.bfloat16)
    """
    if under_autocast(x):
        with torch.autocast(x.device.type, enabled=False):
            return affine(x, left, right, center, offset)
    work = torch.promote_types(x.dtype, left.dtype)
    y, left, right = x.to(work), left.to(work), right.to(work)
    coordinates = (y if center is None else y - center) @ right.T
    y = y - coordinates @ left.T
    return (y if offset is None else y + offset).to(x.dtype)


def apply_to_tensor(
    erasure: Erasure | NonlinearErasure,
    X: torch.Tensor,
    out: torch.Tensor | None = None,
    *,
    check: bool = False,
) -> torch.Tensor:
    """Erased rows of a strided real tensor of the erasure's width.

    Where a gradient may be asked for, this is one expression of torch. Else it goes block by block,
    so that nothing but the result has the size of X.

    Parameters
    ----------
    erasure : Erasure or NonlinearErasure
    X : tensor of shape (..., d)
    out : tensor of the shape, type and device of the result, optional
        Where to write; may be `X` itself.
    check : bool
        Whether to refuse NaN and infinity, where X is plain numbers. Not where a gradient may be
        asked for or a trace is made, and not inside a model: that would wait for the device.

    Returns
    -------
    tensor of the shape of X, on its device
        Of its type if that is floating, else float64.

    Examples
    --------
    >>> import torch
    >>> from expunge import Erasure
    >>> from expunge.rows.apply_tensor import apply_to_tensor
    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> apply_to_tensor(Erasure([[1.0], [0.0]], [[1.0, 0.0]]), x).sum().backward()
    >>> x.grad
    tensor([0., 1.])
    """
    if not X.is_floating_point():
        X = X.to(double(X.device))
    if not hasattr(erasure, "offset"):  # not affine
        return _apply_nonlinear(erasure, X, out, check=check)
    erasure = cast("Erasure", erasure)
    factors = _factors(erasure, X)
    plain = _is_plain(X)
    if out is not None:
        _check_out(out, X, plain)
    if not plain or (out is None and X.numel() <= SMALL):
        found = _emptied(affine(X, *factors), erasure)
        return _checked(found, X) if check and plain else found
    d = erasure.n_features
    X = X.detach().resolve_neg()
    out = _empty(X) if out is None else out
    rows, target = X.reshape(-1, d), out.detach().view(-1, d)
    if X.device.type != "cpu":
        for lo, hi in blocks(0, rows.shape[0], max(1, DEVICE_BLOCK // d)):
            target[lo:hi] = _emptied(affine(rows[lo:hi], *factors), erasure)
    elif X.dtype in (torch.float32, torch.float64):
        apply_to_array(erasure, rows.numpy(), target.numpy(), check=check)
        return out
    else:
        _apply_to_half(erasure, rows, target)
    return _checked(out, X) if check else out


def _emptied(found: torch.Tensor, erasure: Erasure) -> torch.Tensor:
    """Erased rows with a constant in the columns of which nothing is left."""
    if not erasure.emptied.size:
        return found
    places = torch.from_numpy(np.array(erasure.emptied)).to(found.device)  # see `_copied`
    values = torch.from_numpy(np.array(erasure.constant))
    values = values.to(dtype=found.dtype, device=found.device)
    return found.index_copy(-1, places, values.expand(*found.shape[:-1], -1))


def _apply_nonlinear(
    found: NonlinearErasure, X: torch.Tensor, out: torch.Tensor | None, *, check: bool
) -> torch.Tensor:
    """A map that no matrix does, where rows are; plain ones of the CPU by the blocks of NumPy."""
    from expunge.rows.nonlinear_tensor import nonlinear, nonlinear_factors  # which knows this file

    plain = _is_plain(X)
    if out is not None:
        _check_out(out, X, plain)
    if plain and X.device.type == "cpu" and X.dtype in (torch.float32, torch.float64):
        target = None if out is None else out.detach().numpy()
        array = apply_to_array(found, X.detach().resolve_neg().numpy(), target, check=check)
        return torch.from_numpy(array) if out is None else out
    parts = nonlinear_factors(found, X.device, keep=type(X) in ORDINARY)
    moved = nonlinear(X, found.file_kind, parts, found.strength)
    if out is not None:
        moved = out.copy_(moved)
    return _checked(moved, X) if check and plain else moved


def _checked(out: torch.Tensor, X: torch.Tensor) -> torch.Tensor:
    """Erased rows, if there is neither NaN nor infinity in them."""
    if out.numel():
        low, high = torch.aminmax(out.detach())  # NaN comes through
        if not bool(torch.isfinite(low) & torch.isfinite(high)):
            before, after = (t.detach().reshape(-1, X.shape[-1]).double().cpu() for t in (X, out))
            refuse_infinite(before.numpy(), after.numpy(), str(out.dtype).rpartition(".")[2])
    return out


def _apply_to_half(erasure: Erasure, rows: torch.Tensor, target: torch.Tensor) -> None:
    """Half types on the CPU: every block is an array of float64 between two conversions."""
    d, erase = erasure.n_features, block_map(erasure, narrow=True)
    size = rows_of_a_block(d)

    def apply(start: int, stop: int) -> None:
        room = torch.empty((min(size, stop - start), d), dtype=torch.float64)
        for lo, hi in blocks(start, stop, size):
            block = room[: hi - lo]
            copy_serially(rows[lo:hi], block)
            erase(block.numpy())
            copy_serially(block, target[lo:hi])

    map_spans(Watch(1).over(apply), rows.shape[0], d, span=SPAN_BLOCKS * size)


def copy_serially(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy a matrix of the CPU into one of another type, in pieces too small for torch's threads.

    Threads of ours already fill the cores; those of torch would wait for each other at every call.

    Parameters
    ----------
    source, target : tensors of shape (n, d)
    """
    for lo, hi in blocks(0, source.shape[0], max(1, (SERIAL - 1) // max(1, source.shape[1]))):
        piece = source[lo:hi]
        if piece.dtype == torch.float16 and target.dtype == torch.float64:
            piece = piece.float()  # exact too, and the quicker way
        target[lo:hi].copy_(piece)


def apply_conditional_to_tensor(
    erasure: ConditionalErasure, X: torch.Tensor, concept: Concept
) -> torch.Tensor:
    """Erased rows of a strided real tensor, given the concept of each.

    Parameters
    ----------
    erasure : ConditionalErasure
    X : tensor of shape (n, d)
    concept : Concept
        Over the labels of the erasure.

    Returns
    -------
    tensor of shape (n, d), on the device of X
        Of its type if that is floating, else float64.
    """
    if under_autocast(X):
        with torch.autocast(X.device.type, enabled=False):
            return apply_conditional_to_tensor(erasure, X, concept)
    if not X.is_floating_point():
        X = X.to(double(X.device))
    work = double(X.device)

    def here(values: Any) -> torch.Tensor:
        return torch.tensor(values, dtype=work, device=X.device)

    x = X.to(work)
    moved = here(concept.columns() - erasure.mean_z) @ here(erasure.shift).T
    if erasure.maps is not None:
        center, identity = here(erasure.center), np.eye(erasure.n_features)
        for code in np.unique(concept.values):
            own = torch.tensor(np.flatnonzero(concept.values == code), device=X.device)
            rest = x[own] - moved[own] - center
            moved = moved.index_add(0, own, rest @ here(identity - erasure.maps[code]).T)
    found = x - erasure.strength * moved
    if (constant := erasure.becoming_constant).any():
        mask = torch.tensor(constant, device=X.device)
        found = torch.where(mask, here(erasure.center), found)
    found = found.to(X.dtype)
    return _checked(found, X) if _is_plain(X) else found


def double(device: torch.device) -> torch.dtype:
    """The type products are formed in: float64, or float32 on a device that has none."""
    return torch.float32 if device.type == "mps" else torch.float64


def _factors(erasure: Erasure, X: torch.Tensor) -> Factors:
    """The factors for X, copied to its device once: a hook on small batches would wait for them."""
    kept = _copies.setdefault(erasure, {}) if type(X) in ORDINARY else {}
    if X.device not in kept:
        with torch.inference_mode(False):  # what is made in inference mode serves no gradient later
            parts = (erasure.left, erasure.right, erasure.center, erasure.offset)
            kept[X.device] = cast(Factors, tuple(_copied(part, X.device) for part in parts))
    return kept[X.device]


def _copied(values: Any, device: torch.device) -> torch.Tensor | None:
    if values is None:
        return None
    # not torch.tensor(values), which warns where torch.compile follows it into here
    return torch.from_numpy(np.array(values)).to(dtype=double(device), device=device)


def under_autocast(x: torch.Tensor) -> bool:
    """Whether products would be rounded to half precision behind our back."""
    kind = x.device.type
    return torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)


def _is_plain(X: torch.Tensor) -> bool:
    """Whether X is numbers in memory and no more: no gradient, tangent, batching or trace."""
    if torch.is_grad_enabled() and X.requires_grad:
        return False
    if type(X) not in ORDINARY or X.is_meta:
        return False
    try:
        X.data_ptr()
    except RuntimeError:  # a wrapper without memory, as torch.func and traces make them
        return False
    return forward_ad.unpack_dual(X).tangent is None  # type: ignore[no-untyped-call]


def _empty(X: torch.Tensor) -> torch.Tensor:
    """Memory for a result; from NumPy, which asks for large pages, as these fill much faster."""
    if X.device.type != "cpu":
        return torch.empty(X.shape, dtype=X.dtype, device=X.device)
    if X.dtype in SEEN_BY_NUMPY:
        return torch.from_numpy(np.empty(X.shape, SEEN_BY_NUMPY[X.dtype]))
    return torch.from_numpy(np.empty(X.shape, np.int16)).view(X.dtype)


def _extent(t: torch.Tensor) -> tuple[int, int]:
    """The addresses between which the entries lie."""
    if not t.numel():
        return 0, 0
    steps = sum(step * (n - 1) for step, n in zip(t.stride(), t.shape, strict=True))
    return t.data_ptr(), t.data_ptr() + (steps + 1) * t.element_size()


def _check_out(out: Any, X: torch.Tensor, plain: bool) -> None:
    strided = isinstance(out, torch.Tensor) and out.layout == torch.strided and not out.is_nested
    if not strided or (out.shape, out.dtype, out.device) != (X.shape, X.dtype, X.device):
        found = f" of shape {tuple(out.shape)} and type {out.dtype}" if strided else ""
        raise InputError(
            f"out must be a tensor of shape {tuple(X.shape)} and type {X.dtype} on {X.device}",
            f"{type(out).__name__}{found}",
            "Allocate it with torch.empty_like(X)",
        )
    if not plain or (torch.is_grad_enabled() and out.requires_grad):
        raise InputError(
            "out cannot be used where a gradient is recorded",
            "a tensor that requires grad, or a transformed one",
            "Leave out= away, or work under torch.no_grad()",
        )
    if X.ndim != 2 and not out.is_contiguous():
        raise InputError(
            "out must be contiguous when X is not a matrix",
            "a strided tensor",
            "Pass a fresh tensor",
        )
    if overlaps_itself(tuple(out.shape), out.stride()):
        raise InputError(
            "Entries of out share their memory: rows would overwrite one another",
            f"shape {tuple(out.shape)} with strides {out.stride()}",
            "Pass a fresh tensor",
        )
    same = out.data_ptr() == X.data_ptr() and out.stride() == X.stride()
    (start, stop), (first, last) = _extent(out), _extent(X)
    if not same and start < last and first < stop:
        raise InputError(
            "out overlaps X without being X, or may do so",
            "two views of one tensor",
            "Pass out=X or a fresh tensor",
        )
