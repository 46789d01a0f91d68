"""Rows: n vectors, wherever they live, behind three operations."""

from expunge.rows.base import GlmPass, Rows
from expunge.rows.dense import DenseRows

__all__ = ["DenseRows", "GlmPass", "Rows"]
