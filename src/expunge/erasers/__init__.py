"""Erasers: scikit-learn transformers, one file per method, listed in `ERASERS`."""

from expunge.erasers.base import ERASERS, BaseEraser
from expunge.erasers.rayleigh import RayleighEraser
from expunge.erasers.rlace import RLACE

__all__ = ["ERASERS", "RLACE", "BaseEraser", "RayleighEraser"]
