"""Labels that are called as missing ones are: classes, but not without a word."""

import warnings

import numpy as np
import pytest

import expunge as ex

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 9))


@pytest.mark.parametrize("word", ["nan", "NaN", "NA", "N/A", "None", "null", "<NA>", ""])
@pytest.mark.parametrize("kind", ["text", "object", "several"])
def test_words_for_missing_labels_are_named(word, kind):
    y = np.array(["f", "m", word])[np.arange(60) % 3]
    y[:4] = "f"
    told = {"text": y, "object": y.astype(object), "several": {"sex": y, "half": np.arange(60) % 2}}
    with pytest.warns(ex.MissingAsClass) as caught:
        eraser = ex.LEACE().fit(X, told[kind])
    said = str(caught[0].message)
    assert f"{word!r} in 19 of 60 rows" in said
    assert "leave these rows out" in said
    assert kind == "several" or caught[0].filename == __file__
    labels = map(str, eraser.erasure_.meta["concept"]["labels"])
    assert any(label.strip("'").endswith(word) for label in labels)


def test_words_on_a_cluster_are_named():
    da = pytest.importorskip("dask.array")
    y = np.array(["f", "m", "nan"])[np.arange(60) % 3]
    with pytest.warns(ex.MissingAsClass, match="'nan' in 20 of 60 rows"):
        ex.LEACE().fit(da.from_array(X, chunks=(20, 9)), da.from_array(y, chunks=20))


def test_words_of_people_are_left_alone():
    y = np.array(["none", "some", "nancy", "Na"])[np.arange(60) % 4]
    with warnings.catch_warnings():
        warnings.simplefilter("error", ex.MissingAsClass)
        ex.SAL(rank=1).fit(X, y)
