"""Biographies as vectors: encoded once, fine-tuned for real on a very small model, resumed."""

import json

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from expunge.cli import main
from expunge.errors import InputError
from expunge.reproduce.bios.biographies import load
from expunge.reproduce.bios.encodings import _minilm, frozen, load_encoder, trained
from expunge.reproduce.bios.synthetic import synthetic_biographies
from expunge.reproduce.runner.declaration import RunSettings
from expunge.reproduce.runner.runs import ExperimentRun


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """A BERT of one layer and 16 columns, with random weights and MiniLM's tokenizer."""
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    BertModel(BertConfig(**sizes, intermediate_size=32)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(_minilm(), local_files_only=True).save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    file = tmp_path_factory.mktemp("corpus") / "bios.jsonl"
    names = ("text", "profession", "gender")
    records = zip(*synthetic_biographies(240), strict=True)
    rows = [dict(zip(names, record, strict=True)) for record in records]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    return file


def a_run(corpus, tiny, out, tell=None, number=0):
    settings = RunSettings(2, options={"encoder": tiny, "steps": "40"})
    tell = tell or (lambda share, note="": None)
    return ExperimentRun(out, load(corpus, settings), settings, number, tell)


def test_all_runs_share_one_file_of_encodings(corpus, tiny, tmp_path):
    first = frozen(a_run(corpus, tiny, tmp_path))
    (file,) = tmp_path.glob("*.npz")
    written = file.stat().st_mtime_ns
    second = a_run(corpus, tiny, tmp_path, number=1)
    assert np.array_equal(frozen(second), first)
    assert file.stat().st_mtime_ns == written
    model, tokenizer = load_encoder(tiny)
    texts = list(second.data.texts[:3])
    with torch.inference_mode():
        inputs = tokenizer(texts, padding=True, return_tensors="pt")
        expected = model(**inputs).last_hidden_state[:, 0]
    np.testing.assert_allclose(first[:3], expected, atol=1e-5)
    again = load(file, RunSettings(1)).content
    assert np.array_equal(again.vectors, first)
    assert list(again.gender) == list(second.data.gender)


def test_a_training_that_was_stopped_goes_on(corpus, tiny, tmp_path):
    whole = trained(a_run(corpus, tiny, tmp_path / "whole"), "linear")
    seen = []

    def stop(share, note):
        seen.append(note)
        if "step 25 " in note:
            raise KeyboardInterrupt

    broken = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        trained(a_run(corpus, tiny, broken, stop), "linear")
    assert list(broken.rglob("*.safetensors"))
    later = []
    resumed = trained(a_run(corpus, tiny, broken, lambda share, note: later.append(note)), "linear")
    assert seen[0] == "(step 1 of 40)"
    assert later[0] == "(step 21 of 40)"  # evaluated, and written, after every tenth step
    assert np.array_equal(resumed["vectors"], whole["vectors"])
    assert not list(broken.rglob("*.safetensors"))


def test_training_changes_the_encodings_and_the_adversary_answers(corpus, tiny, tmp_path):
    run = a_run(corpus, tiny, tmp_path)
    plain, against = trained(run, None), trained(run, "mlp")
    assert np.abs(plain["vectors"] - frozen(run)).max() > 1e-3
    assert np.abs(plain["vectors"] - against["vectors"]).max() > 1e-6
    assert np.isnan(plain["adversary"])
    assert 0 < against["adversary"] < 1
    assert plain["step"] in (10, 20, 30, 40)


def test_the_whole_table_by_the_command(corpus, tiny, tmp_path, capsys):
    out = tmp_path / "out"
    chosen = ["nurse", "plumber", "surgeon", "dancer"]
    options = [f"encoder={tiny}", "steps=8", "pooling=mean", f"professions={','.join(chosen)}"]
    words = [word for option in options for word in ("--set", option)]
    code = main(["reproduce", "bios", "--out", str(out), "--data", str(corpus), "--quick", *words])
    assert code == 0, capsys.readouterr().err
    results = json.loads((out / "results.json").read_text())
    assert results["data"]["facts"]["Professions"] == 4
    assert results["data"]["facts"]["Fine-tuning steps of ten"] == 8
    assert {"torch", "transformers"} <= set(results["versions"])
    (summary,) = (table for table in results["tables"] if table["name"] == "bios")
    settings = [line["setting"] for line in summary["lines"]]
    methods = ["RLACE, descent-ascent", "RLACE, closed form", "INLP"]
    for stage in ("frozen", "fine-tuned"):
        own = [setting for setting in settings if setting.startswith(stage)]
        assert all(any(method in setting for setting in own) for method in methods)
        assert stage in own
    assert {"adversarial, MLP adversary", "adversarial, linear adversary", "majority"} <= {
        *settings
    }
    for line in summary["lines"]:
        if line["setting"].startswith("adversarial"):
            assert 0 <= float(line["adversary, %"]) <= 100
    assert "| setting | gender, % | profession, % |" in (out / "tables.md").read_text()


def test_wrong_options_of_the_command(corpus, capsys, tmp_path):
    start = ["reproduce", "bios", "--data", str(corpus), "--out", str(tmp_path / "o"), "--set"]
    assert main([*start, "steps"]) == 2
    assert "KEY=VALUE" in capsys.readouterr().err
    assert main([*start, "model=x"]) == 2
    assert "encoder" in capsys.readouterr().err


def test_an_encoder_that_is_not_there(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="encoder cannot be loaded"):
        load_encoder(str(tmp_path / "empty"))
