"""Concept scrubbing: every layer is fitted on states scrubbed below, streaming, and it works."""

import weakref
from pathlib import Path

import numpy as np
import pytest
from sentences import GENDER, HELD_OUT, TEXTS
from sklearn.linear_model import LogisticRegression

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import expunge as ex  # noqa: E402
from expunge.integrations.transformers import Scrubbing, collect, scrub  # noqa: E402

LAYERS = [f"encoder.layer.{i}" for i in range(6)]
TRAIN = [text for text, out in zip(TEXTS, HELD_OUT, strict=True) if not out]
TRAIN_GENDER = GENDER[~HELD_OUT]


def probe_accuracies(X):
    """Accuracy of a linear probe on the rows it was trained on, and on held-out rows."""
    probe = LogisticRegression(max_iter=2000).fit(X[~HELD_OUT], TRAIN_GENDER)
    return [probe.score(X[part], GENDER[part]) for part in (~HELD_OUT, HELD_OUT)]


@pytest.fixture(scope="module")
def scrubbed(minilm):
    return scrub(minilm[0], TRAIN, TRAIN_GENDER, LAYERS, tokenizer=minilm[1], tokens="mean")


def test_probes_find_gender_before_and_are_at_chance_after(minilm, scrubbed):
    before = collect(*minilm, TEXTS, LAYERS)
    with scrubbed.erasing(minilm[0]):
        after = collect(*minilm, TEXTS, LAYERS)
    for name in LAYERS:
        seen, new = probe_accuracies(before[name])
        assert min(seen, new) > 0.9
        seen, new = probe_accuracies(after[name])
        assert seen == 0.5  # equal means: the best predictor is a constant
        assert 0.4 <= new <= 0.6
    assert np.abs(after[LAYERS[5]] - before[LAYERS[5]]).max() > 0.01


def test_erasing_one_layer_leaves_the_concept_to_the_next(minilm, scrubbed):
    """Why all layers are scrubbed: attention brings back what was erased at one of them."""
    with ex.integrations.transformers.erasing(
        minilm[0], {LAYERS[0]: scrubbed[LAYERS[0]]}, tokens="mean"
    ):
        states = collect(*minilm, TEXTS, LAYERS[:2])
    assert probe_accuracies(states[LAYERS[0]])[0] == 0.5
    assert probe_accuracies(states[LAYERS[1]])[1] > 0.9


def by_hand(model, batch, labels, make, pick, put):
    """Slow twin without hooks: layer after layer on all texts at once; fit, erase, go on."""
    mask = batch["attention_mask"]
    bias = (1 - mask[:, None, None].float()) * torch.finfo(torch.float32).min
    found = []
    with torch.no_grad():
        hidden = model.embeddings(batch["input_ids"])
        for layer in model.encoder.layer:
            hidden = layer(hidden, bias)
            X, y = pick(hidden.numpy(), mask.numpy().astype(bool), labels)
            found.append(make().fit(X, y).erasure_)
            hidden = torch.from_numpy(put(hidden.numpy(), mask.numpy().astype(bool), found[-1]))
    return found


def pick_tokens(H, mask, labels):
    return H[mask], np.repeat(labels, mask.sum(axis=1))


def put_everywhere(H, mask, e):
    return e.transform(H)


def pick_first(H, mask, labels):
    return H[:, 0], labels


def put_first(H, mask, e):
    H = H.copy()
    H[:, 0] = e.transform(H[:, 0])
    return H


