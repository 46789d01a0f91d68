"""The scikit-learn contract, for every registered eraser."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import expunge as ex

VARIANTS = [
    *(cls() for cls in ex.ERASERS.values()),
    ex.RLACE(fit_intercept=False, loss="squared"),
    ex.RLACE(loss="hinge"),
    ex.RayleighEraser(objective="pca"),
    ex.RayleighEraser(objective="cca"),
]


@parametrize_with_checks(VARIANTS)
def test_scikit_learn_checks(estimator, check):
    check(estimator)
