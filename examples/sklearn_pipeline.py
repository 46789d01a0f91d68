"""Erase one thing and predict another: a Pipeline, a grid over the rank, `concept=` by routing."""

import sklearn
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import expunge as ex

sklearn.set_config(enable_metadata_routing=True)

X, digit = load_digits(return_X_y=True)
task = digit >= 5  # to be predicted
parity = digit % 2  # to be erased

pipeline = make_pipeline(
    StandardScaler(),
    ex.RLACE().set_fit_request(concept=True),  # the concept goes here, and only here
    LogisticRegression(max_iter=2000),
)
search = GridSearchCV(pipeline, {"rlace__rank": [1, 8, 32]}, cv=5)
search.fit(X, task, concept=parity)

for parameters, score in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
):
    print(f"rank {parameters['rlace__rank']:>2}: accuracy on the task {score:.3f}")
best = search.best_estimator_
probe = LogisticRegression(max_iter=2000).fit(best[:-1].transform(X), parity)
print(f"accuracy of a linear probe for parity: {probe.score(best[:-1].transform(X), parity):.3f}")
print(f"share of the commoner parity: {max(parity.mean(), 1 - parity.mean()):.3f}")
print(best["rlace"].certificate_)