@pytest.mark.parametrize(
    ("tokens", "pick", "put"),
    [("all", pick_tokens, put_everywhere), ("cls", pick_first, put_first)],
)
@pytest.mark.parametrize("make", [ex.RLACE, lambda: ex.RayleighEraser(1, objective="cca")])
def test_every_layer_equals_a_loop_by_hand(minilm, tokens, pick, put, make):
    model, tokenizer = minilm
    some, gender = TRAIN[:30], TRAIN_GENDER[:30]
    batch = tokenizer(some, padding=True, return_tensors="pt")
    twins = by_hand(model, batch, gender, make, pick, put)
    options = {"tokenizer": tokenizer, "batch_size": 7, "sample": 0}
    scrubbing = scrub(model, some, gender, LAYERS, eraser=make(), tokens=tokens, **options)
    assert list(scrubbing) == LAYERS
    X = np.random.default_rng(0).normal(size=(20, 384))
    for name, twin in zip(LAYERS, twins, strict=True):
        # batches of other lengths round otherwise; few rows make the oblique one sensitive
        atol = 1e-3 if twin.is_orthogonal else 0.05 if tokens == "all" else 0.5
        np.testing.assert_allclose(scrubbing[name].transform(X), twin.transform(X), atol=atol)
        assert np.abs(twin.transform(X) - X).max() > 0.1
    if twins[0].is_orthogonal:
        alone = make().fit(*pick_plain(model, batch, gender, pick)).erasure_
        moved = np.abs(alone.transform(X) - twin.transform(X)).max()
        assert moved > 5 * atol  # the layers below do matter


def pick_plain(model, batch, gender, pick):
    """Rows of the last layer of the untouched model."""
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    return pick(hidden.numpy(), batch["attention_mask"].numpy().astype(bool), gender)


def test_report_and_file(minilm, scrubbed, tmp_path):
    for row, name in zip(scrubbed.report, LAYERS, strict=True):
        assert (row.layer, row.n, row.rank) == (name, len(TRAIN), 1)
        assert row.bits_before > 0.9 > 1e-5 > row.bits_after >= 0
        assert row.share_before > 0.9 > 1e-5 > row.share_after >= 0
    lines = str(scrubbed).splitlines()
    assert lines[0].split() == ["layer", "rows", "rank", "before", "after"]
    assert lines[3].split()[0::2] == ["encoder.layer.2", "1", "bit", "bit"]
    assert repr(scrubbed) == "Scrubbing(6 layers, tokens='mean')"

    path = tmp_path / "gender.safetensors"
    scrubbed.save(path)
    again = Scrubbing.load(path)
    assert list(again) == LAYERS
    assert again.report == scrubbed.report
    assert again.tokens == "mean"
    batch = minilm[1](TEXTS[:5], padding=True, return_tensors="pt")
    with torch.no_grad():
        with scrubbed.erasing(minilm[0]):
            expected = minilm[0](**batch).last_hidden_state
        with again.erasing(minilm[0]):
            assert torch.equal(minilm[0](**batch).last_hidden_state, expected)
    for name in LAYERS:
        assert again[name].meta == scrubbed[name].meta
        np.testing.assert_array_equal(again[name].left, scrubbed[name].left)
    again.save(tmp_path / "again.safetensors")
    assert (tmp_path / "again.safetensors").read_bytes() == path.read_bytes()


def test_bad_files_are_refused(scrubbed, tmp_path):
    path = tmp_path / "one.safetensors"
    scrubbed[LAYERS[0]].save(path)
    with pytest.raises(ex.BadArtifact, match="holds a 'erasure', not a 'scrubbing'"):
        Scrubbing.load(path)
    from expunge import artifact

    left = np.zeros((3, 1))
    meta = {"layers": ["a"], "tokens": "all", "report": [], "erasures": [{}]}
    for tensors, change in [
        ({"0.left": left}, {}),
        ({"0.left": left, "0.right": left}, {}),
        ({"0.left": left, "0.right": left.T}, {"erasures": []}),
        ({"0.left": left, "0.right": left.T}, {"tokens": "some"}),
        ({"0.left": left, "0.right": left.T}, {"report": [{"layer": "a"}]}),
        ({"0.left": left, "0.right": left.T}, {"layers": 3}),
    ]:
        artifact.write(path, tensors, {"kind": "scrubbing", "meta": {**meta, **change}})
        with pytest.raises(ex.BadArtifact, match=r"not a whole|missing|do not belong"):
            Scrubbing.load(path)
    artifact.write(path, {"0.left": left, "0.right": left.T}, {"kind": "scrubbing", "meta": meta})
    assert Scrubbing.load(path)["a"].rank == 1


