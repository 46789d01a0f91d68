"""The benchmark of clusters, on few rows."""

import importlib.util
import sys
from pathlib import Path

import pytest

import expunge as ex

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    spec = importlib.util.spec_from_file_location("bench_dask", BENCHMARKS / "bench_dask.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_dask", module)
    spec.loader.exec_module(module)
    return module


def test_it_prints_its_ratios(bench, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(bench, "SHARD", 1000)
    bench.write(tmp_path / "vectors", 3000)
    assert ex.open_rows(tmp_path / "vectors").n_samples == 3000
    bench.speed(tmp_path / "vectors")
    printed = capsys.readouterr().out
    assert "one worker / two workers" in printed
    assert "two workers / the home of files" in printed


def test_workers_are_watched(bench):
    with bench.workers(1) as cluster, bench.Peak(cluster) as peak:
        peak.stop.wait(0.2)
    assert peak.most > 1 << 20
