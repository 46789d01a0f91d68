"""The API reference: a page for every public name, found by itself.

A new name in an ``__all__`` needs nothing here. It lands in the section of its kind, or in the last
one of its module.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

from api_examples import EXAMPLES
from sphinx.application import Sphinx

import expunge as ex

# sections of `expunge` itself; what is in none of them goes to "Everything else"
SECTIONS = {
    "What a fit leaves": ["Erasure", "ConditionalErasure", "Certificate", "Moments", "certify"],
    "Look, compare, plan": [
        *("audit", "Audit", "compare", "Comparison", "rank_path", "RankPath"),
        *("frontier", "Frontier", "plan_labels", "LabelPlan"),
    ],
    "Rows that live elsewhere": ["open_rows", "cluster_rows"],
    "The game: losses and solvers": [
        *("LOSSES", "Loss", "ColumnLoss", "SOLVERS", "Solver"),
        *("DescentAscent", "SubspaceAscent", "paper_settings"),
    ],
    "The paper's experiments": ["reproduce", "Reproduction"],
}
MODULES = {
    "expunge.metrics": "Metrics",
    "expunge.data": "Embedded data",
    "expunge.files": "Files",
    "expunge.rows": "Homes of rows",
}
ERRORS = "Errors and warnings"
START = """API reference
=============

Every public name. All erasers have one contract:

>>> import numpy as np
>>> import expunge as ex
>>> rng = np.random.default_rng(0)
>>> y = rng.integers(0, 2, 500)
>>> X = rng.normal(size=(500, 4)) + np.outer(y, [1, 1, 0, 0])
>>> eraser = ex.LEACE().fit(X, y)
>>> eraser.transform(X).shape
(500, 4)
>>> eraser.erasure_.rank, eraser.certificate_.erased
(1, True)
"""
ERRORS_START = """Errors and warnings
===================

Whatever goes wrong on purpose is an ``ExpungeError`` or a warning of its own. A message says what
is wrong, what was received and what to do:

>>> import expunge as ex
>>> try:
...     ex.LEACE().fit([[0.0], [1.0]], ["one class", "one class"])
... except ex.InputError as error:
...     print(isinstance(error, ValueError), isinstance(error, ex.ExpungeError))
True True
"""
NOT_PAGES = {"__version__", "integrations", "metrics"}  # a string, and modules with sections below


def sections() -> dict[str, list[str]]:
    """Full names of everything public, by the title of their section.

    Examples
    --------
    >>> "expunge.LEACE" in sections()["Erasers"]
    True
    """
    names = [name for name in ex.__all__ if name not in NOT_PAGES]
    found = {"Erasers": [name for name in names if name in ex.ERASERS or name == "ERASERS"]}
    for title, wanted in SECTIONS.items():
        found[title] = [name for name in wanted if name in names]
    found[ERRORS] = [name for name in names if is_error(getattr(ex, name))]
    placed = {name for listed in found.values() for name in listed}
    found["Everything else"] = [name for name in names if name not in placed]
    full = {title: [f"expunge.{name}" for name in listed] for title, listed in found.items()}
    for module, title in MODULES.items():
        full[title] = public(module)
    for name in ex.integrations.__all__:
        full[f"Integrations: {name}"] = public(f"expunge.integrations.{name}")
    return {title: listed for title, listed in full.items() if listed}


def public(module: str) -> list[str]:
    """Full names of what a module exports."""
    return [f"{module}.{name}" for name in importlib.import_module(module).__all__]


def is_error(value: object) -> bool:
    """Whether a name is that of an exception or a warning."""
    return inspect.isclass(value) and issubclass(value, BaseException)


def index() -> str:
    """The page with all names, in reStructuredText, which autosummary reads."""
    parts = [START]
    for title, names in sections().items():
        parts.append(f"{title}\n{'-' * len(title)}\n")
        own_pages = "" if title == ERRORS else "\n   :toctree: ."
        parts.append(f".. autosummary::{own_pages}\n   :nosignatures:\n")
        parts.append("\n".join(f"   {name}" for name in names) + "\n")
    parts.append(".. toctree::\n   :hidden:\n\n   errors\n")
    return "\n".join(parts)


def errors() -> str:
    """One page for all errors and warnings."""
    listed = (f".. autoexception:: {name}\n" for name in sections()[ERRORS])
    return "\n".join([ERRORS_START, *listed])


def skip(app: Sphinx, what: str, name: str, value: Any, skipped: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn, Python or another library documents."""
    home = getattr(inspect.unwrap(value) if callable(value) else value, "__module__", None) or ""
    foreign = not home.startswith("expunge") and callable(value)
    return True if foreign else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before autosummary looks for them."""
    folder = Path(app.srcdir) / "generated" / "api"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in {"index": index(), "errors": errors()}.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    app.config.autosummary_context = {"examples": EXAMPLES}
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
