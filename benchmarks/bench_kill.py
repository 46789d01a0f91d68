"""SIGKILL at random moments of `expunge apply` to eight shards, resumed each time.

Moments are counted from the first sign of writing. Printed is, for each, how many shards were
finished, whether the bytes after ``--resume`` are those of an uninterrupted run, and what else is
left in the folder.

    python benchmarks/bench_kill.py --times 20
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from common import machine

import expunge as ex

SHARDS = 8


def make(folder: Path, rows: int, width: int) -> None:
    rng = np.random.default_rng(0)
    (folder / "shards").mkdir()
    y = rng.integers(0, 2, rows)
    X = (rng.normal(size=(rows, width)) + np.outer(y, rng.normal(size=width))).astype(np.float16)
    for number, part in enumerate(np.array_split(X, SHARDS)):
        np.save(folder / "shards" / f"part-{number}.npy", part)
    ex.LEACE().fit(X.astype(np.float32), y).erasure_.save(folder / "e.safetensors")


def command(target: str) -> list[str]:
    options = ["e.safetensors", "shards", "-o", target, "--resume", "--memory", "16MB"]
    return [sys.executable, "-m", "expunge.cli", "apply", *options]


def started(target: str, folder: Path) -> subprocess.Popen[bytes]:
    """A run that has begun to write."""
    child = subprocess.Popen(command(target), cwd=folder, stdout=subprocess.DEVNULL)
    while child.poll() is None and not any(
        path.name.startswith(f".{target}") for path in folder.iterdir()
    ):
        time.sleep(0.001)
    return child


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def finished(folder: Path) -> int:
    """Whole shards of a run that is not over."""
    hidden = [path for path in folder.iterdir() if path.name.startswith(".")]
    parts = [part for place in hidden for part in place.rglob("part-*.npy")]
    return sum(not part.name.startswith(".") for part in parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    print(f"{machine()}; {asked.rows:,} x {asked.width} float16 in {SHARDS} shards")
    rng = np.random.default_rng(asked.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder, asked.rows, asked.width)
        whole = started("whole", folder)
        start = time.perf_counter()
        assert whole.wait() == 0
        writing = time.perf_counter() - start
        wanted, there = digests(folder / "whole"), {path.name for path in folder.iterdir()}
        print(f"uninterrupted: {writing:.2f} s from the first sign of writing to the end\n")
        print("killed after   shards done   already in place   bytes identical   stray files")
        bad = 0
        for moment in rng.uniform(0, writing, asked.times):
            child = started("clean", folder)
            time.sleep(moment)
            child.send_signal(signal.SIGKILL)
            child.wait()
            ended = (folder / "clean").exists()
            done = SHARDS if ended else finished(folder)
            subprocess.run(command("clean"), cwd=folder, stdout=subprocess.DEVNULL, check=True)
            same = digests(folder / "clean") == wanted
            stray = sorted({path.name for path in folder.iterdir()} - there - {"clean"})
            bad += not same or bool(stray)
            print(
                f"{moment:10.3f} s {done:13} {'yes' if ended else 'no':>18} "
                f"{'yes' if same else 'NO':>17}   {', '.join(stray) or 'none'}"
            )
            shutil.rmtree(folder / "clean")
        print(f"\n{asked.times - bad} of {asked.times} as they should be")
        if bad:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
