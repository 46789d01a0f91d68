"""A dataset of Hugging Face: fitted as it is, and erased by `map`."""

import datasets
import numpy as np
from sklearn.linear_model import LogisticRegression

import expunge as ex
from expunge.data import load_glove

datasets.disable_progress_bars()
glove = load_glove()
columns = {"word": list(glove.dev.words), "embedding": list(glove.dev.X)}
dataset = datasets.Dataset.from_dict({**columns, "gender": glove.dev.y.tolist()})

# -- erase
eraser = ex.LEACE().fit(dataset, vectors="embedding", concept="gender")
erase = ex.integrations.datasets.erase_batch(eraser, "embedding")
clean = dataset.map(erase, batched=True)
# --
for name, table in (("before", dataset), ("after", clean)):
    X, y = np.array(table["embedding"]), np.array(table["gender"])
    right = LogisticRegression(max_iter=1000).fit(X, y).score(X, y)
    print(f"{name}: a probe is right on {right:.0%} of {len(X):,} words")
print(clean.column_names)
print(eraser.certificate_)
