"""Gradient reversal: the right gradients, the paper's loop, and what a fresh probe still finds."""

import inspect
import subprocess
import sys

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn.functional import cross_entropy

from expunge.errors import InputError, NotConverged
from expunge.integrations.adversarial import (
    GradientReversal,
    encode,
    fresh_probe_accuracy,
    reverse_gradient,
)
from expunge.reproduce.bios.adversarial.reversal import HIDDEN, AdversarialModel
from expunge.reproduce.bios.adversarial.training_loop import _minibatch


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def biographies(n, seed):
    """Rows (n x 20), a task of three classes and a concept of two, each in columns of its own."""
    rng = np.random.default_rng(seed)
    task, concept = rng.integers(0, 3, n), rng.integers(0, 2, n)
    X = rng.normal(size=(n, 20))
    X[:, :3] += 3 * np.eye(3)[task]
    X[:, 3] += 3 * concept - 1.5
    return X, task, concept


def mlp(seed=0, dropout=0.0, width=16):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, width))


def short(encoder=None, **settings):
    return GradientReversal(
        mlp() if encoder is None else encoder, **{"steps": 60, "evaluate_every": 20, **settings}
    )


def weights(model):
    return torch.cat([w.detach().flatten() for w in model.model_.parameters()])


TRAIN, DEV, TEST = biographies(2000, 1), biographies(1000, 2), biographies(2000, 3)
SMALL = tuple(part[:200] for part in TRAIN)


# the layer and its gradients


def test_the_layer_is_the_identity_forwards_and_minus_the_weight_backwards():
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    y = reverse_gradient(x, 0.7)
    assert torch.equal(x, y)
    slope = torch.randn(4, 3, dtype=torch.float64)
    y.backward(slope)
    assert torch.equal(x.grad, -0.7 * slope)


