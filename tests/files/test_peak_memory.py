"""Peak memory of a rewrite is a small multiple of what was allowed, whatever a file packs at once.

Peaks are those of a process of its own, beyond what it holds once everything is imported.
"""

import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

N, D = 60_000, 768  # 92 megabytes, in one row group or record batch
BUDGET = 64_000_000

MEASURE = """
    import sys
    from pathlib import Path
    import numpy as np
    import pyarrow, pyarrow.parquet, pyarrow.feather
    import expunge as ex
    from expunge.files import rewrite

    def held(name):
        lines = Path("/proc/self/status").read_text().split("\\n")
        return 1024 * int(next(line for line in lines if line.startswith(name)).split()[1])

    source, small, target, normalize = sys.argv[1:5]
    line = np.zeros((1, {d}))
    line[0, 3] = 1
    erasure = ex.Erasure(line.T, line)
    rewrite(small, erasure, target)
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = held("VmRSS")
    rewrite(source, erasure, target, memory={budget}, normalize=normalize == "True")
    print(held("VmHWM") - before)
"""


def rows(n):
    """Numbers of float16 that do not repeat much."""
    return np.random.default_rng(0).integers(0, 0x3C00, size=(n, D), dtype=np.uint16).view("f2")


def lists(X, *, fixed):
    values = pa.array(X.ravel())
    if fixed:
        return pa.table({"x": pa.FixedSizeListArray.from_arrays(values, D)})
    offsets = pa.array(np.arange(len(X) + 1) * D, pa.int32())
    return pa.table({"x": pa.ListArray.from_arrays(offsets, values)})


def write(path, X, *, fixed=True):
    if path.suffix == ".npy":
        np.save(path, X)
    elif path.suffix == ".parquet":
        pq.write_table(lists(X, fixed=fixed), path, row_group_size=len(X), use_dictionary=False)
    else:
        with pa.ipc.new_file(str(path), lists(X, fixed=fixed).schema) as writer:
            writer.write_table(lists(X, fixed=fixed), max_chunksize=len(X))


@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize(
    ("source", "fixed", "target", "normalize"),
    [
        ("npy", True, "npy", True),
        ("npy", True, "parquet", False),
        ("parquet", False, "parquet", True),
        ("arrow", True, "arrow", False),
    ],
)
def test_peak_of_a_rewrite(source, fixed, target, normalize, tmp_path):
    for name, n in (("large", N), ("small", 50)):
        write(tmp_path / f"{name}.{source}", rows(n), fixed=fixed)
    names = [str(tmp_path / f"{name}.{source}") for name in ("large", "small")]
    code = textwrap.dedent(MEASURE.format(d=D, budget=BUDGET))
    command = [sys.executable, "-W", "error", "-c", code, *names]
    command += [str(tmp_path / f"clean.{target}"), str(normalize)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 3 * BUDGET
