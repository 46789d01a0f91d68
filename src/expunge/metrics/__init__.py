"""Measures of what rows hold and what they lost: pure functions of plain arrays.

Examples
--------
>>> import expunge as ex
>>> ex.metrics.tpr_gap_rms(["a", "a", "b", "b"], ["a", "b", "b", "b"], ["f", "m", "f", "m"])
0.7071067811865476
"""

from expunge.metrics.association import Weat, WordWeat, paper_weat_tests, weat, weat_tests
from expunge.metrics.bits import BitsLeft, bits_left
from expunge.metrics.change import Damage, damage, least_possible_change
from expunge.metrics.fairness import TprGaps, gap_correlation, tpr_gap_rms, tpr_gaps
from expunge.metrics.geometry import PcaScatter, VMeasure, pca_scatter, v_measure, v_measure_of
from expunge.metrics.neighbours import (
    NeighbourChange,
    nearest_neighbours,
    neighbour_changes,
    neighbour_overlap,
)
from expunge.metrics.parity import demographic_parity_difference, equalised_odds_difference
from expunge.metrics.similarity import SimilarityCorrelation, similarity_correlation
from expunge.metrics.task import TaskDamage, task_damage

__all__ = [
    "BitsLeft",
    "Damage",
    "NeighbourChange",
    "PcaScatter",
    "SimilarityCorrelation",
    "TaskDamage",
    "TprGaps",
    "VMeasure",
    "Weat",
    "WordWeat",
    "bits_left",
    "damage",
    "demographic_parity_difference",
    "equalised_odds_difference",
    "gap_correlation",
    "least_possible_change",
    "nearest_neighbours",
    "neighbour_changes",
    "neighbour_overlap",
    "paper_weat_tests",
    "pca_scatter",
    "similarity_correlation",
    "task_damage",
    "tpr_gap_rms",
    "tpr_gaps",
    "v_measure",
    "v_measure_of",
    "weat",
    "weat_tests",
]