@pytest.mark.parametrize("adversary", ["linear", "mlp"])
def test_gradients_by_finite_differences(adversary):
    """Encoder: task gradient minus weight times adversary gradient; heads: their own, unchanged."""
    torch.manual_seed(0)
    weight, encoder = 1.7, nn.Sequential(nn.Linear(5, 4), nn.Tanh()).double()
    like = torch.zeros(4, dtype=torch.float64)
    model = AdversarialModel(
        encoder, like, n_tasks=3, n_concepts=2, adversary=adversary, weight=weight
    )
    X = torch.randn(12, 5, dtype=torch.float64)
    task, concept = torch.arange(12) % 3, torch.arange(12) % 2

    def losses():
        scores = model(X)
        return cross_entropy(scores.task, task), cross_entropy(scores.concept, concept)

    sum(losses()).backward()
    for name, parameter in model.named_parameters():
        flat, found = parameter.data.view(-1), parameter.grad.view(-1)
        for i in range(0, len(flat), 1 + len(flat) // 20):
            slopes = []
            for sign in (1, -1):
                flat[i] += sign * 1e-5
                slopes.append([sign * float(loss.detach()) / 2e-5 for loss in losses()])
                flat[i] -= sign * 1e-5
            of_task, of_concept = np.sum(slopes, axis=0)
            if name.startswith("encoder."):
                assert abs(of_concept) > 1e-12  # the adversary does have a say
                expected = of_task - weight * of_concept
            else:
                expected = of_task + of_concept  # one of them is zero
            assert float(found[i]) == pytest.approx(expected, abs=1e-8)


def test_the_mlp_adversary_is_the_papers():
    like = torch.zeros(16)
    model = AdversarialModel(mlp(), like, n_tasks=3, n_concepts=2, adversary="mlp")
    first, relu, last = model.adversary
    assert (first.in_features, first.out_features, last.out_features) == (16, HIDDEN, 2)
    assert HIDDEN == 300
    assert isinstance(relu, nn.ReLU)


def test_the_defaults_are_the_papers():
    found = inspect.signature(GradientReversal).parameters
    expected = {
        "steps": 70_000,
        "batch_size": 10,
        "learning_rate": 0.0005,
        "weight_decay": 1e-6,
        "momentum": 0.9,
    }
    assert {name: found[name].default for name in expected} == expected


# the training loop


@pytest.mark.parametrize("adversary", ["linear", None])
def test_against_a_plain_loop(adversary):
    """The same steps written out: gradients of each loss on its own, momentum by hand."""
    X, task, concept = SMALL
    settings = {"learning_rate": 0.01, "weight_decay": 0.1, "momentum": 0.8, "weight": 0.6}
    model = short(mlp(), adversary=adversary, steps=25, evaluate_every=25, **settings)
    model.fit(X, task, concept, validation=DEV)
    twin = short(mlp(), adversary=adversary, steps=1, learning_rate=1e-30, weight_decay=0.0)
    twin = twin.fit(X, task, concept, validation=DEV).model_  # the heads' first weights
    seed = int(np.random.default_rng(0).integers(2**32))
    named = dict(twin.named_parameters())
    speed = {name: torch.zeros_like(value) for name, value in named.items()}
    for step in range(25):
        rows = _minibatch(seed, step, 10, len(X))
        h = twin.encoder(torch.tensor(X[rows], dtype=torch.float32))
        losses = [cross_entropy(twin.task(h), torch.tensor(task[rows]))]
        if adversary:
            losses.append(cross_entropy(twin.adversary(h), torch.tensor(concept[rows])))
        grads = [
            torch.autograd.grad(loss, list(named.values()), retain_graph=True, allow_unused=True)
            for loss in losses
        ]
        for i, (name, value) in enumerate(named.items()):
            against = -0.6 if name.startswith("encoder.") else 1.0
            parts = [
                g[i] * s for g, s in zip(grads, (1.0, against), strict=False) if g[i] is not None
            ]
            speed[name] = 0.8 * speed[name] + sum(parts) + 0.1 * value.detach()
            value.data -= 0.01 * speed[name]
    for name, value in model.model_.named_parameters():
        torch.testing.assert_close(value, named[name], rtol=1e-4, atol=1e-6)


def test_every_epoch_shows_every_row_once():
    n, size = 23, 5
    seen = np.concatenate([_minibatch(7, step, size, n) for step in range(n)])
    epochs = seen.reshape(size, n)
    assert all(sorted(epoch) == list(range(n)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == size
    assert len(_minibatch(7, 3, 60, n)) == 60


def test_the_model_of_lowest_development_loss_is_kept():
    rng = np.random.default_rng(0)
    X, noise = rng.normal(size=(60, 20)), rng.integers(0, 2, 60)
    model = short(adversary=None, steps=400, learning_rate=0.05)
    model.fit(X[:30], noise[:30], validation=(X[30:], noise[30:]))  # nothing to learn but by heart
    losses = [e.dev_loss for e in model.result_.history]
    best = int(np.argmin(losses))
    assert best < len(losses) - 1
    assert model.result_.best == model.result_.history[best]
    assert model.result_.best.step == 20 * (best + 1)
    scores = model.model_(torch.tensor(X[30:], dtype=torch.float32)).task
    again = cross_entropy(scores, torch.tensor(noise[30:]))
    assert float(again.detach()) == pytest.approx(losses[best], rel=1e-5)
    assert losses[-1] > losses[best] + 0.1


def test_the_last_steps_are_evaluated_too():
    model = short(steps=50).fit(*SMALL, validation=DEV)
    assert [e.step for e in model.result_.history] == [20, 40, 50]


def test_history_of_the_development_set_by_hand():
    model = short(steps=20).fit(*SMALL, validation=DEV)
    X, task, concept = DEV
    with torch.no_grad():
        scores = model.model_(torch.tensor(X, dtype=torch.float32))
    (found,) = model.result_.history
    assert found.task_accuracy == np.mean(scores.task.argmax(1).numpy() == task)
    assert found.adversary_accuracy == np.mean(scores.concept.argmax(1).numpy() == concept)
    loss = float(cross_entropy(scores.concept, torch.tensor(concept)))
    assert found.adversary_loss == pytest.approx(loss, rel=1e-5)
    assert model.result_.adversary_accuracy == found.adversary_accuracy


def test_a_seed_fixes_the_run_and_nothing_outside_it():
    encoder = mlp(dropout=0.3)
    before = [w.clone() for w in encoder.state_dict().values()]
    torch.manual_seed(5)
    state = torch.get_rng_state()
    first = short(encoder, random_state=3).fit(*SMALL, validation=DEV)
    assert torch.equal(state, torch.get_rng_state())
    assert all(map(torch.equal, before, encoder.state_dict().values()))
    assert encoder.training
    torch.manual_seed(6)
    again = short(encoder, random_state=3).fit(*SMALL, validation=DEV)
    other = short(encoder, random_state=4).fit(*SMALL, validation=DEV)
    assert torch.equal(weights(first), weights(again))
    assert first.result_ == again.result_
    assert not torch.allclose(weights(first), weights(other))


def test_weights_that_need_no_gradient_stay():
    encoder = mlp()
    encoder[0].weight.requires_grad_(False)
    model = short(encoder).fit(*SMALL, validation=DEV)
    assert torch.equal(model.encoder_[0].weight, encoder[0].weight)
    assert not torch.equal(model.encoder_[3].weight, encoder[3].weight)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_encoders_of_any_float_type(dtype):
    model = short(mlp().to(dtype), learning_rate=0.01).fit(*SMALL, validation=DEV)
    assert model.model_.task.weight.dtype == dtype
    assert model.encode(DEV[0]).dtype == np.float32
    assert model.result_.task_accuracy > 0.5
    assert model.result_.task_accuracy == np.mean(model.predict_task(DEV[0]) == DEV[1])


def test_tensors_are_taken_as_arrays_are():
    X, task, concept = SMALL
    rows = torch.tensor(X, requires_grad=True)
    a = short().fit(rows, torch.tensor(task), torch.tensor(concept), validation=DEV)
    b = short().fit(X, task, concept, validation=DEV)
    assert torch.equal(weights(a), weights(b))


def test_classes_keep_their_names():
    names, X = np.array(["nurse", "poet", "judge"]), TRAIN[0]
    model = short(
        adversary=None, steps=300, evaluate_every=300, learning_rate=0.01, n_classes_task=3
    )
    model.fit(X, names[TRAIN[1]], validation=(DEV[0], names[DEV[1]]))
    assert np.mean(model.predict_task(TEST[0]) == names[TEST[1]]) > 0.9
    assert model.task_labels_ == ("judge", "nurse", "poet")


def test_a_run_that_diverges_says_so():
    with pytest.raises(InputError, match="diverged before its first evaluation"):
        short(learning_rate=1e6).fit(*SMALL, validation=DEV)
    model = short(learning_rate=0.05, weight=3.0, steps=4000, evaluate_every=10)
    with pytest.warns(NotConverged, match="diverged before step") as caught:
        model.fit(*TRAIN, validation=DEV)
    assert caught[0].filename == __file__
    assert len(model.result_.history) < 400
    assert np.isfinite(model.encode(DEV[0])).all()


def test_progress_is_shown_on_request_only(capfd):
    short().fit(*SMALL, validation=DEV)
    assert capfd.readouterr() == ("", "")
    short(verbose=True).fit(*SMALL, validation=DEV)
    assert "fine-tuning" in capfd.readouterr().err


# what is left: the paper's finding


def test_callbacks_are_told_how_far_it_is():
    steps, rows = [], []
    model = short(callback=lambda done, total: steps.append((done, total)))
    model.fit(*SMALL, validation=DEV)
    assert steps == [(step, 60) for step in range(1, 61)]
    encode(model.encoder_, DEV[0], batch_size=300, callback=lambda *told: rows.append(told))
    assert rows == [(300, 1000), (600, 1000), (900, 1000), (1000, 1000)]


def test_without_an_adversary_the_task_is_learned():
    train, dev = TRAIN[:2], DEV[:2]
    idle = short(adversary=None, steps=1, learning_rate=1e-12).fit(*train, validation=dev)
    assert np.mean(idle.predict_task(TEST[0]) == TEST[1]) < 0.6
    model = GradientReversal(mlp(), adversary=None, steps=1500).fit(*train, validation=dev)
    assert np.mean(model.predict_task(TEST[0]) == TEST[1]) > 0.9
    assert model.result_.adversary_accuracy is None
    assert "adversary" not in str(model.result_)


@pytest.mark.parametrize("adversary", ["linear", "mlp"])
def test_the_adversary_is_near_chance_but_a_fresh_probe_is_not(adversary):
    before = [encode(mlp(), part[0]) for part in (TRAIN, TEST)]
    assert fresh_probe_accuracy(before[0], TRAIN[2], before[1], TEST[2]) > 0.8  # it was there
    settings = {"adversary": adversary, "steps": 2000, "evaluate_every": 250}
    unopposed = GradientReversal(mlp(), weight=0.0, **settings).fit(*TRAIN, validation=DEV)
    assert unopposed.result_.adversary_accuracy > 0.64  # it can learn: reversal is what stops it
    model = GradientReversal(mlp(), **settings).fit(*TRAIN, validation=DEV)
    assert np.mean(model.predict_task(TEST[0]) == TEST[1]) > 0.9
    late = [e.adversary_accuracy for e in model.result_.history[-4:]]
    assert abs(np.mean(late) - 0.5) < 0.1
    assert model.result_.adversary_accuracy < 0.62
    after = [model.encode(part[0]) for part in (TRAIN, TEST)]
    assert fresh_probe_accuracy(after[0], TRAIN[2], after[1], TEST[2]) > 0.7
    assert "fresh_probe_accuracy" in str(model.result_)


@pytest.mark.parametrize("classes", [2, 4])
def test_the_fresh_probe_against_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    concept = rng.choice(["a", "b", "c", "d"][:classes], 900)
    H = rng.normal(size=(900, 6)) + (concept[:, None] == ["a", "b", "c", "d", "e", "f"])
    found = fresh_probe_accuracy(H[:500], concept[:500], H[500:], concept[500:])
    ridge = 1e-4 * H[:500].var(axis=0).mean()
    twin = LogisticRegression(C=1 / (500 * ridge), tol=1e-8, max_iter=1000)
    assert found == twin.fit(H[:500], concept[:500]).score(H[500:], concept[500:])
    assert 1 / classes + 0.1 < found < 0.95
    shrunk = fresh_probe_accuracy(1e-4 * H[:500], concept[:500], 1e-4 * H[500:], concept[500:])
    assert shrunk == found  # small encodings hide nothing


def test_the_fresh_probe_finds_nothing_where_nothing_is():
    rng = np.random.default_rng(0)
    H, concept = rng.normal(size=(3000, 4)), rng.integers(0, 2, 3000)
    assert (
        abs(fresh_probe_accuracy(H[:1000], concept[:1000], H[1000:], concept[1000:]) - 0.5) < 0.05
    )


# what is refused


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"adversary": "forest"}, "Unknown adversary"),
        ({"pooling": "max"}, "Unknown pooling"),
        ({"steps": 0}, "steps must be"),
        ({"batch_size": 2.5}, "batch_size must be"),
        ({"evaluate_every": 0}, "evaluate_every must be"),
        ({"learning_rate": 0.0}, "learning_rate must be"),
        ({"weight": -1.0}, "weight must be"),
        ({"momentum": -0.1}, "momentum must be"),
        ({"random_state": "x"}, "random_state"),
        ({"n_classes_task": 4}, "does not have n_classes_task=4 classes"),
        ({"encoder": lambda x: x}, "not a torch module"),
        ({"encoder": nn.Unflatten(1, (4, 5))}, "does not give one vector per row"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(InputError, match=message):
        short(**settings).fit(*SMALL, validation=DEV)


def test_bad_data():
    X, task, concept = SMALL
    with pytest.raises(InputError, match="needs the concept, but fit has none"):
        short().fit(X, task, validation=DEV)
    with pytest.raises(InputError, match="needs the concept, but validation has none"):
        short().fit(X, task, concept, validation=DEV[:2])
    with pytest.raises(InputError, match="not a development set"):
        short().fit(X, task, concept, validation=DEV[0])
    with pytest.raises(InputError, match=r"validation task has classes .* Received 3"):
        short().fit(X, task, concept, validation=(X, task + 1, concept))
    with pytest.raises(InputError, match="inconsistent numbers of samples"):
        short().fit(X, task[1:], concept, validation=DEV)
    with pytest.raises(InputError, match="contains NaN"):
        short().fit(np.where(X > 2, np.nan, X), task, concept, validation=DEV)
    with pytest.raises(InputError, match="there is no tokenizer"):
        short().fit(["a text"] * 200, task, concept, validation=DEV)
    with pytest.raises(InputError, match="differ in width"):
        fresh_probe_accuracy(X, concept, X[:, 1:], concept)
    with pytest.raises(InputError, match="concept_test has classes"):
        fresh_probe_accuracy(X, concept, X, concept + 1)


def test_a_fit_that_is_refused_leaves_the_last_one_as_it_was():
    X, task, concept = SMALL
    model = short().fit(X, task, concept, validation=DEV)
    before = model.predict_task(X)
    with pytest.raises(InputError):
        model.fit(X, task + 7, concept, validation=DEV)
    assert np.array_equal(model.predict_task(X), before)


def test_before_fit_there_is_no_encoder():
    with pytest.raises(NotFittedError):
        short().encode(DEV[0])
    with pytest.raises(NotFittedError):
        short().predict_task(DEV[0])


WITHOUT_TORCH = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")

sys.meta_path.insert(0, Absent())
import expunge.integrations.adversarial
"""


def test_without_torch_the_message_names_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH], capture_output=True, text=True)
    assert done.returncode == 1
    assert "torch is not installed; get it with: pip install 'expunge[transformers]'" in done.stderr
