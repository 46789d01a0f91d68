"""Tables: concepts by the names of their columns, also in a Pipeline that is cross-validated."""

import numpy as np
import pandas as pd
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

import expunge as ex

rng = np.random.default_rng(0)
race, sex = rng.choice(["a", "b", "c"], 2000), rng.choice(["f", "m"], 2000)
hidden = rng.normal(size=2000)
table = pd.DataFrame(rng.normal(size=(2000, 6)), columns=[f"score_{j}" for j in range(6)])
table["score_0"] += 2.0 * (race == "a") + hidden
table["score_4"] += 3.0 * hidden
table["score_3"] += 1.5 * (sex == "f")
table["race"], table["sex"] = race, sex
hired = hidden + 0.3 * (sex == "f") > 0

# -- erase: two concepts by name; the columns that are left are the vectors
eraser = ex.LEACE().fit(table, concept=["race", "sex"])
clean = eraser.transform(table)
# --
for name in ("race", "sex"):
    before, after = (
        cross_val_score(LogisticRegression(), X, table[name]).mean()
        for X in (table.filter(like="score"), clean)
    )
    print(f"{name}: a probe is right on {before:.0%} of rows before, {after:.0%} after")
erasure = eraser.erasure_
turned = table[table.columns[::-1]]
print("a table in another order is put in order:", np.array_equal(erasure(turned), clean))

sklearn.set_config(enable_metadata_routing=True)
# -- erase: in a Pipeline; forgetting the concept is an error
pipeline = make_pipeline(ex.LEACE().set_fit_request(concept=True), LogisticRegression())
named = {"concept": ["race", "sex"]}
scores = cross_val_score(pipeline, table, hired, params=named)
# --
print(f"accuracy on the task, the concepts erased in every fold: {scores.mean():.2f}")
print(eraser.certificate_)
