"""Files larger than memory: time and memory of `fit` and `apply` beside plain NumPy and pyarrow.

Makes vectors of 768 float16 numbers as one ``.npy`` and as eight shards of parquet with row groups
of 131,072 rows (4,000,000 rows are 6 GB each), and runs in turn, each in a process of its own, the
command and a plain twin. The twins, all on blocks of 32,768 rows (parquet is copied by row groups):

- read: ``numpy.fromfile`` or ``ParquetFile.iter_batches``; no number is looked at.
- convert: the same, and every number converted to float64, 512 rows at a time in the same memory.
- sum: as read, and the sum of every column in float32, as no fit can do without the numbers.
- copy: the same bytes are written anew, unchanged, with an fsync as `apply` does.
- gram: read, converted to float32, and one ``x.T @ x`` a block.

Printed are ratios of the time on the wall, the time of the processor on both sides (which other
work on the machine changes less), and the peak memory of every process. ``--rows 50000``
tries it out; start-up then decides the ratios.

    python benchmarks/bench_files.py --rows 4000000 --folder /a/disk/with/25/GB
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import machine, show

BLOCK = 1 << 15  # rows of a plain block
NEEDED = 3.5  # times the size of the vectors: two sources, and one copy at a time
GROUP = 4 * BLOCK  # rows of a row group
CLASSES = ("female", "male")

PLAIN = """
import os, sys
import numpy as np
what, source, target, rows, width, block = sys.argv[1:4] + [int(v) for v in sys.argv[4:7]]

def arrays():
    if source.endswith(".npy"):
        with open(source, "rb") as stream:
            np.lib.format.read_magic(stream)
            np.lib.format.read_array_header_1_0(stream)
            for lo in range(0, rows, block):
                count = min(block, rows - lo) * width
                yield np.fromfile(stream, np.float16, count).reshape(-1, width)
        return
    import pyarrow.parquet as pq
    for name in sorted(os.listdir(source)):
        for batch in pq.ParquetFile(os.path.join(source, name)).iter_batches(block):
            column = batch.column("embedding")
            yield column.flatten().to_numpy(zero_copy_only=True).reshape(-1, width)

if what == "read":
    for X in arrays():
        X[0, 0]
elif what == "convert":
    room = np.empty((512, width))
    for X in arrays():
        for lo in range(0, len(X), 512):
            part = X[lo : lo + 512]
            np.copyto(room[: len(part)], part)
elif what == "sum":
    total = np.zeros(width, np.float32)
    for X in arrays():
        total += X.astype(np.float32).sum(axis=0)
elif what == "gram":
    total = np.zeros((width, width), np.float32)
    for X in arrays():
        wide = X.astype(np.float32)
        total += wide.T @ wide
elif source.endswith(".npy"):  # read and write
    with open(target, "wb") as stream:
        np.lib.format.write_array_header_1_0(
            stream, {"descr": "<f2", "fortran_order": False, "shape": (rows, width)}
        )
        for X in arrays():
            X.tofile(stream)
        stream.flush()
        os.fsync(stream.fileno())
else:
    import pyarrow.parquet as pq
    os.makedirs(target)
    for name in sorted(os.listdir(source)):
        file = pq.ParquetFile(os.path.join(source, name))
        with open(os.path.join(target, name), "wb") as stream:
            with pq.ParquetWriter(stream, file.schema_arrow) as writer:
                for group in range(file.num_row_groups):
                    writer.write_table(file.read_row_group(group))
            stream.flush()
            os.fsync(stream.fileno())
"""


def make(folder: Path, rows: int, width: int, shards: int) -> None:
    """One `.npy` with labels beside it, and shards of parquet with a column of labels."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    gap = rng.normal(size=width).astype(np.float32) / 4
    pool = rng.normal(size=(BLOCK, width)).astype(np.float32)
    labels = rng.integers(0, 2, rows).astype(np.int8)
    np.save(folder / "labels.npy", labels)
    (folder / "shards").mkdir()
    out = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float16, (rows, width))
    for number, part in enumerate(np.array_split(np.arange(rows), shards)):
        writer, held = None, []
        for lo in range(part[0], part[-1] + 1, BLOCK):
            hi = min(lo + BLOCK, part[-1] + 1)
            turned = np.roll(pool[: hi - lo], int(rng.integers(width)), axis=1)
            X = (turned + np.outer(labels[lo:hi], gap)).astype(np.float16)
            out[lo:hi] = X
            table = pa.table(
                {
                    "gender": pa.array(np.array(CLASSES)[labels[lo:hi]]),
                    "embedding": pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), width),
                }
            )
            if writer is None:
                writer = pq.ParquetWriter(
                    folder / "shards" / f"part-{number:03}.parquet", table.schema
                )
            held.append(table)
            if len(held) * BLOCK == GROUP or hi == part[-1] + 1:
                writer.write_table(pa.concat_tables(held))
                held = []
        if writer is not None:
            writer.close()
    out.flush()


