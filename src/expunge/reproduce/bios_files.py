"""Reading biographies: jsonl, csv, parquet, or vectors made elsewhere."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["Table", "read_biographies"]

Table = dict[str, NDArray[Any]]  # text or vectors, profession, gender; and split, if files say so

SPLITS = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test"}
ENDINGS = (".jsonl", ".csv", ".parquet", ".npz")


def read_biographies(path: Path, pooling: str) -> Table:
    """The columns of a file, or of a folder with files for training, development and testing.

    Parameters
    ----------
    path : path
        A .jsonl, .csv (both may be .gz) or .parquet file with columns text, profession and gender;
        an .npz file with `vectors` (or `cls` and `mean`), `profession` and `gender`; or a folder
        with such files named train, dev and test.
    pooling : {"cls", "mean"}
        Which vectors to take of an .npz file that has both.

    Returns
    -------
    dict from str to array
        "text" or "vectors", "profession", "gender"; "split" for a folder.
    """
    if not path.is_dir():
        return _read_file(path, pooling)
    parts = []
    for file in sorted(path.iterdir()):
        split = SPLITS.get(file.name.split(".")[0])
        if split is not None and _ending(file) in ENDINGS:
            table = _read_file(file, pooling)
            parts.append({**table, "split": np.full(len(table["gender"]), split)})
    if {str(part["split"][0]) for part in parts} != {"train", "dev", "test"}:
        raise InputError(
            "A folder of biographies needs files for training, development and testing",
            ", ".join(sorted(file.name for file in path.iterdir())[:8]) or "an empty folder",
            "Name them train, dev and test, with the endings .jsonl, .csv, .parquet or .npz",
        )
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _ending(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return Path(name).suffix.lower()


def _read_file(path: Path, pooling: str) -> Table:
    ending = _ending(path)
    if ending == ".npz":
        return _from_npz(path, pooling)
    if ending not in ENDINGS:
        raise InputError(
            "Biographies of this kind of file cannot be read",
            path.name,
            f"Pass a file that ends in {', '.join(ENDINGS)}",
        )
    try:
        columns = _columns(path, ending)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, csv.Error) as error:
        raise InputError(
            "The biographies cannot be read", f"{path.name} ({error})", "Check the file"
        ) from error
    missing = [name for name in ("text", "profession", "gender") if name not in columns]
    if missing:
        raise InputError(
            f"Columns are missing: {', '.join(missing)}",
            f"{path.name} with {', '.join(columns) or 'no columns'}",
            "Name them text, profession and gender",
        )
    labels = {name: np.array([str(v) for v in columns[name]]) for name in ("profession", "gender")}
    text = np.array([str(v) for v in columns["text"]], dtype=object)  # of very different lengths
    return {"text": text, **labels}


def _columns(path: Path, ending: str) -> Mapping[str, list[Any]]:
    if ending == ".parquet":
        parquet = require("pyarrow.parquet", "parquet")
        read: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
        return read
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.name.endswith(".gz") else raw).decode("utf-8-sig")
    if ending == ".csv":
        records = list(csv.DictReader(io.StringIO(text)))
    else:
        records = [json.loads(line) for line in text.splitlines() if line.strip()]
    names = list(records[0]) if records else []
    return {name: [record.get(name, "") for record in records] for name in names}


def _from_npz(path: Path, pooling: str) -> Table:
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError) as error:
        raise InputError(
            "The vectors cannot be read", f"{path.name} ({error})", "Save it with numpy.savez"
        ) from error
    vectors = arrays.get("vectors", arrays.get(pooling))
    if vectors is None or "profession" not in arrays or "gender" not in arrays:
        raise InputError(
            "An .npz file of biographies needs vectors, profession and gender",
            f"{path.name} with {', '.join(arrays)}",
            "Save it with numpy.savez(file, vectors=X, profession=p, gender=g)",
        )
    return {
        "vectors": vectors.astype(np.float32),
        "profession": arrays["profession"].astype(str),
        "gender": arrays["gender"].astype(str),
    }
