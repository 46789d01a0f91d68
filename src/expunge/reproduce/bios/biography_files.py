"""Reading biographies: jsonl, csv, parquet, or vectors made elsewhere."""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.optional import require

__all__ = ["Columns", "read_biographies"]

Columns = dict[str, NDArray[Any]]  # text or vectors, profession, gender; and split, if files say so

SPLITS = {"train": "train", "dev": "dev", "valid": "dev", "validation": "dev", "test": "test"}
ENDINGS = (".jsonl", ".csv", ".parquet", ".npz")
UNREADABLE = (OSError, EOFError, TypeError, ValueError, csv.Error, zipfile.BadZipFile, zlib.error)


def read_biographies(path: Path, pooling: str) -> Columns:
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
    parts: dict[str, list[Columns]] = {"train": [], "dev": [], "test": []}
    for file in sorted(path.iterdir()):
        split = SPLITS.get(file.name.split(".")[0])
        if split is not None and _ending(file) in ENDINGS:
            parts[split].append(_read_file(file, pooling))
    tables = [table for found in parts.values() for table in found]
    if not all(parts.values()) or len({tuple(table) for table in tables}) > 1:
        raise InputError(
            "A folder of biographies needs files of one kind for training, development and testing",
            ", ".join(sorted(file.name for file in path.iterdir())[:8]) or "an empty folder",
            "Name them train, dev and test, with the endings .jsonl, .csv, .parquet or .npz",
        )
    whole = {key: np.concatenate([table[key] for table in tables]) for key in tables[0]}
    splits = [
        np.full(len(table["gender"]), name) for name, found in parts.items() for table in found
    ]
    return {**whole, "split": np.concatenate(splits)}


def _ending(path: Path) -> str:
    name = path.name.removesuffix(".gz")
    return Path(name).suffix.lower()


def _read_file(path: Path, pooling: str) -> Columns:
    ending = _ending(path)
    if ending not in ENDINGS:
        raise InputError(
            "Biographies of this kind of file cannot be read",
            path.name,
            f"Pass a file that ends in {', '.join(ENDINGS)}",
        )
    try:
        columns: Mapping[str, Any] = _arrays(path) if ending == ".npz" else _columns(path, ending)
    except UNREADABLE as error:
        raise InputError(
            "The biographies cannot be read", f"{path.name} ({error})", "Save or download it anew"
        ) from error
    table = _vectors(path, columns, pooling) if ending == ".npz" else _texts(path, columns)
    if len(lengths := {len(column) for column in table.values()}) > 1 or lengths == {0}:
        sizes = ", ".join(f"{len(column)} of {name}" for name, column in table.items())
        raise InputError(
            "The columns must be of one length, and not empty",
            f"{path.name}: {sizes}",
            "Save one profession and one gender for each biography",
        )
    return table


def _columns(path: Path, ending: str) -> Mapping[str, list[Any]]:
    if ending == ".parquet":
        parquet = require("pyarrow.parquet", "parquet")
        read: dict[str, list[Any]] = parquet.read_table(path).to_pydict()
        return read
    raw = path.read_bytes()
    text = (gzip.decompress(raw) if path.name.endswith(".gz") else raw).decode("utf-8-sig")
    if ending == ".csv":
        records = list(csv.DictReader(io.StringIO(text, newline="")))
    else:
        records = [json.loads(line) for line in text.split("\n") if line.strip()]
        if not all(isinstance(record, dict) for record in records):
            raise ValueError("a line is not an object with fields")
    names = list(records[0]) if records else []
    return {name: [record.get(name, "") for record in records] for name in names}


def _texts(path: Path, columns: Mapping[str, list[Any]]) -> Columns:
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


def _arrays(path: Path) -> Columns:
    with path.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _vectors(path: Path, arrays: Mapping[str, Any], pooling: str) -> Columns:
    vectors = arrays.get("vectors", arrays.get(pooling))
    if vectors is None or "profession" not in arrays or "gender" not in arrays:
        raise InputError(
            "An .npz file of biographies needs vectors, profession and gender",
            f"{path.name} with {', '.join(arrays)}",
            "Save it with numpy.savez(file, vectors=X, profession=p, gender=g)",
        )
    if vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or not np.isfinite(vectors).all():
        raise InputError(
            "The vectors must be rows of finite numbers",
            f"{path.name}: {vectors.dtype} of shape {vectors.shape}",
            "Save an array of shape (n, d)",
        )
    labels = {name: np.atleast_1d(arrays[name]).astype(str) for name in ("profession", "gender")}
    return {"vectors": vectors.astype(np.float32), **labels}
