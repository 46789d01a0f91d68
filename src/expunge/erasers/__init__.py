"""The erasers: scikit-learn transformers, one interface, no mathematics of their own."""

from expunge.erasers.base import ERASERS
from expunge.erasers.fold import FoldEraser
from expunge.erasers.inlp import INLP
from expunge.erasers.leace import LEACE, SPLINCE
from expunge.erasers.leading import SAL, MeanProjection
from expunge.erasers.oracle import OracleLEACE, QuadraticLEACE
from expunge.erasers.pair_pca import PairPCA
from expunge.erasers.rayleigh import RayleighEraser
from expunge.erasers.rlace import RLACE

__all__ = [
    "ERASERS",
    "INLP",
    "LEACE",
    "RLACE",
    "SAL",
    "SPLINCE",
    "FoldEraser",
    "MeanProjection",
    "OracleLEACE",
    "PairPCA",
    "QuadraticLEACE",
    "RayleighEraser",
]
