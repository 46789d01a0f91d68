"""Small real audits: words with everything, a number, training rows only."""

import copy

import numpy as np
import pytest
from pages import Page

import expunge as ex
from expunge.data import load_glove
from expunge.report import render
from expunge.report.values import cleaned

MODEL = {  # what the evaluation of a scrubbed model gives
    "layers": [f"encoder.layer.{i}" for i in range(4)],
    "texts": 600,
    "chance": 0.5,
    "probes": {
        "before": [0.935, 0.93, 0.948, 0.968],
        "after": [0.605, 0.61, 0.6, 0.548],
        "control": [0.933, 0.93, 0.952, 0.96],
    },
    "loss": {"before": 5.51, "after": 5.64, "control": 5.52},
    "perplexity": {"before": 45.57, "after": 49.87, "control": 45.89},
    "kl": {"after": 0.21, "control": 0.02},
    "task": {"before": 0.863, "after": 0.845, "control": 0.857},
    "ranks": [1, 1, 2, 1],
}


@pytest.fixture(scope="session")
def _words():
    """Gendered words with a task, a vocabulary and a spectrum; all sections are there."""
    glove = load_glove()
    names = np.array(["male-biased", "female-biased"])
    train, test = slice(0, 700), slice(0, 500)
    y_train, y_test = names[glove.train.y[train]], names[glove.test.y[test]]
    words = list(glove.train.words[train]), list(glove.test.words[test])
    task = tuple(np.array(["long" if len(w) > 7 else "short" for w in part]) for part in words)
    eraser = ex.RLACE().fit(glove.train.X[train], y_train)
    audit = ex.audit(
        eraser.erasure_,
        glove.train.X[train],
        y_train,
        glove.test.X[test],
        y_test,
        words=words,
        task=task,
        vocabulary=(glove.words[:4000], glove.vectors[:4000]),
        probes=["logistic regression, ridge 0.01", "linear SVM", "nearest neighbours"],
    )
    return {**cleaned(audit.to_dict()), "spectrum": [1.0, 0.3, 0.2, *[0.0] * 97], "model": MODEL}


@pytest.fixture
def words(_words):
    return copy.deepcopy(_words)


@pytest.fixture(scope="session")
def text(_words):
    """The page of that audit."""
    return render(_words)


@pytest.fixture(scope="session")
def page(text):
    """The same, read back."""
    return Page(text)


@pytest.fixture(scope="session")
def _number():
    rng = np.random.default_rng(0)
    z = rng.normal(size=600)
    X = rng.normal(size=(600, 6)) + np.outer(z, [1, 0, 2, 0, 0, 0])
    e = ex.RLACE(loss="squared").fit(X[:300], z[:300]).erasure_
    return ex.audit(e, X[:300], z[:300], X[300:], z[300:]).to_dict()


@pytest.fixture
def number(_number):
    return copy.deepcopy(_number)


@pytest.fixture(scope="session")
def _training_only():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 5)) + 2 * np.outer(y, [1, 0, 1, 0, 0])
    return ex.audit(ex.RLACE().fit(X, y).erasure_, X, y, probes="linear").to_dict()


@pytest.fixture
def training_only(_training_only):
    return copy.deepcopy(_training_only)
