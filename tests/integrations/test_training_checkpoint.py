"""Checkpoints: a run that is stopped and resumed is the run that was not, and files run no code."""

import json
import os
import pickle
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import expunge as ex
from expunge.errors import BadArtifact, InputError
from expunge.integrations.adversarial import GradientReversal
from expunge.reproduce.bios.adversarial.training_checkpoint import (
    TrainingState,
    read_checkpoint,
    write_checkpoint,
)


class Fragile(nn.Module):
    """An encoder with dropout that may be told to stop in the middle of training."""

    def __init__(self, stop_at=sys.maxsize, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.3), nn.Tanh(), nn.Linear(8, 4))
        self.left = stop_at

    def forward(self, x):
        self.left -= self.training
        if self.left < 0:
            raise KeyboardInterrupt
        return self.layers(x)


def data(n, seed):
    rng = np.random.default_rng(seed)
    task, concept = rng.integers(0, 2, (2, n))
    X = rng.normal(size=(n, 6))
    X[:, 0] += 2 * task
    X[:, 1] += 2 * concept
    return X, task, concept


TRAIN, DEV = data(120, 0), data(80, 1)


def run(path, encoder=None, **settings):
    chosen = {"steps": 100, "evaluate_every": 20, "learning_rate": 0.02, **settings}
    model = GradientReversal(encoder or Fragile(), checkpoint=path, **chosen)
    return model.fit(*TRAIN, validation=DEV)


def state(model):
    return model.model_.state_dict()


def assert_equal(a, b):
    assert a.result_ == b.result_
    assert all(torch.equal(value, state(b)[name]) for name, value in state(a).items())


@pytest.mark.parametrize("adversary", ["linear", "mlp", None])
def test_a_resumed_run_is_the_run_that_was_not_stopped(tmp_path, adversary):
    whole = run(None, adversary=adversary)
    path = tmp_path / "run.safetensors"
    for stop_at in (35, 30):  # stopped at step 35, then, after going on from 20, at step 50
        with pytest.raises(KeyboardInterrupt):
            run(path, Fragile(stop_at), adversary=adversary)
    resumed = run(path, adversary=adversary)
    assert_equal(whole, resumed)
    assert [p.name for p in tmp_path.iterdir()] == ["run.safetensors"]


def test_resuming_takes_only_the_steps_that_are_missing(tmp_path):
    path = tmp_path / "run.safetensors"
    with pytest.raises(KeyboardInterrupt):
        run(path, Fragile(45))
    run(path, Fragile(60))  # 100 - 40
    assert_equal(run(path, Fragile(0)), run(None))  # nothing is left to do


def test_momentum_is_part_of_the_state(tmp_path):
    path = tmp_path / "run.safetensors"
    run(path, steps=20)
    tensors = load_file(path)
    assert any(value.abs().max() > 0 for key, value in tensors.items() if "momentum." in key)
    edited(path, lambda tensors, meta: [tensors.pop(k) for k in [*tensors] if "momentum." in k])
    other = run(path, steps=40)
    whole = run(None, steps=40)
    assert not torch.equal(state(other)["task.weight"], state(whole)["task.weight"])


def test_a_run_can_be_made_longer_but_not_shorter(tmp_path):
    path = tmp_path / "run.safetensors"
    run(path, steps=40)
    assert_equal(run(path, steps=100), run(None))
    with pytest.raises(InputError, match=r"gone further .* Received step 100 there, steps=60 here"):
        run(path, steps=60)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.01},
        {"weight": 0.5},
        {"adversary": "mlp"},
        {"batch_size": 5},
        {"random_state": 1},
        {"encoder": Fragile(seed=1)},
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, settings):
    path = tmp_path / "run.safetensors"
    run(path, steps=20)
    before = path.read_bytes()
    with pytest.raises(InputError, match="written by another run"):
        run(path, **settings)
    assert path.read_bytes() == before


def test_a_checkpoint_of_other_data_is_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    run(path, steps=20)
    model = GradientReversal(
        Fragile(), checkpoint=path, steps=20, evaluate_every=20, learning_rate=0.02
    )
    X, task, concept = TRAIN
    for train, dev in (
        (data(120, 5), DEV),
        (TRAIN, data(80, 5)),
        ((X, task, 1 - concept), DEV),
    ):
        with pytest.raises(InputError, match="rows="):
            model.fit(*train, validation=dev)
    model.fit(*TRAIN, validation=DEV)


class Malicious:
    def __reduce__(self):
        return os.mkdir, ("executed",)


