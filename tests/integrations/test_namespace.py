"""The namespace: nothing is imported before it is used, and what is missing is named."""

import subprocess
import sys

import pytest

import expunge as ex

BLOCKED = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
import expunge as ex
for name in {names!r}:
    for way in (getattr, lambda module, name: __import__(module.__name__ + "." + name)):
        try:
            way(ex.integrations, name)
        except ImportError as error:
            print(error)
"""


# name -> package and extra
WORLDS = {
    "anndata": ("anndata", "anndata"),
    "chroma": ("chromadb", "chroma"),
    "datasets": ("datasets", "datasets"),
    "lancedb": ("lancedb", "lancedb"),
    "langchain": ("langchain_core", "langchain"),
    "llama_index": ("llama_index", "llama-index"),
    "qdrant": ("qdrant_client", "qdrant"),
}


def run(code):
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_is_imported_before_it_is_used():
    code = "import sys, expunge as ex; print(*{m.partition('.')[0] for m in sys.modules})"
    heavy = {"torch", "transformers", "sentence_transformers", "onnx", "onnxruntime", "faiss"}
    heavy |= {package for package, _ in WORLDS.values()}
    assert not heavy & set(run(code).split())


def test_names_are_listed_and_others_refused():
    assert {"faiss", "onnx", "sentence_transformers", "torch", "transformers"} <= set(
        dir(ex.integrations)
    )
    with pytest.raises(AttributeError, match="tensorflow"):
        _ = ex.integrations.tensorflow


@pytest.mark.parametrize("name", WORLDS)
def test_names_lead_to_worlds(name):
    pytest.importorskip(WORLDS[name][0])
    assert getattr(ex.integrations, name).__name__ == f"expunge.integrations.{name}"


@pytest.mark.parametrize("name", ["faiss", "onnx", "sentence_transformers", "transformers"])
def test_names_lead_to_modules(name):
    for package in (name, "torch") if "transformers" in name else (name,):
        pytest.importorskip(package)
    assert getattr(ex.integrations, name).__name__ == f"expunge.integrations.{name}"


def test_without_a_package_the_extra_is_named():
    of = {
        "faiss": ("faiss", "faiss"),
        "onnx": ("onnx", "onnx"),
        "sentence_transformers": ("sentence_transformers", "sentence-transformers"),
        "transformers": ("torch", "transformers"),
        **WORLDS,
    }
    packages = {package for package, _ in of.values()}
    said = run(BLOCKED.format(packages=packages, names=list(of))).splitlines()
    message = "{} is not installed; get it with: pip install 'expunge[{}]'"
    assert said == [message.format(*pair) for pair in of.values() for _ in range(2)]
