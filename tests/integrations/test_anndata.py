"""Single cells: what scanpy users call, on cells in memory, in a file and in blocks."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

anndata = pytest.importorskip("anndata")

import expunge as ex  # noqa: E402
from expunge.integrations.anndata import erase_obs, erasure_of  # noqa: E402

N, D = 300, 6
# versions of anndata that let pandas 3 in set an option that this has no use for
pytestmark = pytest.mark.filterwarnings("ignore:The 'mode.chained_assignment' option")


def classes(names, codes):
    """A column as files of AnnData hold it, whose text is no type of its own as in pandas 3."""
    return pd.Categorical.from_codes(codes, pd.Index(names, dtype=object))


def cells(seed=0):
    """Cells of two batches and three donors, of two types, with counts that show in the PCA."""
    rng = np.random.default_rng(seed)
    batch, donor, kind = rng.integers(0, 2, N), rng.integers(0, 3, N), rng.integers(0, 2, N)
    counts = rng.integers(500, 5000, N)
    X = rng.normal(size=(N, D)) + 2 * np.outer(batch, np.eye(D)[0] + np.eye(D)[4])
    X += np.eye(D)[donor + 1] + 3 * np.outer(kind, np.eye(D)[4] + np.eye(D)[5])
    X += np.outer(counts / 1000, np.eye(D)[3])
    obs = pd.DataFrame(
        {
            "batch": classes(["b0", "b1", "none"], batch),
            "donor": classes(["d0", "d1", "d2"], donor),
            "type": classes(["B", "T"], kind),
            "n_counts": counts,
        },
        index=pd.Index([f"cell{i}" for i in range(N)], dtype=object),
    )
    var = pd.DataFrame(index=pd.Index([f"g{i}" for i in range(D)], dtype=object))
    adata = anndata.AnnData(np.exp(X / 10).astype(np.float32), obs=obs, var=var)
    adata.obsm["X_pca"] = X.astype(np.float32)
    return adata


def gap(X, labels):
    X, labels = np.asarray(X, dtype=float), np.asarray(labels)
    means = [X[labels == label].mean(axis=0) - X.mean(axis=0) for label in np.unique(labels)]
    return np.abs(means / X.std(axis=0)).max()


def test_a_batch_is_erased_and_proven():
    adata = cells()
    before = adata.obsm["X_pca"].copy()
    assert gap(before, adata.obs["batch"]) > 0.3
    eraser = erase_obs(adata, "batch")
    clean = adata.obsm["X_pca_erased"]
    assert clean.dtype == np.float32
    assert gap(clean, adata.obs["batch"]) < 1e-5
    np.testing.assert_array_equal(adata.obsm["X_pca"], before)
    kept = adata.uns["expunge"]["X_pca_erased"]
    assert kept["erased"]
    assert kept["key"] == ["batch"]
    assert kept["certificate"].startswith("erased: every linear predictor")
    np.testing.assert_array_equal(eraser.transform(before), clean)


def test_several_keys_and_what_is_kept():
    adata = cells()
    kinds = {"n_counts": "continuous"}
    keys = ["batch", "donor", "n_counts"]
    erase_obs(adata, keys, adjusted_basis="plain", concept_type=kinds)
    erase_obs(adata, keys, adjusted_basis="kept", keep="type", concept_type=kinds)
    assert adata.uns["expunge"]["kept"]["method"] == "SPLINCE"
    assert set(adata.uns["expunge"]) == {"plain", "kept"}
    kind = (adata.obs["type"] == "T").to_numpy()

    def covariance(X):
        return np.cov(X.T.astype(float), kind)[-1, :-1]

    start = covariance(adata.obsm["X_pca"])
    for name in ("plain", "kept"):
        X = adata.obsm[name]
        for key in ("batch", "donor"):
            assert gap(adata.obsm["X_pca"], adata.obs[key]) > 0.3
            assert gap(X, adata.obs[key]) < 1e-5
        assert np.abs(np.corrcoef(X.T.astype(float), adata.obs["n_counts"])[-1, :-1]).max() < 1e-5
    np.testing.assert_allclose(covariance(adata.obsm["kept"]), start, atol=1e-5)
    assert np.abs(covariance(adata.obsm["plain"]) - start).max() > 0.01
    erase_obs(adata, "n_counts", adjusted_basis="one", concept_type=kinds)
    assert gap(adata.obsm["one"], adata.obs["batch"]) > 0.3


def test_it_is_saved_and_used_for_other_cells(tmp_path):
    adata = cells()
    erase_obs(adata, "batch", keep="type", missing="unlabelled")
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert bool(again.uns["expunge"]["X_pca_erased"]["erased"])
    erasure = erasure_of(again)
    new = cells(1).obsm["X_pca"]
    np.testing.assert_allclose(erasure(new), erasure_of(adata)(new), atol=1e-6)
    assert erasure.meta["method"] == "SPLINCE"
    with pytest.raises(ex.InputError, match="was not made by erase_obs"):
        erasure_of(again, "X_umap")


def test_a_backed_file_is_erased_in_blocks(tmp_path, monkeypatch):
    path = tmp_path / "cells.h5ad"
    cells().write_h5ad(path)
    with pytest.raises(ex.InputError, match="backed='r\\+'"):
        erase_obs(anndata.read_h5ad(path, backed="r"), "batch", "X", "clean")
    adata = anndata.read_h5ad(path, backed="r+")
    erase_obs(adata, "batch")  # an embedding of a backed file is in memory
    assert gap(adata.obsm["X_pca_erased"], adata.obs["batch"]) < 1e-5
    monkeypatch.setattr("expunge.rows.lazy_rows.SPAN", 64)
    monkeypatch.setattr("expunge.rows.base.SPAN", 64)
    sizes = []
    real = ex.Erasure.transform
    monkeypatch.setattr(
        ex.Erasure, "transform", lambda e, X, out=None: sizes.append(len(X)) or real(e, X, out)
    )
    assert gap(adata.X[:], adata.obs["batch"]) > 0.3
    erase_obs(adata, "batch", "X", "clean")
    assert sizes[-5:] == [64, 64, 64, 64, 44]
    assert gap(adata.layers["clean"][:], adata.obs["batch"]) < 1e-4
    erase_obs(adata, ["batch", "donor"], "X", "clean")  # once more, over the first
    adata.file.close()
    found = anndata.read_h5ad(path)
    assert list(found.layers) == ["clean"]
    assert gap(found.layers["clean"], found.obs["donor"]) < 1e-4


def test_an_interrupted_write_leaves_no_layer(tmp_path, monkeypatch):
    path = tmp_path / "cells.h5ad"
    cells().write_h5ad(path)
    adata = anndata.read_h5ad(path, backed="r+")
    monkeypatch.setattr("expunge.rows.lazy_rows.SPAN", 64)
    real, calls = ex.Erasure.transform, []

    def breaks(e, X, out=None):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(e, X, out)

    with monkeypatch.context() as broken:
        broken.setattr(ex.Erasure, "transform", breaks)
        with pytest.raises(KeyboardInterrupt):
            erase_obs(adata, "batch", "X", "clean")
    assert "clean" not in adata.file["layers"]
    assert "expunge" not in adata.uns
    erase_obs(adata, "batch", "X", "clean")
    assert list(adata.file["layers"]) == ["clean"]


def test_blocks_of_dask():
    da = pytest.importorskip("dask.array")
    adata = cells()
    X = adata.obsm["X_pca"]
    adata.obsm["X_pca"] = da.from_array(X, chunks=(100, D))
    erase_obs(adata, "batch")
    clean = adata.obsm["X_pca_erased"]
    assert isinstance(clean, da.Array)
    assert gap(clean.compute(), adata.obs["batch"]) < 1e-5


def test_genes_and_layers_and_views():
    adata = cells()
    adata.layers["scaled"] = np.asarray(adata.X) * 2
    erase_obs(adata, "batch", "scaled", "scaled_erased")
    erase_obs(adata, "batch", "X", "X_erased")
    assert gap(adata.X, adata.obs["batch"]) > 0.3
    for name in ("scaled_erased", "X_erased"):
        assert gap(adata.layers[name], adata.obs["batch"]) < 1e-4
    view = adata[adata.obs["type"] == "T"]
    with pytest.warns(UserWarning, match="view"):  # anndata's own: the view becomes a copy
        erase_obs(view, "batch", adjusted_basis="own")
    assert gap(view.obsm["own"], view.obs["batch"]) < 1e-5
    assert "own" not in adata.obsm
    frame = pd.DataFrame(adata.obsm["X_pca"], adata.obs_names, [f"PC{i}" for i in range(D)])
    adata.obsm["named"] = frame.astype(float)
    erase_obs(adata, "batch", "named", "named_erased")
    assert gap(adata.obsm["named_erased"], adata.obs["batch"]) < 1e-8


def test_what_is_wrong_is_said(tmp_path):
    adata = cells()
    for call, match in [
        (lambda: erase_obs(adata, "bach"), "no column 'bach'; the nearest is 'batch'"),
        (lambda: erase_obs(adata, "batch", "X_pc"), "no embedding 'X_pc'; the nearest is 'X_pca'"),
        (lambda: erase_obs(adata.obs, "batch"), "no AnnData"),
        (lambda: erase_obs(adata, "batch", keep="type", eraser=ex.LEACE()), "keeps nothing"),
        (lambda: erase_obs(adata, "batch", eraser=ex.OracleLEACE()), "needs the concept of each"),
        (lambda: ex.LEACE().fit(adata, adata.obs["batch"]), "erase_obs.adata, key."),
        (lambda: ex.LEACE().fit(adata, concept="batch"), "erase_obs.adata, key."),
        (lambda: ex.Erasure.identity(D)(adata), "erase_obs.adata, key."),
    ]:
        with pytest.raises(ex.InputError, match=match):
            call()
    assert "expunge" not in adata.uns
    rest = adata.copy()
    rest.obs["batch"] = rest.obs["batch"].where(np.arange(N) > 20)
    with pytest.raises(ex.InputError, match="missing"):
        erase_obs(rest, "batch")
    eraser = erase_obs(rest, "batch", missing="unlabelled")
    assert eraser.erasure_.meta["n"] == N - 21
    assert rest.obsm["X_pca_erased"].shape == (N, D)
    rest.X = scipy.sparse.csr_matrix(rest.X)
    with pytest.raises(ex.InputError, match="sparse"):
        erase_obs(rest, "donor", "X", "clean")
    rest.write_h5ad(tmp_path / "sparse.h5ad")
    backed = anndata.read_h5ad(tmp_path / "sparse.h5ad", backed="r+")
    with pytest.raises(ex.InputError, match="sparse"):
        erase_obs(backed, "donor", "X", "clean")
    with pytest.raises(ex.InputError, match="view of a file"):
        erase_obs(backed[:10], "donor")


def test_any_eraser_is_taken_and_left_alone():
    adata, eraser = cells(), ex.RLACE()
    fitted = erase_obs(adata, "donor", eraser=eraser)
    assert fitted is not eraser
    assert not hasattr(eraser, "n_features_in_")
    assert gap(adata.obsm["X_pca_erased"], adata.obs["donor"]) < 1e-4