def test_files_run_no_code_and_damage_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.safetensors"
    run(path, steps=20)
    good = path.read_bytes()
    torch.save({"model": Malicious()}, "torch.pt")
    for bad in (
        pickle.dumps(Malicious()),
        (tmp_path / "torch.pt").read_bytes(),
        good[:-7],
        good[: len(good) // 3],
        b"",
    ):
        path.write_bytes(bad)
        with pytest.raises(BadArtifact, match=r"run\.safetensors"):
            run(path)
        assert path.read_bytes() == bad
    assert not (tmp_path / "executed").exists()


def test_other_safetensors_files_are_refused(tmp_path):
    path = tmp_path / "run.safetensors"
    ex.Erasure([[1.0], [0.0]], [[1.0, 0.0]]).save(path)
    with pytest.raises(BadArtifact, match="not a 'training checkpoint'"):
        run(path)
    save_file({"w": torch.zeros(1)}, path)
    with pytest.raises(BadArtifact, match="not one written by expunge"):
        run(path)
    path.unlink()
    run(path, steps=20)
    with pytest.raises(BadArtifact, match="training checkpoint"):
        ex.Erasure.load(path)


def edited(path, edit):
    tensors = load_file(path)
    with safe_open(path, framework="pt") as file:
        header = json.loads(file.metadata()["expunge"])
    edit(tensors, header["meta"])
    header["format"] = 1  # a file without a checksum: what is edited is refused for its own sake
    header.pop("checksum", None)
    save_file(tensors, path, {"expunge": json.dumps(header)})


@pytest.mark.parametrize(
    "edit",
    [
        lambda tensors, meta: tensors.pop("best.task.weight"),
        lambda tensors, meta: tensors.update({"model.task.bias": torch.zeros(9)}),
        lambda tensors, meta: tensors.update({"momentum.unheard of": torch.zeros(9)}),
        lambda tensors, meta: tensors.update({"else.where": torch.zeros(9)}),
        lambda tensors, meta: meta.update(history=[]),
        lambda tensors, meta: meta.update(history=[{"step": 20}]),
        lambda tensors, meta: meta.pop("history"),
        lambda tensors, meta: meta.pop("identity"),
    ],
)
def test_files_that_are_not_whole_are_refused(tmp_path, edit):
    path = tmp_path / "run.safetensors"
    run(path, steps=20)
    edited(path, lambda tensors, meta: None)
    run(path, steps=20)  # the edit itself does no harm
    edited(path, edit)
    with pytest.raises(BadArtifact, match=r"run\.safetensors"):
        run(path, steps=20)


def test_tied_weights_and_other_types_come_back(tmp_path):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(0)
            self.a, self.b = nn.Linear(6, 6), nn.Linear(6, 6)
            self.b.weight = self.a.weight
            self.norm = nn.BatchNorm1d(6)  # float and integer buffers

        def forward(self, x):
            return self.norm(self.b(torch.tanh(self.a(x))))

    path = tmp_path / "run.safetensors"
    for dtype in (torch.float32, torch.bfloat16):
        path.unlink(missing_ok=True)
        run(path, Tied().to(dtype), steps=40)
        resumed, whole = run(path, Tied().to(dtype)), run(None, Tied().to(dtype))
        assert_equal(resumed, whole)
        assert resumed.encoder_.a.weight is resumed.encoder_.b.weight


STORED = Path(__file__).parents[1] / "data" / "checkpoint_format_1.safetensors"


def test_the_stored_checkpoint_of_format_1_is_still_read():
    found = read_checkpoint(STORED, {"seed": 0})
    assert torch.equal(found.model["w"], torch.ones(2))
    assert torch.equal(found.best["w"], torch.zeros(2, dtype=torch.bfloat16))
    assert found.history == [{"step": 5}]


def test_every_flipped_bit_of_a_checkpoint_is_noticed(tmp_path):
    path = tmp_path / "run"
    best = {"w": torch.linspace(0, 1, 8, dtype=torch.bfloat16)}
    write_checkpoint(path, TrainingState({"w": torch.ones(2)}, {}, best, []), {"seed": 0})
    assert torch.equal(read_checkpoint(path, {"seed": 0}).best["w"], best["w"])
    whole = path.read_bytes()
    for at in range(0, 8 * len(whole), 37):
        damaged = bytearray(whole)
        damaged[at // 8] ^= 1 << at % 8
        path.write_bytes(damaged)
        with pytest.raises(BadArtifact):
            read_checkpoint(path, {"seed": 0})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes in folders here")
def test_a_pipe_is_no_checkpoint(tmp_path):
    os.mkfifo(tmp_path / "run")
    with pytest.raises(BadArtifact, match="pipe"):
        read_checkpoint(tmp_path / "run", {})
    with pytest.raises(InputError, match="pipe"):
        write_checkpoint(tmp_path / "run", TrainingState({}, {}, {}, []), {})
