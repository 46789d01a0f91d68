"""Methods side by side: what each leaves and what it costs, in one table."""

from expunge.comparison.comparison_table import Comparison, ComparisonRow, Probed, Spread
from expunge.comparison.side_by_side import compare

__all__ = ["Comparison", "ComparisonRow", "Probed", "Spread", "compare"]
