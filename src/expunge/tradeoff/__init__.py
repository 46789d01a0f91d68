"""What is left against what it costs: erasers of growing cost on one picture."""

from expunge.tradeoff.frontier_table import Frontier, FrontierPoint
from expunge.tradeoff.tracing import frontier

__all__ = ["Frontier", "FrontierPoint", "frontier"]
