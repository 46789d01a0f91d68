"""Rows: n vectors, wherever they live, behind one base class."""

from expunge.rows.base import GlmPass, Reading, Rows
from expunge.rows.dense import DenseRows

__all__ = ["DenseRows", "GlmPass", "Reading", "Rows"]
