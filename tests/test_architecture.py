"""The house rules that no other tool checks: import direction, light imports, honest docstrings."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest
from numpydoc.docscrape import FunctionDoc

import expunge as ex

SOURCE = Path(ex.__file__).parent

# from the bottom up; a module may import from its own stop and those above it in this list
STREET = [
    ["_version", "errors", "callable_package", "number_text"],
    [
        "parallel",
        "progress",
        "optional",
        "plotting",
        "linalg",
        "blas",
        "half",
        "blockmath",
        "atomic",
        "addresses",
        "artifact",
    ],
    ["concept", "fingerprint", "meta"],
    ["batch", "moments_file"],
    ["moments"],
    ["files"],
    ["rows"],
    ["inputs"],
    [
        "emptied",
        "saved_map",
        "erasure",
        "conditional",
        "nonlinear_erasure",
        "fold_erasure",
        "free_form_erasure",
        "maps",
        "shrinkage",
    ],
    ["rounding", "likeness"],
    ["game"],
    ["pooling"],
    ["folding", "free_form"],
    ["erasers"],
    ["data"],
    ["metrics"],
    ["certifying", "audit"],
    ["planning"],
    ["comparison", "rank_sweep", "demo"],
    ["tradeoff"],
    ["report"],
    ["integrations"],
    ["reproduce"],
    ["commands"],
    ["cli", "__init__"],
]
STOP = {name: stop for stop, names in enumerate(STREET) for name in names}
# where a documented name stays importable, though what it names lives further down
DOORS = {"integrations/adversarial.py": "reproduce"}
STOPS = {
    path.stem
    for path in SOURCE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").exists()
}


def modules():
    return sorted(SOURCE.rglob("*.py"))


def imports(tree):
    """Names under expunge imported at run time, wherever in the file."""
    typing_only = {
        id(child)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for child in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("expunge"):
            parts = node.module.split(".")
            yield from [parts[1]] if len(parts) > 1 else [alias.name for alias in node.names]
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".")[1] for a in node.names if a.name.startswith("expunge."))


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_point_one_way(path):
    own = path.relative_to(SOURCE).parts[0].removesuffix(".py")
    for name in imports(ast.parse(path.read_text())):
        door = DOORS.get(path.relative_to(SOURCE).as_posix()) == name
        if own != "__init__" and name in STOPS and not door:
            assert STOP[name] <= STOP[own], f"{own} imports {name}, which comes after it"


def test_every_module_has_its_stop():
    """One without would never be looked at above."""
    assert STOPS - {"__main__"} <= STOP.keys()


def public_functions():
    for info in pkgutil.walk_packages([str(SOURCE)], "expunge."):
        module = importlib.import_module(info.name)
        for name in getattr(module, "__all__", []):
            thing = getattr(module, name)
            if getattr(thing, "__module__", None) != info.name:
                continue
            if inspect.isclass(thing):
                yield from (
                    (f"{name}.{key}", value)
                    for key, value in vars(thing).items()
                    if inspect.isfunction(value) and not key.startswith("_")
                )
                yield name, thing
            elif inspect.isfunction(thing):
                yield name, thing


@pytest.mark.parametrize(
    ("name", "thing"), list(public_functions()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_docstrings_name_the_parameters_there_are(name, thing):
    assert inspect.getdoc(thing), f"{name} has no docstring"
    target = thing.__init__ if inspect.isclass(thing) else thing
    if inspect.isclass(thing) and target is object.__init__:
        return
    documented = {
        part.strip().lstrip("*")
        for entry in FunctionDoc(thing, doc=inspect.getdoc(thing))["Parameters"]
        for part in entry.name.split(",")
    }
    real = set(inspect.signature(target).parameters) - {"self", "cls"}
    assert documented <= real, f"{name} documents {documented - real}"


def test_importing_is_light_and_silent():
    """No optional package and no heavy one is imported before it is needed; nothing is printed."""

    def loaded(module):
        code = f"import sys, {module}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
        command = [sys.executable, "-W", "error", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return set(done.stdout.split())

    ours = loaded("expunge") - loaded("sklearn.base")  # scikit-learn itself may import pandas
    assert "expunge" in ours
    assert not ours & {"torch", "pandas", "polars", "pyarrow", "matplotlib", "rich", "typer"}
