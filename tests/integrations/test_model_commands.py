"""`expunge scrub` and `expunge bake`, from files to files."""

import json
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402
from sentences import GENDER, TEXTS  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402
from tokenizers.models import WordLevel  # noqa: E402
from tokenizers.pre_tokenizers import Whitespace  # noqa: E402

from expunge.cli import main  # noqa: E402
from expunge.integrations.transformers import Scrubbing  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A small model with a tokenizer, and a table of texts."""
    parquet = pytest.importorskip("pyarrow.parquet")
    import pyarrow

    made = tmp_path_factory.mktemp("files")
    rest = sorted({w for t in TEXTS for w in t.split()} - {"he", "she"})
    words = ["[PAD]", "<s>", "</s>", "he", "she", *rest]
    plain = Tokenizer(WordLevel({w: i for i, w in enumerate(words[: tiny.VOCAB])}, "[PAD]"))
    plain.pre_tokenizer = Whitespace()
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=plain, pad_token="[PAD]", eos_token="</s>"
    )
    tokenizer.save_pretrained(made / "model")
    tiny.causal("Llama").save_pretrained(made / "model")
    texts = [f"{'she' if g == 'f' else 'he'} {t}" for t, g in zip(TEXTS, GENDER, strict=True)]
    table = pyarrow.table({"text": texts, "gender": GENDER.tolist()})
    parquet.write_table(table, made / "texts.parquet")
    return made


def test_scrub_and_bake(folder, capsys):
    file, model = folder / "gender.safetensors", str(folder / "model")
    told, baked = folder / "told.json", folder / "baked"
    options = ["--data", str(folder / "texts.parquet"), "--concept", "gender"]
    options += ["--method", "leace", "--shared", "--json", str(told)]
    assert main(["scrub", model, *options, "-o", str(file)]) == 0
    assert "layers.0.input_layernorm" in capsys.readouterr().out
    assert json.loads(told.read_text())["layers"][0]["rank"] >= 1
    scrubbing = Scrubbing.load(file)
    assert main(["bake", model, str(file), "-o", str(baked), "--json", str(told)]) == 0
    assert json.loads(told.read_text())["way"] == "stream"
    assert (baked / "README.md").exists()
    batch = tiny.left_padded()
    original = tiny.causal("Llama")
    with torch.no_grad():
        found = transformers.AutoModelForCausalLM.from_pretrained(baked)(**batch).logits
        with scrubbing.erasing(original):
            expected = original(**batch).logits
    real = batch["attention_mask"].bool()
    np.testing.assert_allclose(found[real], expected[real], atol=1e-5)
    assert main(["bake", model, str(file), "-o", str(baked)]) == 2
    assert "not empty" in capsys.readouterr().err


def test_layers_and_bad_input(folder, capsys):
    file, model = folder / "some.safetensors", str(folder / "model")
    options = ["--data", str(folder / "texts.parquet"), "--concept", "gender", "-o", str(file)]
    chosen = ["--layers", "layers.0,layers.1", "--tokens", "last", "--cache"]
    assert main(["scrub", model, *options, *chosen]) == 0
    assert list(Scrubbing.load(file)) == ["layers.0", "layers.1"]
    capsys.readouterr()
    for arguments, words in [
        (["bake", model, str(file), "-o", str(folder / "new")], "all tokens alike"),
        (["scrub", model, *options, "--method", "magic"], "Unknown method"),
        (["scrub", model, *options, "--text", "words"], "no column"),
        (["scrub", str(folder / "none"), *options], "cannot be loaded"),
        (["scrub", model, *options[:-1], str(folder / "no" / "a.safetensors")], "does not exist"),
    ]:
        assert main(arguments) == 2
        assert words in capsys.readouterr().err
    assert not (folder / "new").exists()


@pytest.mark.parametrize("command", ["scrub", "bake"])
def test_help_is_light(command):
    code = f"import sys; from expunge.cli import main; main(['{command}', '--help']); "
    code += "assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "MODEL" in done.stdout


@pytest.mark.parametrize("line", ['{"text": "a", "gender": 1', '["text", "gender"]'])
def test_a_line_that_is_no_object_is_named(tmp_path, capsys, line):
    data = tmp_path / "texts.jsonl"
    data.write_text(f'{{"text": "a", "gender": 1}}\n{line}\n')
    file = str(tmp_path / "a.safetensors")
    assert main(["scrub", "none", "--data", str(data), "--concept", "gender", "-o", file]) == 2
    assert "Line 2 of texts.jsonl is not a JSON object" in capsys.readouterr().err


def test_a_class_that_transformers_does_not_have(folder, tmp_path, capsys):
    config = json.loads((folder / "model" / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "architectures": ["OwnModel"]}))
    file = tmp_path / "a.safetensors"
    Scrubbing({}).save(file)
    assert main(["bake", str(tmp_path), str(file), "-o", str(tmp_path / "baked")]) == 2
    assert "OwnModel is no class of transformers" in capsys.readouterr().err