def test_the_stored_scrubbing_of_format_1_is_still_read():
    found = Scrubbing.load(Path(__file__).parents[1] / "data" / "scrubbing_format_1.safetensors")
    assert list(found) == ["layer.0", "layer.1"]
    np.testing.assert_array_equal(found["layer.0"].left, [[1.0], [0.5]])
    np.testing.assert_array_equal(found["layer.0"].center, [1.0, 2.0])
    assert (found["layer.0"].meta, found.report[0].bits_before) == ({"method": "LEACE"}, 0.5)


def test_one_pass_per_group_and_no_further_than_needed(minilm):
    model, tokenizer = minilm
    runs = np.zeros(6, dtype=int)
    handles = [
        layer.register_forward_pre_hook(lambda *_, i=i: runs.__setitem__(i, runs[i] + 1))
        for i, layer in enumerate(model.encoder.layer)
    ]
    options = {"tokenizer": tokenizer, "batch_size": 10, "sample": 0}
    some, gender = TRAIN[:40], TRAIN_GENDER[:40]
    grouped = [LAYERS[0], tuple(LAYERS[1:3]), LAYERS[3]]
    try:
        scrubbing = scrub(model, some, gender, grouped, **options)
    finally:
        for handle in handles:
            handle.remove()
    # one look at the order of the layers, then 4 batches for each of 3 groups
    assert runs.tolist() == [1 + 12, 1 + 8, 1 + 8, 1 + 4, 1, 1]
    assert list(scrubbing) == LAYERS[:4]
    assert [row.bits_before for row in scrubbing.report] == [None] * 4
    above = scrub(model, some, gender, LAYERS[:3], **options)
    np.testing.assert_allclose(grouped_matrix(scrubbing, 1), grouped_matrix(above, 1), atol=1e-6)
    assert np.abs(grouped_matrix(scrubbing, 2) - grouped_matrix(above, 2)).max() > 1e-3


@pytest.mark.parametrize("place", ["memory", "folder"])
@pytest.mark.parametrize("tokens", ["mean", "masked"])
def test_kept_states_give_the_same_in_one_run_per_layer(minilm, tmp_path, place, tokens):
    model, tokenizer = minilm
    runs = np.zeros(6, dtype=int)
    inner = [f"{name}.attention" for name in LAYERS[:2]]
    some, gender = TRAIN[:40], TRAIN_GENDER[:40]
    options = {"tokenizer": tokenizer, "batch_size": 10, "sample": 0, "tokens": tokens}
    for layers, expected in [
        (LAYERS, [5] * 6),  # one look at the order of the layers, and 4 batches
        ([LAYERS[0], tuple(LAYERS[1:3]), LAYERS[3]], [5, 5, 9, 5, 1, 1]),
        ([*inner, LAYERS[1], LAYERS[2]], [9, 9, 5, 1, 1, 1]),
    ]:
        plain = scrub(model, some, gender, layers, **options)
        runs[:] = 0
        handles = [
            layer.attention.self.register_forward_pre_hook(
                lambda *_, i=i: runs.__setitem__(i, runs[i] + 1)
            )
            for i, layer in enumerate(model.encoder.layer)
        ]
        where = "memory" if place == "memory" else tmp_path
        kept = scrub(model, some, gender, layers, cache=where, **options)
        for handle in handles:
            handle.remove()
        assert runs.tolist() == expected
        assert list(kept) == list(plain)
        for name in plain:
            np.testing.assert_allclose(kept[name].matrix(), plain[name].matrix(), atol=1e-6)
    assert not list(tmp_path.iterdir())  # nothing is left behind


def test_kept_states_do_not_fit_shuffled_batches(minilm):
    model, tokenizer = minilm
    some = TRAIN[:40]

    def collate(rows):
        batch = tokenizer([some[i] for i in rows], padding=True, return_tensors="pt")
        return {**batch, "labels": torch.tensor((TRAIN_GENDER[rows] == "f").astype(int))}

    torch.manual_seed(0)
    loader = torch.utils.data.DataLoader(range(40), 10, collate_fn=collate, shuffle=True)
    with pytest.raises(ex.InputError, match=r"another order.*cache=None"):
        scrub(model, loader, None, LAYERS[:2], cache="memory", sample=0)


