"""Maps that no matrix does, as differentiable expressions of torch; one for each kind of file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch

from expunge.rows.apply_tensor import affine, double, under_autocast

if TYPE_CHECKING:
    from expunge.nonlinear_erasure import NonlinearErasure

__all__ = ["nonlinear", "nonlinear_factors"]

Parts = Mapping[str, torch.Tensor]
ROUNDS = ("cell_centers", "cell_units", "cell_potentials", "cell_shifts", "cell_widths")
CLOSING = ("closing_left", "closing_right", "closing_center", "closing_offset")

_copies: WeakKeyDictionary[NonlinearErasure, dict[torch.device, Parts]] = WeakKeyDictionary()


def nonlinear_factors(found: NonlinearErasure, device: torch.device, *, keep: bool = True) -> Parts:
    """The numbers of a map as tensors of the widest type of a device.

    Parameters
    ----------
    found : NonlinearErasure
    device : torch.device
    keep : bool
        Whether to make them once for all; not inside a trace, where they are no numbers.

    Returns
    -------
    mapping of str to tensor
    """
    known = _copies.setdefault(found, {}) if keep else {}
    if device not in known:
        with torch.inference_mode(False):
            known[device] = {
                name: torch.tensor(values, dtype=double(device), device=device)
                for name, values in found.tensors().items()
            }
    return known[device]


def nonlinear(x: torch.Tensor, kind: str, parts: Parts, strength: float) -> torch.Tensor:
    """A map as one differentiable expression.

    Parameters
    ----------
    x : tensor of shape (..., d)
    kind : str
        What files of this map are called inside.
    parts : mapping of str to tensor
        Of `nonlinear_factors`.
    strength : float

    Returns
    -------
    tensor of the shape and type of x
    """
    if under_autocast(x):
        with torch.autocast(x.device.type, enabled=False):
            return nonlinear(x, kind, parts, strength)
    y = x.to(torch.promote_types(x.dtype, parts["center"].dtype))
    moved: torch.Tensor = y + strength * (MOVES[kind](y, parts) - y)
    return moved.to(x.dtype)


def _folded(y: torch.Tensor, parts: Parts) -> torch.Tensor:
    """A fold; the predicted class is taken as given."""
    codes = ((y - parts["center"]) @ parts["coef"] + parts["intercept"]).argmax(dim=-1)
    z = y + parts["shifts"][codes]
    coordinates = (z - parts["center"]) @ parts["right"].T
    mapped = (parts["maps"][codes] @ coordinates.unsqueeze(-1)).squeeze(-1)
    z = z + mapped @ parts["left"].T
    at = codes[..., None, None].expand(*codes.shape, 1, z.shape[-1])
    for layouts in zip(*(parts[name] for name in ROUNDS if name in parts), strict=True):
        move = torch.zeros_like(z)
        for centers, units, potentials, shifts, width in zip(*layouts, strict=True):
            scores = 2 * (z / units) @ centers.T - (centers**2).sum(dim=1) + potentials[codes]
            shares = torch.softmax(scores / width, dim=-1)
            each = torch.stack([shares @ shift for shift in shifts], dim=-2)
            move = move + each.gather(-2, at).squeeze(-2)
        z = z + move / len(layouts[0])
    return affine(z + parts["last"][codes], *(parts[name] for name in CLOSING))


def _free_form(y: torch.Tensor, parts: Parts) -> torch.Tensor:
    """What LEACE takes away, read from cosines too."""
    centred = y - parts["center"]
    features = torch.cos(centred @ parts["frequencies"] + parts["phases"]) - parts["means"]
    taken = centred @ parts["right"].T + features @ parts["coef"].T
    return y - taken @ parts["left"].T


MOVES: dict[str, Callable[[torch.Tensor, Parts], torch.Tensor]] = {
    "fold_erasure": _folded,
    "free_form_erasure": _free_form,
}
