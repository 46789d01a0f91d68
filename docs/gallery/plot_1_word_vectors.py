"""
Word vectors
============

Occupations lean towards *she* or *he* in word vectors. One direction of a hundred holds what a
linear predictor can read of it.
"""

# %%
# Word vectors come with the package: 7,350 words for the fit, with the end of *he - she* they lie
# nearest to as their label.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.data import load_glove

glove = load_glove()
eraser = ex.RLACE().fit(glove.train.X, glove.train.y)
print(eraser.certificate_)

# %%
# Where do occupations lie between the two words, before and after?
WORDS = ["nurse", "receptionist", "teacher", "singer", "lawyer", "doctor"]
WORDS += ["professor", "architect", "engineer", "captain", "mechanic"]
clean = eraser.transform(glove.vectors)


axis = glove.vector("she") - glove.vector("he")


def lean(vectors):
    """Cosine of every word with *she - he*, as these two were before."""
    chosen = vectors[[glove.index(word) for word in WORDS]]
    return chosen @ axis / np.linalg.norm(chosen, axis=1) / np.linalg.norm(axis)


before, after = lean(glove.vectors), lean(clean)
figure, ax = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
places = np.arange(len(WORDS))
ax.hlines(places, before, after, color="0.8", zorder=1)
ax.scatter(before, places, color="#d55e00", label="before")
ax.scatter(after, places, color="#0072b2", label="after RLACE()")
ax.axvline(0, color="0.5", linewidth=0.8)
ax.set(
    yticks=places,
    yticklabels=WORDS,
    xlabel="nearer to he  ←  cosine with she - he  →  nearer to she",
)
ax.legend(frameon=False)

# %%
# The occupations come together. They do not come to zero: *she - he* is one difference of two
# words, and what was erased is the difference of the means of thousands. A probe trained on new
# words is at chance, but for sampling error.
for name, change in [("before", lambda X: X), ("after", eraser.transform)]:
    probe = LogisticRegression(max_iter=1000).fit(change(glove.dev.X), glove.dev.y)
    print(f"{name}: {probe.score(change(glove.test.X), glove.test.y):.1%} of new words")

# %%
# Meaning stays. Neighbours change where gender made them neighbours.
for word in ("nurse", "engineer", "ocean"):
    print(f"{word}: {glove.neighbours(word)} -> {glove.neighbours(word, vectors=clean)}")