def measured(command: list[str], folder: Path) -> tuple[float, float, float]:
    """Seconds on the wall and of the processor, and peak memory in GB, of a process."""
    start = time.perf_counter()
    child = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)[:200]} ended with {child.returncode}")
    factor = 1 if sys.platform == "darwin" else 1024
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * factor / 1e9


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def compare(folder: Path, source: str, rows: int, width: int, memory: str) -> None:
    """All claims about one of the two sources."""
    ending = ".npy" if source.endswith(".npy") else ""
    concept = "labels.npy" if ending else "gender"

    def plain(what: str) -> tuple[float, float, float]:
        target = f"copy{ending}"
        numbers = [str(rows), str(width), str(BLOCK)]
        found = measured([sys.executable, "-c", PLAIN, what, source, target, *numbers], folder)
        remove(folder / target)
        return found

    def ours(*arguments: str) -> tuple[float, float, float]:
        command = [sys.executable, "-m", "expunge.cli", *arguments, "--memory", memory]
        found = measured(command, folder)
        remove(folder / f"clean{ending}")
        return found

    def fit(method: str) -> tuple[float, float, float]:
        out = f"{method}.safetensors"
        return ours("fit", source, "--concept", concept, "--method", method, "-o", out)

    claims = [
        ("fit --method rlace / reading", lambda: plain("read"), lambda: fit("rlace"), 2.5),
        (
            "fit --method rlace / reading and converting",
            lambda: plain("convert"),
            lambda: fit("rlace"),
            2.5,
        ),
        ("fit --method rlace / reading and a sum", lambda: plain("sum"), lambda: fit("rlace"), 2.5),
        (
            "apply / reading and writing",
            lambda: plain("copy"),
            lambda: ours("apply", "rlace.safetensors", source, "-o", f"clean{ending}"),
            2.5,
        ),
        (
            "fit --method leace / reading and x.T @ x",
            lambda: plain("gram"),
            lambda: fit("leace"),
            1.5,
        ),
    ]
    for claim, base, work, target in claims:
        (slow, busy, used), (quick, plain_busy, plainly) = work(), base()
        show(f"{source}: {claim} ({slow:.1f} s / {quick:.1f} s)", slow / quick, target)
        print(f"  of the processor: {busy:.1f} s / {plain_busy:.1f} s = {busy / plain_busy:.2f}")
        show(f"{source}: {claim.split(' / ')[0]}, peak GB (plain {plainly:.2f})", used, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--shards", type=int, default=8)
    parser.add_argument("--memory", default="1GB", help="of the commands (--memory)")
    parser.add_argument("--folder", type=Path, help="on a disk with room for four times the rows")
    parser.add_argument("--make", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.make:  # in a process of its own: a child starts with the peak memory of its parent
        make(asked.make, asked.rows, asked.width, asked.shards)
        return
    size = 2 * asked.rows * asked.width / 1e9
    room = shutil.disk_usage(asked.folder or tempfile.gettempdir()).free / 1e9
    if room < NEEDED * size:
        print(
            f"not run: it needs {NEEDED * size:.0f} GB of disk and there are {room:.0f}; --folder"
        )
        return
    print(f"{machine()}; {asked.rows:,} x {asked.width} float16, {size:.2f} GB")
    with tempfile.TemporaryDirectory(dir=asked.folder) as name:
        folder = Path(name)
        numbers = [f"--{key}={getattr(asked, key)}" for key in ("rows", "width", "shards")]
        subprocess.run([sys.executable, __file__, "--make", name, *numbers], check=True)
        for source in ("rows.npy", "shards"):
            compare(folder, source, asked.rows, asked.width, asked.memory)


if __name__ == "__main__":
    main()