@pytest.mark.parametrize("kind", ["series", "polars", "tuple"])
def test_columns_of_texts(minilm, kind):
    model, tokenizer = minilm
    some, gender = TRAIN[:12], TRAIN_GENDER[:12]
    if kind == "series":
        pandas = pytest.importorskip("pandas")
        data = pandas.Series(some, index=range(7, 19))
    else:
        data = pytest.importorskip("polars").Series(some) if kind == "polars" else tuple(some)
    options = {"tokenizer": tokenizer, "tokens": "mean", "sample": 0}
    expected = scrub(model, some, gender, LAYERS[0], **options)
    found = scrub(model, data, gender, LAYERS[0], **options)
    np.testing.assert_array_equal(found[LAYERS[0]].left, expected[LAYERS[0]].left)


def test_special_tokens_are_left_out_of_fit_and_erasure(minilm, tmp_path):
    model, tokenizer = minilm
    some, gender = TRAIN[:20], TRAIN_GENDER[:20]
    options = {"tokenizer": tokenizer, "tokens": "not special", "sample": 0}
    found = scrub(model, some, gender, LAYERS[0], **options)
    batch = tokenizer(some, padding=True, return_tensors="pt")
    special = torch.isin(batch["input_ids"], torch.tensor(tokenizer.all_special_ids))
    assert found.report[0].n == int((~special).sum())
    found.save(tmp_path / "a.safetensors")
    again = Scrubbing.load(tmp_path / "a.safetensors")
    with torch.no_grad():
        before = model(**batch, output_hidden_states=True).hidden_states[1]
        with again.erasing(model):
            after = model(**batch, output_hidden_states=True).hidden_states[1]
    assert torch.equal((after != before).any(dim=-1), ~special)


def test_scrubbing_what_modules_are_called_with(minilm):
    model, tokenizer = minilm
    some, gender = TRAIN[:30], TRAIN_GENDER[:30]
    options = {"tokenizer": tokenizer, "tokens": "mean", "sample": 0}
    before = scrub(model, some, gender, LAYERS[3], **options)
    found = scrub(model, some, gender, LAYERS[4], at="input", **options)
    np.testing.assert_allclose(found[LAYERS[4]].matrix(), before[LAYERS[3]].matrix(), atol=1e-6)
    batch = tokenizer(some, padding=True, return_tensors="pt")
    with torch.no_grad():
        with before.erasing(model):
            expected = model(**batch).last_hidden_state
        with found.erasing(model):
            torch.testing.assert_close(model(**batch).last_hidden_state, expected)


def test_layers_by_pattern(minilm):
    model, tokenizer = minilm
    options = {"tokenizer": tokenizer, "tokens": "cls", "sample": 0}
    some, gender = TRAIN[:10], TRAIN_GENDER[:10]
    for pattern, expected in [
        ("encoder.layer.*", LAYERS),
        ("all", LAYERS),
        ("attn", [f"{name}.attention.output.dense" for name in LAYERS]),
    ]:
        assert list(scrub(model, some, gender, pattern, **options)) == expected


def grouped_matrix(scrubbing, i):
    return scrubbing[LAYERS[i]].matrix()


def test_layers_are_taken_in_the_order_they_run_in(minilm):
    model, tokenizer = minilm
    options = {"tokenizer": tokenizer, "tokens": "cls", "sample": 0}
    back = scrub(model, TRAIN[:10], TRAIN_GENDER[:10], LAYERS[3:0:-1], **options)
    assert list(back) == LAYERS[1:4]


