"""Single cells: a batch and the depth of sequencing erased, the cell types kept."""

import anndata
import numpy as np
from sklearn.linear_model import LogisticRegression

import expunge as ex

rng = np.random.default_rng(0)
batch, kind = rng.integers(0, 3, 3000), rng.integers(0, 4, 3000)
depth = rng.lognormal(8, 0.4, 3000)
space = rng.normal(size=(3000, 20)) + 2 * np.eye(20)[batch] + 3 * np.eye(20)[kind + 2]
space[:, 7] += np.log(depth)
adata = anndata.AnnData(
    obs={"batch": batch.astype(str), "cell_type": kind.astype(str), "n_counts": depth},
    shape=(3000, 0),
)
adata.obsm["X_pca"] = space.astype(np.float32)

# -- erase: the shape of scanpy.external.pp.harmony_integrate
keys = ["batch", "n_counts"]
ex.integrations.anndata.erase_obs(adata, keys, basis="X_pca", keep="cell_type")
# --
for name in ("batch", "cell_type"):
    for basis in ("X_pca", "X_pca_erased"):
        X, y = adata.obsm[basis], adata.obs[name]
        right = LogisticRegression(max_iter=2000).fit(X[:2000], y[:2000]).score(X[2000:], y[2000:])
        print(f"{basis}: a probe is right on the {name} of {right:.0%} of held-out cells")
print(adata.uns["expunge"]["X_pca_erased"]["certificate"])
