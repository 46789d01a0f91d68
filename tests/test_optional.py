"""Packages that are not there for everybody."""

import subprocess
import sys

import pytest

from expunge.errors import MissingPackage
from expunge.optional import require

WITHOUT_MATPLOTLIB = """
import sys
sys.modules["matplotlib"] = None
from expunge.cli import main
sys.exit(main(["reproduce", "glove", "--out", sys.argv[1]]))
"""


def test_what_is_there_is_imported():
    assert require("json.decoder", "torch").JSONDecoder


def test_what_is_missing_is_named():
    with pytest.raises(MissingPackage, match=r"no_such is not installed.*'expunge\[onnx\]'"):
        require("no_such.module", "onnx")
    assert issubclass(MissingPackage, ImportError)


def test_an_error_inside_a_package_that_is_there_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "half_there.py").write_text("import nothing_of_this_name")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="nothing_of_this_name"):
        require("half_there", "torch")


def test_the_command_line_says_it_in_one_line(tmp_path):
    command = [sys.executable, "-c", WITHOUT_MATPLOTLIB, str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == (
        "expunge: matplotlib is not installed; get it with: pip install 'expunge[reproduce]'\n"
    )
    assert not (tmp_path / "out").exists()