def test_loaders_give_what_texts_give(minilm):
    model, tokenizer = minilm
    some, gender = TRAIN[:40], (TRAIN_GENDER[:40] == "f").astype(int)

    def encode(rows):
        return dict(tokenizer([some[i] for i in rows], padding=True, return_tensors="pt"))

    def collate(rows):
        return {**encode(rows), "labels": torch.tensor(gender[rows])}

    loader = torch.utils.data.DataLoader
    layers = [LAYERS[0], LAYERS[2]]
    options = {"tokens": "mean", "sample": 0}
    expected = scrub(model, some, gender, layers, tokenizer=tokenizer, batch_size=9, **options)
    torch.manual_seed(0)
    for data, labels in [
        (loader(range(40), batch_size=9, collate_fn=collate, shuffle=True), None),
        (loader(range(40), batch_size=9, collate_fn=encode), gender),
        (loader(range(40), batch_size=9, collate_fn=encode), torch.tensor(gender)),
        ([(encode(range(25)), gender[:25]), (encode(range(25, 40)), gender[25:])], None),
    ]:
        found = scrub(model, data, labels, layers, **options)
        for name in layers:
            np.testing.assert_allclose(found[name].matrix(), expected[name].matrix(), atol=1e-4)


def test_labels_per_token(minilm):
    """The concept is a word's place in the sentence; special tokens are left out."""
    model, tokenizer = minilm
    some = TRAIN[:40]
    labels = [
        [None] + [int(i > 3) for i in range(len(ids) - 2)] + [-100]
        for ids in tokenizer(some)["input_ids"]
    ]
    flat = np.array([value for row in labels for value in row], dtype=object)
    kept = np.array([value in (0, 1) for value in flat])
    y = flat[kept].astype(int)
    options = {"tokens": "masked", "labels_per": "token"}
    layer = LAYERS[1]
    scrubbing = scrub(model, some, labels, [layer], tokenizer=tokenizer, batch_size=7, **options)
    assert scrubbing.report[0].n == kept.sum()

    X = collect(model, tokenizer, some, layer, "tokens")[layer][kept]
    twin = ex.RLACE().fit(X, y).erasure_
    np.testing.assert_allclose(scrubbing[layer].matrix(), twin.matrix(), atol=1e-5)
    assert LogisticRegression(max_iter=2000).fit(X, y).score(X, y) > 0.9
    with scrubbing.erasing(model):
        clean = collect(model, tokenizer, some, layer, "tokens")[layer][kept]
    share = max(y.mean(), 1 - y.mean())
    assert LogisticRegression(max_iter=2000).fit(clean, y).score(clean, y) == pytest.approx(share)

    batch = dict(tokenizer(some, padding=True, return_tensors="pt"))
    batch["labels"] = torch.full(batch["input_ids"].shape, -100)
    for row, values in zip(batch["labels"], labels, strict=True):
        row[1 : len(values) - 1] = torch.tensor(values[1:-1])
    loaded = scrub(model, [batch], None, [layer], **options)
    np.testing.assert_allclose(loaded[layer].matrix(), twin.matrix(), atol=1e-5)


