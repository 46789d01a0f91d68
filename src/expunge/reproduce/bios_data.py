"""Biographies with profession and gender: from a file, or the synthetic corpus."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from expunge.errors import InputError
from expunge.inputs import check_choice, check_number
from expunge.reproduce.bios_corpus import synthetic_biographies
from expunge.reproduce.bios_files import Table, read_biographies
from expunge.reproduce.experiment import Loaded, Settings

__all__ = ["BiosData", "Split", "load"]

SHARES = (0.65, 0.75)  # up to which rows train, and up to which they are for development
PAPER_SIZES = (255_710, 39_369, 98_344)
PAPER_STEPS = 70_000  # batches of ten
BATCH = 10
EPOCHS = 3  # of fine-tuning on less data than the paper's
QUICK_STEPS = 40
SYNTHETIC, QUICK_ROWS = 1200, 400


@dataclass(frozen=True)
class Split:
    """Numbers of the rows for training, development and testing."""

    train: NDArray[np.intp]
    dev: NDArray[np.intp]
    test: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class BiosData:
    """Biographies and how to encode them.

    Attributes
    ----------
    texts : array of n strings, or None
        None for vectors that were made elsewhere.
    vectors : array of shape (n, d), or None
    profession, gender : arrays of n strings
    given : array of n strings, or None
        The split of a folder of files.
    encoder : str
        Name or path of a Hugging Face model; empty for the MiniLM of the package.
    pooling : {"cls", "mean"}
    steps, max_length : int
        Of fine-tuning; tokens read of a text.
    """

    texts: NDArray[Any] | None
    vectors: NDArray[Any] | None
    profession: NDArray[Any]
    gender: NDArray[Any]
    given: NDArray[Any] | None
    encoder: str
    pooling: Literal["cls", "mean"]
    steps: int
    max_length: int

    def split(self, seed: int) -> Split:
        """The split of the files, or 65/10/25 % of each profession."""
        if self.given is not None:
            parts = [np.flatnonzero(self.given == name) for name in ("train", "dev", "test")]
            return Split(*parts)
        rng = np.random.default_rng(seed)
        professions, counts = np.unique(self.profession, return_counts=True)
        first, second = (_quotas(counts, share) for share in _shares(len(self.profession)))
        second = np.maximum(second, first + 1)  # a development row of every profession
        found: list[list[NDArray[np.intp]]] = [[], [], []]
        for profession, *ends in zip(professions, first, second, strict=True):
            rows = rng.permutation(np.flatnonzero(self.profession == profession))
            for part, some in zip(found, np.split(rows, ends), strict=True):
                part.append(some)
        return Split(*(np.sort(np.concatenate(part)) for part in found))


def load(path: Path | None, settings: Settings) -> Loaded:
    """The file at `path`, or a synthetic corpus.

    Parameters
    ----------
    path : path, optional
        See `read_biographies`.
    settings : Settings
        Its options: encoder, pooling, steps, professions, max_length.

    Returns
    -------
    Loaded
        With a `BiosData`.
    """
    options = settings.options
    pooling = options.get("pooling", "cls")
    check_choice(pooling, ("cls", "mean"), "pooling")
    if path is None:
        rows = QUICK_ROWS if settings.quick else SYNTHETIC
        columns = zip(("text", "profession", "gender"), synthetic_biographies(rows, 0), strict=True)
        table: Table = {name: np.array(values) for name, values in columns}
        source = f"{rows:,} SYNTHETIC biographies made from templates, not data about people"
    else:
        table = read_biographies(path, pooling)
        source = path.name
    table = _chosen(table, options.get("professions", ""))
    _check(table)
    n = len(table["gender"])
    data = BiosData(
        texts=table.get("text"),
        vectors=table.get("vectors"),
        profession=table["profession"],
        gender=table["gender"],
        given=table.get("split"),
        encoder=options.get("encoder", ""),
        pooling="mean" if pooling == "mean" else "cls",
        steps=_steps(options.get("steps"), n, settings.quick),
        max_length=_whole(options.get("max_length", "128"), "max_length"),
    )
    return Loaded(data, source, _digest(data), _differs(data, path), _facts(data, settings))


def _shares(n: int) -> tuple[float, float]:
    """Where training and development rows end: the paper's sizes on the paper's data."""
    if n != sum(PAPER_SIZES):
        return SHARES
    return PAPER_SIZES[0] / n, (PAPER_SIZES[0] + PAPER_SIZES[1]) / n


def _quotas(counts: NDArray[np.intp], share: float) -> NDArray[np.intp]:
    """Whole numbers near share * counts that add up to share * sum(counts), rounded."""
    exact = share * counts
    down: NDArray[np.intp] = np.floor(exact).astype(np.intp)
    missing = round(share * counts.sum()) - down.sum()
    down[np.argsort(down - exact, kind="stable")[:missing]] += 1
    return down


def _chosen(table: Table, professions: str) -> Table:
    wanted = [name.strip() for name in professions.split(",") if name.strip()]
    if not wanted:
        return table
    unknown = [name for name in wanted if name not in table["profession"]]
    if unknown:
        raise InputError(
            f"There is no such profession: {', '.join(unknown)}",
            f"professions {', '.join(np.unique(table['profession'])[:40])}",
            "Name some of these",
        )
    kept = np.isin(table["profession"], wanted)
    return {name: column[kept] for name, column in table.items()}


def _check(table: Table) -> None:
    professions, counts = np.unique(table["profession"], return_counts=True)
    genders = np.unique(table["gender"])
    if len(genders) != 2 or len(professions) < 2:
        raise InputError(
            "The experiment needs two genders and at least two professions",
            f"{len(genders)} genders and {len(professions)} professions",
            "Check the columns gender and profession",
        )
    if counts.min() < 5:
        few = professions[counts < 5]
        raise InputError(
            "A profession needs at least five biographies",
            f"fewer of {', '.join(few[:10])}",
            "Drop them, or choose with --set professions=A,B,C",
        )


def _whole(text: str, name: str) -> int:
    value = int(text) if text.isdigit() else text
    check_number(value, name, least=1, whole=True)
    return int(value)


def _steps(given: str | None, n: int, quick: bool) -> int:
    """The paper's 70,000 batches of ten, or three epochs where that is less."""
    if given is not None:
        return _whole(given, "steps")
    return QUICK_STEPS if quick else min(PAPER_STEPS, max(EPOCHS * int(SHARES[0] * n) // BATCH, 50))


def _differs(data: BiosData, path: Path | None) -> str:
    if path is None:
        return "a synthetic corpus instead of Bias in Bios, and MiniLM instead of BERT"
    same_rows = len(data.gender) == sum(PAPER_SIZES)
    same_encoder = "bert-base-uncased" in data.encoder
    parts = [] if same_rows else [f"{len(data.gender):,} biographies instead of 393,423"]
    parts += [] if same_encoder else [f"{data.encoder or 'MiniLM'} instead of BERT"]
    return ", and ".join(parts)


def _facts(data: BiosData, settings: Settings) -> dict[str, Any]:
    split = data.split(settings.seed)
    women = sorted(np.unique(data.gender))[0]
    return {
        "Biographies": len(data.gender),
        "Professions": len(np.unique(data.profession)),
        f"Share of {women!r}": f"{np.mean(data.gender == women):.1%}",
        "Training, development, test": f"{len(split.train):,} / {len(split.dev):,} / "
        f"{len(split.test):,}",
        "Encoder": "vectors given"
        if data.vectors is not None
        else (data.encoder or "MiniLM (all-MiniLM-L6-v2)"),
        "Pooling": data.pooling,
        "Fine-tuning steps of ten": data.steps if data.vectors is None else "none: no texts",
    }


def _digest(data: BiosData) -> str:
    digest = hashlib.sha256()
    for column in (data.texts, data.vectors, data.profession, data.gender, data.given):
        if column is not None:
            values = column.tobytes() if column.dtype.kind == "f" else "\n".join(column).encode()
            digest.update(values)
    digest.update(repr((data.encoder, data.pooling, data.steps, data.max_length)).encode())
    return digest.hexdigest()
