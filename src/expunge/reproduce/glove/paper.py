"""What the paper prints, with the table or section it stands in. No number is read off a picture.

References
----------
Ravfogel, Twiton, Goldberg, Cotterell (2022), Linear Adversarial Concept Erasure, ICML.
"""

from __future__ import annotations

from expunge.reproduce.runner.experiment_results import Number

__all__ = [
    "ACCURACY_FIGURE",
    "CLUSTER_FIGURE",
    "NEIGHBOURS",
    "NEIGHBOURS_WHERE",
    "NONLINEAR",
    "NONLINEAR_WHERE",
    "PCA_FIGURE",
    "SIMLEX",
    "SIMLEX_WHERE",
    "SPECTRUM_FIGURE",
    "WEAT",
    "WEAT_WHERE",
]

# figures without printed numbers: where they are
PCA_FIGURE = "Figure 1"
ACCURACY_FIGURE = "Figure 2 and Section 5.1"
CLUSTER_FIGURE = "Figure 5 and Appendix E"
SPECTRUM_FIGURE = "Figure 12 and Appendix F.2"

WEAT_WHERE = "Table 1"
WEAT: dict[str, dict[str, tuple[Number, Number]]] = {  # test, method -> d, p
    "math-art": {
        "original": (Number(1.57), Number(0.000)),
        "PairPCA": (Number(1.46, 0.00, 10), Number(0.000, 0.000, 10)),
        "RLACE": (Number(0.80, 0.01, 10), Number(0.062, 0.002, 10)),
        "INLP": (Number(1.11, 0.10, 10), Number(0.015, 0.008, 10)),
    },
    "professions-family": {
        "original": (Number(1.69), Number(0.000)),
        "PairPCA": (Number(1.11, 0.00, 10), Number(0.005, 0.000, 10)),
        "RLACE": (Number(0.79, 0.01, 10), Number(0.071, 0.003, 10)),
        "INLP": (Number(1.11, 0.08, 10), Number(0.012, 0.007, 10)),
    },
    "science-art": {
        "original": (Number(1.63), Number(0.000)),
        "PairPCA": (Number(1.16, 0.00, 10), Number(0.003, 0.000, 10)),
        "RLACE": (Number(0.77, 0.01, 10), Number(0.072, 0.004, 10)),
        "INLP": (Number(1.01, 0.15, 10), Number(0.028, 0.020, 10)),
    },
}

SIMLEX_WHERE = "Section 5.1, Influence on Semantic Content"
SIMLEX = {"original": Number(0.399), "RLACE": Number(0.392), "INLP": Number(0.395)}  # Pearson

NONLINEAR_WHERE = "Section 5.1, Classification"
NONLINEAR = "above 90"  # accuracy of both RBF-SVM and MLP after RLACE, percent

NEIGHBOURS_WHERE = "Table 3"
NEIGHBOURS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # word -> before, after RLACE
    "ocean": (("waters", "atlantic", "sea"), ("waters", "atlantic", "sea")),
    "museum": (("heritage", "art", "exhibition"), ("heritage", "art", "exhibition")),
    "lol": ((":p", ":d", "haha"), (":p", ":d", "haha")),
    "twenty": (("five", "ten", "hundred"), ("five", "ten", "hundred")),
    "sample": (("free", "test", "samples"), ("example", "test", "samples")),
    "storm": (("weather", "wind", "rain"), ("weather", "wind", "rain")),
    "state": (("ohio", "government", "states"), ("ohio", "california", "states")),
    "electrical": (
        ("electricity", "mechanical", "electric"),
        ("electricity", "mechanical", "electric"),
    ),
    "papers": (("essay", "essays", "paper"), ("essay", "essays", "paper")),
    "contributions": (
        ("participation", "contribute", "contribution"),
        ("participation", "contribute", "contribution"),
    ),
    "lab": (("research", "science", "laboratory"), ("research", "science", "laboratory")),
    "joke": (("laugh", "stupid", "funny"), ("laugh", "stupid", "funny")),
    "hear": (("tell", "listen", "heard"), ("tell", "listen", "heard")),
    "detail": (("description", "detailed", "details"), ("description", "detailed", "details")),
    "extreme": (("hardcore", "severe", "intense"), ("hardcore", "severe", "intense")),
}