def test_other_concepts_and_other_models():
    """Several labels at once, and numbers, in a model that is no transformer."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 5))
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.normal(size=(400, 6)).astype(np.float32))
    several = (X[:, :2] + 0.3 * torch.randn(400, 2) > 0).int().numpy()
    number = X[:, 0].double().numpy() + 0.1 * rng.normal(size=400)
    for y, eraser in [
        (several, None),
        (number, ex.RLACE(loss="squared", concept_type="continuous")),
    ]:
        batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, 400, 50)]
        scrubbing = scrub(model, batches, None, ["0", "2"], eraser=eraser, sample=100)
        Z = np.asarray(y, dtype=float).reshape(400, -1)
        with torch.no_grad():
            before = model(X).double().numpy()
            with scrubbing.erasing(model):
                after = model(X).double().numpy()
        cross = [np.abs((H - H.mean(0)).T @ (Z - Z.mean(0)) / 400).max() for H in (before, after)]
        assert cross[0] > 0.01
        assert cross[1] < 1e-6
        for row in scrubbing.report:
            assert (row.bits_before is None) == (eraser is not None)
            assert row.share_before >= 0
            assert row.share_after < 1e-5
        assert scrubbing.report[0].share_before > 0.1
        assert ("%" in str(scrubbing)) == (eraser is not None)


@pytest.mark.filterwarnings("ignore::expunge.errors.CovariancesDiffer")  # columns are combinations
@pytest.mark.parametrize("name", ex.ERASERS)
def test_every_eraser_scrubs_or_says_why_not(name):
    """Two layers by hand, each eraser fitted at once on all rows: the same erasures."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 5))
    X = torch.randn(300, 6)
    y = (X[:, 0] + X[:, 1] ** 2 > 0.5).int().numpy()
    size = 300 if name == "PairPCA" else 60  # whose sets must not be cut
    batches = [(X[i : i + size], y[i : i + size]) for i in range(0, 300, size)]
    eraser = ex.ERASERS[name]()
    streams = hasattr(eraser, "partial_fit")
    if not streams or not hasattr(ex.ERASERS[name]().fit(X.numpy(), y), "erasure_"):
        words = "needs the concept of every row" if streams else "cannot be fitted on a stream"
        with pytest.raises(ex.InputError, match=words):
            scrub(model, batches, None, ["0", "2"], eraser=eraser, sample=0)
        return
    found = scrub(model, batches, None, ["0", "2"], eraser=eraser, sample=0)
    with torch.no_grad():
        first = model[0](X)
        lower = ex.ERASERS[name]().fit(first.numpy(), y).erasure_
        second = model[2](model[1](torch.from_numpy(lower.transform(first.numpy()))))
        upper = ex.ERASERS[name]().fit(second.numpy(), y).erasure_
    np.testing.assert_allclose(found["0"].matrix(), lower.matrix(), atol=1e-5)
    np.testing.assert_allclose(found["2"].matrix(), upper.matrix(), atol=1e-3)


def test_what_is_not_wholly_erased_is_reported_so():
    model = torch.nn.Sequential(torch.nn.Identity())
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    X = torch.from_numpy(rng.normal(size=(300, 4)) + np.outer(y, [3, 0, 0, 0]))
    pca = ex.RayleighEraser(2, objective="pca")
    scale = torch.tensor([0.1, 1, 1, 1])  # the concept is in the direction of least variance
    (row,) = scrub(model, [(X * scale, y)], None, ["0"], eraser=pca).report
    assert row.bits_before == pytest.approx(row.bits_after, abs=0.1)
    assert row.bits_after > 0.3


def test_the_sample_is_bounded_and_fair():
    from expunge.integrations.scrub import _LayerFit

    fit = _LayerFit(ex.RLACE(), 500, np.random.default_rng(0))
    for start in range(0, 10_000, 100):
        rows = torch.arange(start, start + 100, dtype=torch.float64)
        fit.add(torch.stack([rows, rows % 7], dim=1), np.arange(100) % 2, np.arange(100))
    _, rows, labels, _ = fit.sample
    assert rows.shape == (500, 2)
    assert len(np.unique(rows[:, 0])) == 500
    np.testing.assert_array_equal(rows[:, 0] % 2, labels)
    assert rows[:, 0].mean() == pytest.approx(5000, abs=4 * 10_000 / np.sqrt(12 * 500))


def test_no_batch_is_kept():
    """Batches are made on the fly; of those before, at most the last one still exists."""
    made, alive = [], []

    class Stream:
        def __iter__(self):
            for seed in range(40):
                rng = np.random.default_rng(seed)
                alive.append(sum(ref() is not None for ref in made))
                x = torch.from_numpy(rng.normal(size=(50, 4)))
                made.append(weakref.ref(x))
                yield x, rng.integers(0, 2, 50)
                del x

    model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    scrubbing = scrub(model, Stream(), None, ["0", "1"], sample=100)
    assert [row.n for row in scrubbing.report] == [2000, 2000]
    assert len(made) == 2 + 2 * 40  # a look at what comes, one at the layers, and two passes
    assert max(alive) <= 2


