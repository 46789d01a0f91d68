"""Evaluation in one call: the concept goes, the rest stays, and a control says what is ordinary."""

import numpy as np
import pytest
from sentences import FRAMES, GENDER, HELD_OUT, JOBS, TEXTS

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

import tiny_models as tiny  # noqa: E402

import expunge as ex  # noqa: E402
from expunge.integrations.transformers import scrub  # noqa: E402

LAYERS = [f"encoder.layer.{i}" for i in (1, 4, 5)]
FRAME = np.array([i for _ in JOBS for i in range(len(FRAMES)) for _ in "fm"])


@pytest.fixture(scope="module")
def found(minilm):
    model, tokenizer = minilm
    train = [text for text, out in zip(TEXTS, HELD_OUT, strict=True) if not out]
    options = {"tokenizer": tokenizer, "tokens": "mean", "sample": 0}
    scrubbing = scrub(model, train, GENDER[~HELD_OUT], LAYERS, **options)
    test = [text for text, out in zip(TEXTS, HELD_OUT, strict=True) if out]
    return scrubbing.evaluate(
        model, test, GENDER[HELD_OUT], tokenizer=tokenizer, task=FRAME[HELD_OUT], batch_size=7
    )


def test_probes_and_task(found):
    assert found.layers == tuple(LAYERS)
    assert found.texts == 60
    assert min(found.probes["before"]) > 0.85
    assert min(found.probes["control"]) > 0.85
    assert found.probes["after"][-1] < 0.7
    assert found.chance == 0.5
    assert found.task["before"] > 0.9
    assert found.task["after"] > 0.9  # what the text says otherwise is kept
    assert found.task["control"] > 0.9
    assert found.loss == {}  # the model has no head for language
    lines = str(found).splitlines()
    assert lines[0].split() == ["layer", "before", "after", "control"]
    assert lines[-1].startswith("accuracy for the task")


def test_picture_and_page(found, tmp_path):
    ax = found.plot()
    assert [line.get_label() for line in ax.lines][:3] == ["before", "after", "control"]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), found.probes["before"])
    found.to_html(tmp_path / "page.html")
    assert "Inside the model" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_language(kind):
    """A model that copies: the loss and its change against a computation by hand."""
    ids = torch.randint(4, tiny.VOCAB, (40, 8), generator=torch.manual_seed(0))
    y = np.arange(40) % 2
    ids[:, 3] = torch.from_numpy(10 + y)
    if kind == "causal":
        model, layer = tiny.causal("GPT2"), "h.0"
    else:
        torch.manual_seed(0)
        config = tiny.config("Bert", tiny.BERT)
        model, layer = transformers.BertForMaskedLM(config).eval(), "encoder.layer.0"

    class Tokenizer:
        mask_token_id = 3

    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    scrubbing = scrub(model, [(batch, y)], None, layer, sample=0)
    found = scrubbing.evaluate(model, [(batch, y)], None, tokenizer=Tokenizer())
    assert set(found.loss) == {"before", "after", "control"}
    assert set(found.kl) == {"after", "control"}
    assert min(found.kl.values()) > 0
    assert found.perplexity["before"] == pytest.approx(2 ** found.loss["before"])
    if kind == "causal":
        with torch.no_grad():
            nats = float(model(ids, labels=ids).loss)
        assert found.loss["before"] == pytest.approx(nats / np.log(2), rel=1e-5)


def test_bad_arguments(found):
    model = tiny.encoder("Bert")
    batch = {**tiny.left_padded(), "labels": torch.tensor([0, 1, 1])}
    scrubbing = scrub(model, [batch], None, "encoder.layer.0", sample=0)
    with pytest.raises(ex.InputError, match="at least two texts of each"):
        scrubbing.evaluate(model, [batch], None)
