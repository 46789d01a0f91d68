"""Methods side by side: what each leaves and what it costs, in one table."""

from expunge.compare.compare import compare
from expunge.compare.table import Comparison, ComparisonRow, Probed, Spread

__all__ = ["Comparison", "ComparisonRow", "Probed", "Spread", "compare"]
