"""Groups and rows without labels in what stands around a fit: comparisons and audits."""

import numpy as np
import pytest
from numpy.random import default_rng

import expunge as ex
from expunge.audit.held_out import held_out
from expunge.inputs import check_concept, check_rows


def people(n_people=120, each=5, d=6, seed=0):
    """Rows of people, with a label for each person: rows of one are nearly copies."""
    rng = default_rng(seed)
    label = rng.integers(0, 2, n_people)
    person = np.repeat(np.arange(n_people), each)
    own = rng.normal(size=(n_people, d)) + 2 * np.outer(label, np.eye(d)[0])
    return own[person] + 0.05 * rng.normal(size=(len(person), d)), label[person], person


def test_no_person_is_on_both_sides():
    X, y, person = people()
    rows, concept = check_rows(X), check_concept(y, len(y))
    test = held_out(rows, [concept], 0.3, 0, person)
    assert 100 < len(test) < 260
    assert not np.intersect1d(person[test], np.delete(person, test)).size
    alone = held_out(rows, [concept], 0.3, 0)
    assert np.intersect1d(person[alone], np.delete(person, alone)).size  # without groups they are


def test_groups_widen_what_an_audit_says():
    X, y, person = people(each=20)
    first = person < 60
    eraser = ex.LEACE().fit(X[first], y[first], groups=person[first])
    assert eraser.erasure_.meta["fit"]["effective_n"] < 100  # of 1,200 rows of 60 people
    new = {"X_test": X[~first], "y_test": y[~first], "probes": "linear", "fresh": True}
    plain, by_person = ex.audit(eraser, **new), ex.audit(eraser, **new, groups=person[~first])
    widths = []
    for found in (plain, by_person):
        strongest = found.to_dict()["fresh_rows"]["after"]["linear"]["strongest"]
        widths.append(strongest["high"] - strongest["low"])
    assert widths[1] > 1.5 * widths[0]
    with pytest.raises(ex.InputError, match="two names"):
        ex.audit(eraser, **new, groups=person[~first], ids=person[~first])


def test_a_comparison_uses_rows_without_labels():
    rng = default_rng(1)
    y = rng.integers(0, 2, 4200)
    X = rng.normal(size=(4200, 15)) + 4 * np.outer(y, np.eye(15)[0])
    few = {"methods": ["LEACE", "INLP"], "probes": "linear", "runs": 2, "test_size": 0.5}
    alone = ex.compare(X[:200], y[:200], **few)
    helped = ex.compare(X[:200], y[:200], **few, unlabelled=X[200:])
    assert {row.method for row in helped.rows} == {"nothing", "LEACE", "INLP"}
    found = [{row.method: row.fresh.mean for row in table.rows} for table in (alone, helped)]
    assert found[1]["LEACE"] < found[0]["LEACE"]
    assert found[1]["INLP"] == found[0]["INLP"]
