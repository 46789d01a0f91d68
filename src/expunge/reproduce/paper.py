"""What the paper prints, with the table or section it stands in.

Nothing else: no number is read off a picture.

References
----------
Ravfogel, Twiton, Goldberg, Cotterell (2022), Linear Adversarial Concept Erasure, ICML.
"""

from __future__ import annotations

from expunge.reproduce.numbers import Number

__all__ = [
    "ACCURACY_FIGURE",
    "BIOS_ADVERSARY",
    "BIOS_ADVERSARY_WHERE",
    "BIOS_CURVE_FIGURE",
    "BIOS_TABLE",
    "BIOS_TABLE_WHERE",
    "CITATION",
    "CLUSTER_FIGURE",
    "FACES_WHERE",
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

CITATION = (
    "Shauli Ravfogel, Michael Twiton, Yoav Goldberg and Ryan Cotterell. 2022. Linear Adversarial "
    "Concept Erasure. Proceedings of the 39th International Conference on Machine Learning."
)

# figures without printed numbers: where they are
PCA_FIGURE = "Figure 1"
ACCURACY_FIGURE = "Figure 2 and Section 5.1"
BIOS_CURVE_FIGURE = "Figure 3"
CLUSTER_FIGURE = "Figure 5 and Appendix E"
SPECTRUM_FIGURE = "Figure 12 and Appendix F.2"
FACES_WHERE = "Figures 4 and 6 to 11, Section 5.3"

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

BIOS_ADVERSARY_WHERE = "Appendix D"
BIOS_ADVERSARY = "below 55"  # the adversary's own accuracy, percent

BIOS_TABLE_WHERE = "Table 2"
# setting -> accuracy on gender and profession (percent), TPR gap RMS, correlation with % women
BIOS_TABLE: dict[str, tuple[Number, Number, Number | None, Number | None]] = {
    "BERT-frozen": (Number(99.84), Number(79.91), Number(0.029), Number(0.840)),
    "BERT-frozen + RLACE (rank 1)": (
        Number(52.16, 0.13, 3),
        Number(79.21, 0.00, 3),
        Number(0.020, 0.000, 3),
        Number(0.463, 0.005, 3),
    ),
    "BERT-frozen + RLACE (rank 50)": (
        Number(53.24, 0.73, 3),
        Number(76.73, 1.03, 3),
        Number(0.021, 0.001, 3),
        Number(0.426, 0.043, 3),
    ),
    "BERT-frozen + INLP (rank 1)": (
        Number(99.30, 0.00, 3),
        Number(79.58, 0.01, 3),
        Number(0.028, 0.000, 3),
        Number(0.779, 0.014, 3),
    ),
    "BERT-frozen + INLP (rank 50)": (
        Number(51.95, 0.25, 3),
        Number(71.27, 0.09, 3),
        Number(0.022, 0.000, 3),
        Number(0.338, 0.030, 3),
    ),
    "BERT-finetuned": (
        Number(85.42, 0.05, 3),
        Number(84.71, 0.09, 3),
        Number(0.026, 0.001, 3),
        Number(0.816, 0.005, 3),
    ),
    "BERT-finetuned + RLACE (rank 1)": (
        Number(53.61, 0.72, 3),
        Number(83.42, 0.10, 3),
        Number(0.022, 0.001, 3),
        Number(0.705, 0.022, 3),
    ),
    "BERT-finetuned + RLACE (rank 100)": (
        Number(53.87, 1.32, 3),
        Number(80.93, 1.04, 3),
        Number(0.024, 0.001, 3),
        Number(0.658, 0.030, 3),
    ),
    "BERT-finetuned + INLP (rank 1)": (
        Number(96.30, 0.63, 3),
        Number(85.41, 0.06, 3),
        Number(0.026, 0.000, 3),
        Number(0.820, 0.007, 3),
    ),
    "BERT-finetuned + INLP (rank 100)": (
        Number(62.76, 1.31, 3),
        Number(83.74, 0.09, 3),
        Number(0.021, 0.001, 3),
        Number(0.579, 0.048, 3),
    ),
    "BERT-finetuned-adv (MLP adversary)": (
        Number(98.01, 1.73, 3),
        Number(83.72, 1.69, 3),
        Number(0.024, 0.003, 3),
        Number(0.707, 0.079, 3),
    ),
    "BERT-finetuned-adv (linear adversary)": (
        Number(99.40, 0.07, 3),
        Number(84.68, 0.16, 3),
        Number(0.026, 0.001, 3),
        Number(0.803, 0.015, 3),
    ),
    "Majority": (Number(53.52), Number(30.0), None, None),
}
