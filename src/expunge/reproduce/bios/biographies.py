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
from expunge.reproduce.bios.biography_files import Columns, read_biographies
from expunge.reproduce.bios.synthetic import CALLED, synthetic_biographies
from expunge.reproduce.runner.declaration import LoadedData, RunSettings

__all__ = ["BiosData", "BiosSplit", "load", "women_of"]

SHARES = (0.65, 0.75)  # up to which rows train, and up to which they are for development
PAPER_SIZES = (255_710, 39_369, 98_344)
PAPER_STEPS = 70_000  # batches of ten
BATCH = 10
EPOCHS = 3  # of fine-tuning on less data than the paper's
QUICK_STEPS = 20
SYNTHETIC, QUICK_ROWS = 1200, 400
PAPER_ENCODER = "bert-base-uncased"
WOMEN = ("f", "female", "woman", "women", "1")  # numbers as in the copy on the Hugging Face hub
MEN = ("m", "male", "man", "men", "0")


@dataclass(frozen=True)
class BiosSplit:
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

    def split(self, seed: int) -> BiosSplit:
        """The split of the files, or 65/10/25 % of each profession."""
        if self.given is not None:
            parts = [np.flatnonzero(self.given == name) for name in ("train", "dev", "test")]
            return BiosSplit(*parts)
        rng = np.random.default_rng(seed)
        professions, counts = np.unique(self.profession, return_counts=True)
        first, second = (_quotas(counts, share) for share in _shares(len(self.profession)))
        second = np.maximum(second, first + 1)  # a development row of every profession
        found: list[list[NDArray[np.intp]]] = [[], [], []]
        for profession, *ends in zip(professions, first, second, strict=True):
            rows = rng.permutation(np.flatnonzero(self.profession == profession))
            for part, some in zip(found, np.split(rows, ends), strict=True):
                part.append(some)
        return BiosSplit(*(np.sort(np.concatenate(part)) for part in found))


def load(path: Path | None, settings: RunSettings) -> LoadedData:
    """The file at `path`, or a synthetic corpus.

    Parameters
    ----------
    path : path, optional
        See `read_biographies`.
    settings : RunSettings
        Its options: encoder, pooling, steps, professions, max_length.

    Returns
    -------
    LoadedData
        With a `BiosData`.
    """
    options = settings.options
    pooling = options.get("pooling", "cls")
    check_choice(pooling, ("cls", "mean"), "pooling")
    if path is None:
        rows = QUICK_ROWS if settings.quick else SYNTHETIC
        columns = zip(("text", "profession", "gender"), synthetic_biographies(rows, 0), strict=True)
        table: Columns = {name: np.array(values) for name, values in columns}
        source = f"{rows:,} {CALLED}"
    else:
        table = read_biographies(path, pooling)
        source = path.name
    table = _chosen(table, options.get("professions", ""))
    _check(table)
    if settings.quick:
        table = _sample(table, QUICK_ROWS)
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
    differs = ", and ".join(_differences(data, path))
    return LoadedData(data, source, _digest(data), differs, _facts(data, settings))


def women_of(gender: NDArray[Any]) -> str:
    """The label that means women.

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.reproduce.bios.biographies import women_of
    >>> women_of(np.array(["male", "female", "male"]))
    'female'
    """
    labels = [str(label) for label in np.unique(gender)]
    women = [label for label in labels if label.lower() in WOMEN]
    men = [label for label in labels if label.lower() in MEN]
    if len(labels) != 2 or len(women) != 1 or len(men) != 1:
        raise InputError(
            "The column gender must have one label for women and one for men",
            ", ".join(map(repr, labels[:5])),
            "Write f and m, or 1 for women and 0 for men",
        )
    return women[0]


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


def _chosen(table: Columns, professions: str) -> Columns:
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


def _sample(table: Columns, most: int) -> Columns:
    """About `most` of the rows, but five of each profession, and the splits kept."""
    n = len(table["gender"])
    if n <= most:
        return table
    rng, groups = np.random.default_rng(0), [table["profession"]]
    groups += [table["split"]] if "split" in table else []
    _, group = np.unique(np.stack(groups), axis=1, return_inverse=True)
    kept = []
    for number in range(group.max() + 1):
        rows = rng.permutation(np.flatnonzero(group.ravel() == number))
        kept.append(rows[: max(round(len(rows) * most / n), 5)])
    rows = np.sort(np.concatenate(kept))
    return {name: column[rows] for name, column in table.items()}


def _check(table: Columns) -> None:
    professions, counts = np.unique(table["profession"], return_counts=True)
    women_of(table["gender"])
    if len(professions) < 2:
        raise InputError(
            "The experiment needs at least two professions",
            ", ".join(professions),
            "Check the column profession",
        )
    if "split" in table:
        _check_split(table)
    if counts.min() < 5:
        few = professions[counts < 5]
        raise InputError(
            "A profession needs at least five biographies",
            f"fewer of {', '.join(few[:10])}",
            "Drop them, or choose with --set professions=A,B,C",
        )


def _check_split(table: Columns) -> None:
    train = table["split"] == "train"
    unknown = np.setdiff1d(table["profession"][~train], table["profession"][train])
    if len(unknown):
        raise InputError(
            "There are professions that no training row has",
            ", ".join(unknown[:10]),
            "Split the biographies anew, or choose with --set professions=A,B,C",
        )
    for name in ("train", "dev", "test"):
        if len(found := np.unique(table["gender"][table["split"] == name])) < 2:
            raise InputError(
                f"The {name} rows need both genders",
                f"{', '.join(found) or 'no rows'}",
                "Split the biographies anew, or pass them as one file",
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


def _differences(data: BiosData, path: Path | None) -> list[str]:
    """What is not as in the paper."""
    if path is None:
        found = ["a synthetic corpus instead of Bias in Bios"]
    elif len(data.gender) != sum(PAPER_SIZES):
        found = [f"{len(data.gender):,} biographies instead of {sum(PAPER_SIZES):,}"]
    else:
        found = []
    if data.vectors is not None:
        return [*found, "vectors made elsewhere"]
    if Path(data.encoder).name != PAPER_ENCODER:
        found.append(f"{data.encoder or 'MiniLM'} instead of BERT")
    if data.pooling != "cls":
        found.append("the mean over tokens instead of [CLS]")
    if data.steps != PAPER_STEPS:
        found.append(f"{data.steps:,} batches of fine-tuning instead of {PAPER_STEPS:,}")
    return found


def _facts(data: BiosData, settings: RunSettings) -> dict[str, Any]:
    split = data.split(settings.seed)
    return {
        "Biographies": len(data.gender),
        "Professions": len(np.unique(data.profession)),
        "Share of women": f"{np.mean(data.gender == women_of(data.gender)):.1%}",
        "Training, development, test": f"{len(split.train):,} / {len(split.dev):,} / "
        f"{len(split.test):,}",
        "Encoder": "vectors given"
        if data.vectors is not None
        else (data.encoder or "MiniLM (all-MiniLM-L6-v2)"),
        "Pooling": data.pooling,
        "Tokens read of a text": data.max_length if data.vectors is None else "none: no texts",
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
