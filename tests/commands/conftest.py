"""Small tables in real files, shared by the tests of the commands."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from expunge.cli import main

N, D = 600, 8


class People:
    """A table of people in a folder: text, labels and vectors."""

    def __init__(self, folder):
        rng = np.random.default_rng(0)
        self.folder = folder
        self.gender = np.array(["f", "m"])[rng.integers(0, 2, N)]
        self.job = np.array(["cook", "nurse", "smith"])[rng.integers(0, 3, N)]
        self.age = rng.gamma(4.0, 10.0, N)
        self.weight = rng.uniform(0.5, 2.0, N)
        gaps = rng.normal(size=(3, D))
        self.X = rng.normal(size=(N, D)) + np.outer(self.gender == "m", gaps[0])
        self.X += np.outer(self.age / 40, gaps[1]) + np.outer(self.job == "cook", gaps[2])
        self.X = self.X.astype(np.float32)
        self.columns = {
            "text": [f"person {i}" for i in range(N)],
            "gender": self.gender,
            "job": self.job,
            "age": self.age,
            "w": self.weight,
        }

    def path(self, name):
        return str(self.folder / name)

    def vectors(self, X=None):
        X = self.X if X is None else X
        return pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), X.shape[1])

    def table(self, **changed):
        columns = {**self.columns, "embedding": self.vectors(), **changed}
        return pa.table(columns)

    def write(self, name="people.parquet", **changed):
        pq.write_table(self.table(**changed), self.path(name))
        return self.path(name)


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = People(tmp_path)
    found.write()
    return found


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, output, error stream."""

    def done(*arguments):
        code = main([str(argument) for argument in arguments])
        seen = capsys.readouterr()
        return code, seen.out, seen.err

    return done


@pytest.fixture
def refused(run):
    """Run a command that has to fail as bad input does; gives the message."""

    def message(*arguments):
        code, out, err = run(*arguments)
        assert code == 2, out + err
        assert out == ""
        assert len(err.splitlines()) == 1, err
        assert err.startswith("expunge: ")
        return err

    return message
