"""Remove a concept from vectors so that no linear predictor can recover it, and prove it."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from expunge import integrations, metrics
from expunge._version import __version__
from expunge.audit import Audit
from expunge.certifying import certify
from expunge.comparison import Comparison, compare
from expunge.conditional import ConditionalErasure
from expunge.erasers import (
    ERASERS,
    INLP,
    LEACE,
    RLACE,
    SAL,
    SPLINCE,
    FoldEraser,
    MeanProjection,
    OracleLEACE,
    PairPCA,
    QuadraticLEACE,
    RayleighEraser,
)
from expunge.erasure import Erasure
from expunge.errors import (
    BadArtifact,
    CovariancesDiffer,
    ExpungeError,
    InputError,
    LostCluster,
    MissingAsClass,
    MissingPackage,
    NotConverged,
    NothingLeft,
    NothingToFold,
    NumbersAsClasses,
    OnlyLinear,
    PoolDiffers,
    PoolRepeats,
    RankTruncated,
    RoundingShows,
    RowsStretched,
    SampleTaken,
    UnitsMatter,
)
from expunge.fold_erasure import FoldErasure
from expunge.free_form_erasure import FreeFormErasure
from expunge.game.certificate import Certificate
from expunge.game.descent_ascent import DescentAscent, paper_settings
from expunge.game.losses import LOSSES, ColumnLoss, Loss
from expunge.game.solver import Solver
from expunge.game.solvers import SOLVERS
from expunge.game.subspace_ascent import SubspaceAscent
from expunge.moments import Moments
from expunge.planning import LabelPlan, plan_labels
from expunge.rank_sweep import RankPath, rank_path
from expunge.tradeoff import Frontier, frontier

if TYPE_CHECKING:
    from expunge.reproduce import Reproduction, reproduce
    from expunge.rows.chunked import open_rows
    from expunge.rows.dask_rows import cluster_rows

if TYPE_CHECKING:
    from expunge.audit import audit
else:
    from expunge import audit  # the package, which can be called as the function

__all__ = [
    "ERASERS",
    "INLP",
    "LEACE",
    "LOSSES",
    "RLACE",
    "SAL",
    "SOLVERS",
    "SPLINCE",
    "Audit",
    "BadArtifact",
    "Certificate",
    "ColumnLoss",
    "Comparison",
    "ConditionalErasure",
    "CovariancesDiffer",
    "DescentAscent",
    "Erasure",
    "ExpungeError",
    "FoldEraser",
    "FoldErasure",
    "FreeFormErasure",
    "Frontier",
    "InputError",
    "LabelPlan",
    "Loss",
    "LostCluster",
    "MeanProjection",
    "MissingAsClass",
    "MissingPackage",
    "Moments",
    "NotConverged",
    "NothingLeft",
    "NothingToFold",
    "NumbersAsClasses",
    "OnlyLinear",
    "OracleLEACE",
    "PairPCA",
    "PoolDiffers",
    "PoolRepeats",
    "QuadraticLEACE",
    "RankPath",
    "RankTruncated",
    "RayleighEraser",
    "Reproduction",
    "RoundingShows",
    "RowsStretched",
    "SampleTaken",
    "Solver",
    "SubspaceAscent",
    "UnitsMatter",
    "__version__",
    "audit",
    "certify",
    "cluster_rows",
    "compare",
    "frontier",
    "integrations",
    "metrics",
    "open_rows",
    "paper_settings",
    "plan_labels",
    "rank_path",
    "reproduce",
]


def __getattr__(name: str) -> Any:
    """Files and the paper's experiments, which are loaded when they are first asked for."""
    if name == "open_rows":
        return import_module("expunge.rows.chunked").open_rows
    if name == "cluster_rows":
        return import_module("expunge.rows.dask_rows").cluster_rows
    if name not in ("Reproduction", "reproduce"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = import_module("expunge.reproduce")
    return package.Reproduction if name == "Reproduction" else package
