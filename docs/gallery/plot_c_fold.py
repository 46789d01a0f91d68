"""
A fold
======

A projection hides a concept from linear predictors. A fold lays the classes upon each other, and
others find less, too.
"""

# %%
# Words with a gender. Half of what a fold needs is at hand without labels: the words it will be
# used on.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

import expunge as ex
from expunge.data import load_glove

glove = load_glove()
new = np.vstack([glove.dev.X, glove.test.X])
erasers = {
    "LEACE": ex.LEACE().fit(glove.train.X, glove.train.y),
    "a fold": ex.FoldEraser().fit(glove.train.X, glove.train.y),
    "a fold, one round": ex.FoldEraser(rounds=1).fit(glove.train.X, glove.train.y),
    "... new words at hand": ex.FoldEraser(rounds=1).fit(
        glove.train.X, glove.train.y, unlabelled=new
    ),
}

# %%
# What a kernel machine tells of new words, against what it cost.
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for name, eraser in erasers.items():
    learn, test = eraser.transform(glove.dev.X), eraser.transform(glove.test.X)
    told = SVC(C=3).fit(learn / learn.std(), glove.dev.y).score(test / learn.std(), glove.test.y)
    moved = np.sum((test - glove.test.X) ** 2)
    change = moved / np.sum((glove.test.X - glove.test.X.mean(axis=0)) ** 2)
    print(f"{name}: {told:.1%} told, change {change:.3f}")
    ax.scatter(change, told)
    ax.annotate(name, (change, told), xytext=(6, 4), textcoords="offset points")
ax.set(xlabel="change", ylabel="told by a kernel machine", xlim=(0.05, 0.12), ylim=(0.5, 1))
