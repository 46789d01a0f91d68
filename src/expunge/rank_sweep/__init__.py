"""What erasing K directions leaves and costs, for a range of K."""

from expunge.rank_sweep.path import rank_path
from expunge.rank_sweep.path_table import PathPoint, RankPath

__all__ = ["PathPoint", "RankPath", "rank_path"]
