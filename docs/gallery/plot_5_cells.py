"""
Single cells
============

The cell cycle erased from the principal components of blood cells. The types of the cells stay.
"""

# %%
# Seven hundred cells in fifty principal components, as scanpy ships them (10x Genomics, PBMC 68k).
# Each cell has two scores that say how far it is in its cycle: numbers, not classes.
import matplotlib.pyplot as plt
import numpy as np
import scanpy as sc
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.manifold import TSNE
from sklearn.model_selection import KFold, cross_val_predict, cross_val_score

import expunge as ex

cells = sc.datasets.pbmc68k_reduced()
X = np.asarray(cells.obsm["X_pca"], dtype=float)
scores = cells.obs[["S_score", "G2M_score"]].to_numpy(dtype=float)
kinds = cells.obs["bulk_labels"].astype(str).to_numpy()

half = np.arange(len(X)) % 2 == 0
eraser = ex.LEACE(shrinkage="oas").fit(X[half], scores[half])
clean = eraser.transform(X)
print(eraser, "kept:", f"{eraser.certificate_.variance_kept:.1%} of the variance")

# %%
# On the other half of the cells, which the eraser has not seen: a ridge regression predicts their
# scores, a logistic regression their types, each trained on some of these cells and asked about
# others.
said, new, folds = {}, ~half, KFold(4, shuffle=True, random_state=0)
for name, rows in [("before", X), ("after", clean)]:
    said[name] = cross_val_predict(RidgeCV(np.logspace(-2, 4, 7)), rows[new], scores[new], cv=folds)
    r = [np.corrcoef(said[name][:, i], scores[new, i])[0, 1] for i in (0, 1)]
    types = cross_val_score(
        LogisticRegression(max_iter=3000), rows[new], kinds[new], cv=folds
    ).mean()
    print(f"{name}: correlation with the scores {r[0]:.2f}, {r[1]:.2f}; types right {types:.1%}")

# %%
# A map of the cells before and after: the types stay where they are.
figure, panels = plt.subplots(2, 2, figsize=(9, 7), sharey="row", layout="constrained")
for column, (name, rows) in enumerate([("before", X), ("after", clean)]):
    top, low = panels[:, column]
    top.scatter(scores[new, 0], said[name][:, 0], s=8, color="#0072b2", alpha=0.6)
    top.set(title=f"{name}: the S score, predicted", xlabel="score")
    place = TSNE(init="pca", random_state=0, max_iter=500).fit_transform(rows)
    for i, kind in enumerate(np.unique(kinds)):
        low.scatter(*place[kinds == kind].T, s=7, color=plt.get_cmap("tab10")(i), label=kind)
    low.set(title=f"{name}: types of cells", xticks=[], yticks=[])
panels[0, 0].set_ylabel("predicted from other cells")
panels[1, 1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
