"""A fit by Ray: moments of each part where it lies, merged two by two; only they travel."""

import numpy as np
import ray

import expunge as ex
from expunge.inputs import check_concept

rng = np.random.default_rng(0)
y = rng.integers(0, 2, 4000)
X = rng.normal(size=(4000, 8)) + np.outer(y, np.arange(8) / 4)

ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
parts = [ray.put(part) for part in zip(np.array_split(X, 8), np.array_split(y, 8), strict=True)]


@ray.remote
def moments(part):
    return ex.Moments.of(part[0], check_concept(part[1], len(part[1]), whole=False))


merge = ray.remote(ex.Moments.merge)
sums = [moments.remote(part) for part in parts]
while len(sums) > 1:
    sums = [*sums[2:], merge.remote(*sums[:2])]
eraser = ex.LEACE().fit_moments(ray.get(sums[0]))

print(eraser, "on", eraser.erasure_.meta["n"], "rows")
print(eraser.certificate_)
alone = ex.LEACE().fit(X, y).erasure_
print(f"against one machine: {np.abs(eraser.erasure_.matrix() - alone.matrix()).max():.0e}")
ray.shutdown()
