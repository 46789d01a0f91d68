"""Check what a wheel holds: the package, its embedded data and templates, and nothing else.

Run as ``python scripts/check_wheel.py dist/*.whl``. Prints what is missing or does not belong there
and ends with 1.
"""

from __future__ import annotations

import re
import sys
import zipfile
from collections.abc import Iterable

# what `expunge demo`, the embedded examples and the report read
NEEDED = {
    "expunge/py.typed",
    "expunge/data/SOURCES.md",
    "expunge/data/glove_gender.npz",
    "expunge/data/glove_words.txt",
    "expunge/data/orl_faces.npz",
    "expunge/data/simlex999.json",
    "expunge/data/word_lists.json",
    "expunge/report/templates/blocks.html",
    "expunge/report/templates/dark.css",
    "expunge/report/templates/page.html",
    "expunge/report/templates/page.js",
    "expunge/report/templates/style.css",
}
CODE = re.compile(r"expunge/(?:\w+/)*\w+\.py|expunge-[\w.]+\.dist-info/.+")


def faults(names: Iterable[str]) -> list[str]:
    """What is wrong with the names of a wheel's files.

    Examples
    --------
    >>> faults([*NEEDED, "expunge/erasure.py", "tests/test_erasure.py"])
    ['tests/test_erasure.py does not belong there']
    """
    held = {name for name in names if not name.endswith("/")}
    missing = [f"{name} is missing" for name in sorted(NEEDED - held)]
    strange = sorted(name for name in held - NEEDED if not CODE.fullmatch(name))
    return missing + [f"{name} does not belong there" for name in strange]


def main() -> int:
    """Check the wheels that were named."""
    said = []
    for path in sys.argv[1:]:
        with zipfile.ZipFile(path) as wheel:
            said += [f"{path}: {fault}" for fault in faults(wheel.namelist())]
    print("\n".join(said) or f"{len(sys.argv) - 1} wheel: what it needs and nothing more.")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
