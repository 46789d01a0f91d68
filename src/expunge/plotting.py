"""Axes for the pictures; matplotlib is imported when one is asked for."""

from __future__ import annotations

from typing import Any

from expunge.optional import require

__all__ = ["new_axes"]


def new_axes(width: float = 6, height: float = 4) -> Any:
    """Axes on a figure of their own, in inches; no window is opened."""
    figure = require("matplotlib.figure", "reproduce").Figure
    return figure(figsize=(width, height), layout="constrained").subplots()
