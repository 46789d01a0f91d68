"""Axes for the pictures; matplotlib is imported when one is asked for."""

from __future__ import annotations

from typing import Any

__all__ = ["new_axes"]


def new_axes(width: float = 6, height: float = 4) -> Any:
    """Axes on a figure of their own, in inches; no window is opened."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "plotting needs matplotlib; install it with: pip install 'expunge[reproduce]'"
        ) from error
    return Figure(figsize=(width, height), layout="constrained").subplots()
