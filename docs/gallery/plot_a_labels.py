"""
Labels planned
==============

How many labels does it take until a probe on new rows is near chance? A pilot of a few hundred
tells.
"""

# %%
# A pilot of 300 labelled words, and the rest without labels.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.data import load_glove

glove = load_glove()
order = np.random.default_rng(0).permutation(len(glove.train))
pilot, rest = order[:300], order[300:]
plan = ex.plan_labels(glove.train.X[pilot], glove.train.y[pilot], target=0.55, unlabelled=len(rest))
print(plan)

# %%
# The plan as a picture.
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
plan.plot(ax)

# %%
# Held against what happens: a probe trained and tested on words that no fit has seen.
pool = glove.train.X[rest]
for name, eraser in [
    ("300 labels", ex.RLACE().fit(glove.train.X[pilot], glove.train.y[pilot])),
    (
        "300 labels and the pool",
        ex.RLACE().fit(glove.train.X[pilot], glove.train.y[pilot], unlabelled=pool),
    ),
    ("7,350 labels", ex.RLACE().fit(glove.train.X, glove.train.y)),
]:
    probe = LogisticRegression(max_iter=1000).fit(eraser.transform(glove.dev.X), glove.dev.y)
    print(f"{name}: {probe.score(eraser.transform(glove.test.X), glove.test.y):.1%} of new words")
