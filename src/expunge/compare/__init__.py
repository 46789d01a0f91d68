"""Methods side by side: what each leaves and what it costs, in one table."""

from expunge.compare.compare import compare
from expunge.compare.table import Comparison, ComparisonRow

__all__ = ["Comparison", "ComparisonRow", "compare"]
