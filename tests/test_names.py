"""Every name means one thing: no module is hidden, no two modules or classes share a name."""

import ast
import importlib
import pkgutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

import expunge as ex

SOURCE = Path(ex.__file__).parent
NAMES = sorted(info.name for info in pkgutil.walk_packages(ex.__path__, "expunge."))

# modules that may share a name, with the reason
SHARED_MODULES = {
    "__init__": "every package has one",
    "base": "what all others in its folder build on",
    **dict.fromkeys(
        ("apply", "audit", "demo", "fit", "reproduce"), "a command is called after what it runs"
    ),
    "inlp": "the mathematics in game/, the transformer in erasers/",
    "faces": "the images in data/, the experiment in reproduce/",
    **dict.fromkeys(
        ("experiment", "figures", "measurements", "paper", "tables"),
        "every experiment has one in its folder",
    ),
    "torch": "called after the package it serves",
}


def as_imported(name):
    """What ``import a.b.c as m`` binds: attributes of attributes, not the entry in sys.modules."""
    space = {}
    exec(f"import {name} as m", space)
    return space["m"]


@pytest.mark.parametrize("name", NAMES)
def test_no_module_is_hidden_by_a_function_of_its_name(name):
    importlib.import_module(name)
    assert as_imported(name) is sys.modules[name]


def test_modules_are_reached_by_their_names_before_and_after_expunge_is():
    code = (
        "import expunge.audit.probes as p, expunge.audit as a, expunge as ex\n"
        "assert p.PROBES and a.probes is p and callable(ex.audit)\n"
        "import expunge.comparison.methods as m, expunge.rank_sweep.sweep as s\n"
        "assert m.choose_methods and s.Sweep\n"
        "assert ex.compare.__name__ == 'compare' and ex.rank_path.__name__ == 'rank_path'\n"
        "import expunge.certifying as c; assert ex.certify is c.certify\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_two_modules_share_a_name():
    places = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        places[path.stem].append(str(path.relative_to(SOURCE)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice.keys() - SHARED_MODULES.keys(), twice


def test_no_two_public_classes_share_a_name():
    places = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(str(path.relative_to(SOURCE)))
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert not twice.keys(), twice


def test_metrics_know_nothing_of_the_audit():
    for path in (SOURCE / "metrics").glob("*.py"):
        assert "expunge.audit" not in path.read_text(), path.name
