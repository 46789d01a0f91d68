"""
Faces
=====

Glasses erased from pixels: one direction of 2,500, to be looked at. Images: AT&T Laboratories
Cambridge.
"""

# %%
# Four hundred images of forty people. The eraser sees thirty of them; the others are new.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import balanced_accuracy_score

import expunge as ex
from expunge.data import load_orl_faces

faces = load_orl_faces()
X = faces.images.reshape(len(faces), -1) / 255.0
order = np.random.default_rng(1).permutation(np.unique(faces.person_id))
known = np.isin(faces.person_id, order[:30])
eraser = ex.RLACE().fit(X[known], faces.glasses[known])
print(eraser, "kept:", f"{eraser.certificate_.variance_kept:.1%} of the variance")

# %%
# The direction is the mean image with glasses minus the mean image without.
clean = eraser.transform(X)
rows = [
    np.flatnonzero(known & (faces.glasses == wears))[place]
    for wears, place in [(1, 3), (1, 40), (0, 5)]
]
figure, panels = plt.subplots(2, 4, figsize=(8.5, 4.4), layout="constrained")
for column, row in enumerate(rows):
    for line, (name, images) in enumerate([("before", X), ("after", clean)]):
        panels[line, column].imshow(images[row].reshape(50, 50), cmap="gray", vmin=0, vmax=1)
        panels[line, column].set_title(name, fontsize=10)
direction = eraser.erasure_.basis[0].reshape(50, 50)
panels[0, 3].imshow(direction, cmap="RdBu", vmin=-abs(direction).max(), vmax=abs(direction).max())
panels[0, 3].set_title("what is erased", fontsize=10)
for ax in panels.flat:
    ax.axis("off")

# %%
# A linear probe is at chance on the images of the fit. On new people it finds some glasses still:
# thirty people pin down one direction of 2,500 pixels only roughly. More people would help, another
# method would not.
for name, images in [("before", X), ("after", clean)]:
    probe = RidgeClassifier(alpha=10, class_weight="balanced").fit(
        images[known], faces.glasses[known]
    )
    said = [
        balanced_accuracy_score(faces.glasses[part], probe.predict(images[part]))
        for part in (known, ~known)
    ]
    print(
        f"{name}: balanced accuracy {said[0]:.1%} on images of the fit, {said[1]:.1%} on new people"
    )
