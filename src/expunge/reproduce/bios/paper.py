"""What the paper prints, with the table or section it stands in. No number is read off a picture.

References
----------
Ravfogel, Twiton, Goldberg, Cotterell (2022), Linear Adversarial Concept Erasure, ICML.
"""

from __future__ import annotations

from expunge.reproduce.runner.experiment_results import Number

__all__ = ["ADVERSARY", "ADVERSARY_WHERE", "CURVE_FIGURE", "TABLE", "TABLE_WHERE"]

CURVE_FIGURE = "Figure 3"

ADVERSARY_WHERE = "Appendix D"
ADVERSARY = "below 55"  # the adversary's own accuracy, percent

TABLE_WHERE = "Table 2"
# setting -> accuracy on gender and profession (percent), TPR gap RMS, correlation with % women
TABLE: dict[str, tuple[Number, Number, Number | None, Number | None]] = {
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