def test_the_model_is_left_as_it_was(minilm):
    model, tokenizer = minilm
    batch = tokenizer(TEXTS[:3], padding=True, return_tensors="pt")
    with torch.no_grad():
        before = model(**batch).last_hidden_state
    with pytest.raises(ex.InputError, match="one class only"):
        scrub(model, TRAIN[:4], ["f"] * 4, LAYERS, tokenizer=tokenizer)
    with torch.no_grad():
        assert torch.equal(model(**batch).last_hidden_state, before)
    assert not any("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layers": "encoder.layer.7"}, "Close names"),
        ({"layers": []}, "every layer once"),
        ({"layers": [LAYERS[0], LAYERS[0]]}, "every layer once"),
        ({"layers": [()]}, "every layer once"),
        ({"labels": ["f", "m"]}, "4 texts and 2 labels"),
        ({"labels": None}, "4 texts and 0 labels"),
        ({"labels_per": "word"}, "Unknown labels_per"),
        ({"labels": [[0, 1]] * 4, "labels_per": "token"}, "Text 0 has 12 tokens.*2 labels"),
        ({"labels": [[0, 1]] * 4, "labels_per": "token", "tokens": "mean"}, "no label of its own"),
        ({"tokens": "odd"}, "Unknown tokens"),
        ({"sample": -1}, "sample"),
        ({"eraser": ex.RLACE}, "cannot be fitted on a stream"),
        ({"eraser": LogisticRegression()}, "cannot be fitted on a stream"),
        ({"tokenizer": None}, "need a tokenizer"),
        ({"data": iter([])}, "more than once"),
        ({"data": "a text"}, "single text"),
        ({"data": []}, "4 labels, 0 texts"),
        ({"data": [], "labels": []}, "no batches"),
        ({"data": [(torch.zeros(2, 3), ["a"])], "labels": None}, "2 texts with 1 labels"),
        (
            {"data": [{"input_ids": torch.ones(2, 3).int()}], "labels": None},
            "2 texts with no label",
        ),
    ],
)
def test_bad_arguments(minilm, changes, words):
    good = {
        "model": minilm[0],
        "data": TRAIN[:4],
        "labels": ["f", "m", "f", "m"],
        "layers": [LAYERS[0]],
        "tokenizer": minilm[1],
    }
    with pytest.raises(ex.InputError, match=words):
        scrub(**{**good, **changes})


def test_labels_must_match_the_batches(minilm):
    model = minilm[0]
    ids = torch.arange(1000, 1040).view(8, 5)
    data = [{"input_ids": ids[:4]}, {"input_ids": ids[4:]}]
    with pytest.raises(ex.InputError, match=r"more labels than texts.*9 labels, 8 texts"):
        scrub(model, data, [0, 1] * 4 + [0], [LAYERS[0]])
    with pytest.raises(ex.InputError, match="4 texts with 3 labels after 4 texts"):
        scrub(model, data, [0, 1] * 3 + [0], [LAYERS[0]])
    shuffled = torch.utils.data.DataLoader(ids, batch_size=4, shuffle=True)
    with pytest.raises(ex.InputError, match="shuffles"):
        scrub(model, shuffled, [0, 1] * 4, [LAYERS[0]])


@pytest.mark.parametrize("per_text", [1, 12])
def test_labels_at_random_show_no_bits_before(per_text):
    """As wide as a predictor likes: on the rows it learnt from it would gain a third of a bit."""
    rng = np.random.default_rng(0)
    own = torch.from_numpy(rng.normal(size=(600, 1, 60)).astype(np.float32))  # of each text
    X = own + 0.1 * torch.from_numpy(rng.normal(size=(600, per_text, 60)).astype(np.float32))
    X = X[:, 0] if per_text == 1 else X
    model = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Identity())
    y = rng.integers(0, 2, 600)
    batches = [(X[i : i + 50], y[i : i + 50]) for i in range(0, 600, 50)]
    (row,) = scrub(model, batches, None, ["0"], eraser=ex.LEACE(), random_state=0).report
    assert row.bits_before < 0.02
    assert row.share_before < 0.02
    known = X + 3 * torch.from_numpy(y.astype(np.float32)).reshape(600, *[1] * (X.ndim - 1))
    batches = [(known[i : i + 50], y[i : i + 50]) for i in range(0, 600, 50)]
    (row,) = scrub(model, batches, None, ["0"], eraser=ex.LEACE(), random_state=0).report
    assert row.bits_before > 0.9
