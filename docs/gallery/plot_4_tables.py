"""
A table, with fairlearn beside it
=================================

Sex erased from a census table, and income predicted from what is left. What it costs, and how
fairlearn's CorrelationRemover does on the same rows.
"""

# %%
# A slice of the Adult census table: 8,000 of its 48,842 rows (Becker and Kohavi 1996, UCI Machine
# Learning Repository, CC BY 4.0).
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from fairlearn.preprocessing import CorrelationRemover
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import expunge as ex

people = pd.read_csv("adult_slice.csv.gz")
sex = people.pop("sex").to_numpy()
rich = people.pop("income").eq(">50K").to_numpy()
X = pd.get_dummies(people).astype(float)
X = X.loc[:, (X != 0).sum() >= 50]  # a column of next to no rows would keep a trace of the group
A, B, sex_a, sex_b, rich_a, rich_b = train_test_split(
    X.to_numpy(), sex, rich, test_size=0.5, random_state=0, stratify=sex
)

# %%
# LEACE learns from the group and needs it no more. CorrelationRemover takes the group as a column
# of every row, new ones too: it is what this library calls an oracle, and ``OracleLEACE`` gives the
# same numbers.
leace = ex.LEACE().fit(A, sex_a)
oracle = ex.OracleLEACE().fit(A, sex_a)
remover = CorrelationRemover(sensitive_feature_ids=[0])
remover.fit(np.column_stack([sex_a == "Male", A]))
rows = {
    "nothing": (A, B),
    "LEACE": (leace.transform(A), leace.transform(B)),
    "CorrelationRemover": tuple(
        remover.transform(np.column_stack([z == "Male", part]))
        for part, z in [(A, sex_a), (B, sex_b)]
    ),
}
same = np.abs(rows["CorrelationRemover"][1] - oracle.transform(B, concept=sex_b)).max()
print(f"CorrelationRemover and OracleLEACE differ by at most {same:.0e}")

# %%
# On the half that no fit has seen: accuracy and the gap of parity of a predictor of income, and how
# often a linear probe and a tree find the group.
found = {}
for name, (first, second) in rows.items():
    income = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000)).fit(first, rich_a)
    said = income.predict(second)
    probes = [
        make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000, class_weight="balanced")),
        DecisionTreeClassifier(max_leaf_nodes=200, class_weight="balanced", random_state=0),
    ]
    half = len(second) // 2
    scores = []
    for probe in probes:
        guess = probe.fit(second[:half], sex_b[:half]).predict(second[half:])
        scores.append(np.mean([np.mean(guess[sex_b[half:] == s] == s) for s in ("Female", "Male")]))
    gap = ex.metrics.demographic_parity_difference(said, sex_b)
    found[name] = [np.mean(said == rich_b), gap, *scores]
    print(
        f"{name:19} accuracy {found[name][0]:.3f}  parity gap {gap:.3f}  ",
        f"group found by a line {scores[0]:.2f}, by a tree {scores[1]:.2f}",
    )

figure, panels = plt.subplots(1, 4, figsize=(10, 3.2), layout="constrained")
titles = ["income right", "gap of parity", "group, by a linear probe", "group, by a tree"]
for ax, title, values in zip(panels, titles, zip(*found.values(), strict=True), strict=True):
    ax.bar(range(3), values, color=["0.6", "#0072b2", "#d55e00"])
    ax.set_xticks(range(3), ["nothing", "LEACE", "Correlation-\nRemover"], fontsize=8)
    ax.set_title(title, fontsize=10)
    if "group" in title:
        ax.axhline(0.5, color="0.3", linewidth=0.8, linestyle="--")
        ax.set_ylim(0.4, 1.02)

# %%
# Both hide the group from lines. A tree reads it off what the oracle wrote: whole numbers of women
# and of men were moved by different amounts, and no longer share their digits:
# see :doc:`/fairness`.
