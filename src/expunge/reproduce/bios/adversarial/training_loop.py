"""The training loop: SGD in minibatches, the model of lowest development loss kept.

Everything random in a step follows from the seed and the number of the step, so a run that was
stopped and resumed takes the same steps as one that was not.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

from expunge.errors import BadArtifact, InputError, NotConverged
from expunge.progress import Progress
from expunge.reproduce.bios.adversarial.frozen_encoder import device_of
from expunge.reproduce.bios.adversarial.model_inputs import Index, ModelInputs, buckets
from expunge.reproduce.bios.adversarial.reversal import AdversarialModel
from expunge.reproduce.bios.adversarial.training_checkpoint import (
    State,
    TrainingState,
    read_checkpoint,
    write_checkpoint,
)

__all__ = [
    "Evaluation",
    "LabelledInputs",
    "TrainingSettings",
    "finetune",
    "own_randomness",
    "seed_torch",
]

EVALUATION_BATCH = 64


@dataclass(frozen=True)
class TrainingSettings:
    """How long and how fast to train; the defaults are the paper's.

    Attributes
    ----------
    steps, batch_size : int
    learning_rate, weight_decay, momentum : float
    evaluate_every : int
        Steps between two looks at the development set.
    seed : int
    """

    steps: int = 70_000
    batch_size: int = 10
    learning_rate: float = 5e-4
    weight_decay: float = 1e-6
    momentum: float = 0.9
    evaluate_every: int = 2500
    seed: int = 0


@dataclass(frozen=True)
class Evaluation:
    """One look at the development set.

    Attributes
    ----------
    step : int
        Steps taken so far.
    train_loss : float
        Mean loss of the task on the training batches since the last evaluation.
    dev_loss : float
        Mean loss of the task; the model of lowest `dev_loss` is kept.
    task_accuracy : float
    adversary_loss, adversary_accuracy : float or None
        Of the adversary that was trained along; it says nothing about fresh predictors.
    """

    step: int
    train_loss: float
    dev_loss: float
    task_accuracy: float
    adversary_loss: float | None
    adversary_accuracy: float | None


class LabelledInputs(NamedTuple):
    """Inputs with class numbers of the task and, for an adversary, of the concept."""

    inputs: ModelInputs
    task: NDArray[np.int64]
    concept: NDArray[np.int64] | None


def finetune(
    model: AdversarialModel,
    train: LabelledInputs,
    dev: LabelledInputs,
    settings: TrainingSettings,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    identity: Mapping[str, Any] | None = None,
    callback: Callable[[int, int], None] | None = None,
    verbose: bool = False,
) -> list[Evaluation]:
    """Train `model` in place and leave it at its lowest development loss.

    Parameters
    ----------
    model : AdversarialModel
    train, dev : LabelledInputs
    settings : TrainingSettings
    checkpoint : path, optional
        Written at every evaluation; if it exists, the run goes on from there.
    identity : mapping, optional
        What the run is recognised by in its checkpoint.
    callback : callable, optional
        Called with the number of steps taken so far and of all steps, after each step.
    verbose : bool
        Whether to show a progress bar.

    Returns
    -------
    list of Evaluation

    Examples
    --------
    >>> import numpy as np, torch
    >>> from expunge.reproduce.bios.adversarial.reversal import AdversarialModel
    >>> from expunge.reproduce.bios.adversarial.training_loop import (
    ...     LabelledInputs, TrainingSettings, finetune)
    >>> from expunge.reproduce.bios.adversarial.model_inputs import model_inputs
    >>> X = np.random.default_rng(0).normal(size=(200, 3))
    >>> data = LabelledInputs(model_inputs(X), (X[:, 0] > 0).astype(int), None)
    >>> _ = torch.manual_seed(0)
    >>> encoder, like = torch.nn.Linear(3, 3), torch.zeros(3)
    >>> model = AdversarialModel(encoder, like, n_tasks=2, n_concepts=0, adversary=None)
    >>> settings = TrainingSettings(steps=200, learning_rate=0.05, evaluate_every=100)
    >>> history = finetune(model, data, data, settings)
    >>> [e.step for e in history], history[-1].task_accuracy > 0.9
    ([100, 200], True)
    """
    run = _TrainingRun(model, train, dev, settings, callback)
    known = {} if identity is None else identity
    if checkpoint is not None and (state := read_checkpoint(checkpoint, known)) is not None:
        run.resume(state, os.fspath(checkpoint))
    with (
        own_randomness(run.device),
        Progress("fine-tuning", settings.steps, verbose) as progress,
    ):
        while run.step < settings.steps:
            run.train_until_next_evaluation(progress)
            if not run.evaluate():
                break
            if checkpoint is not None:
                write_checkpoint(checkpoint, run.state(), known)
    model.load_state_dict(run.best)
    model.eval()
    return run.history


class _TrainingRun:
    """A training run: the model, its optimiser, what was seen so far and the best of it."""

    def __init__(
        self,
        model: AdversarialModel,
        train: LabelledInputs,
        dev: LabelledInputs,
        settings: TrainingSettings,
        callback: Callable[[int, int], None] | None = None,
    ) -> None:
        self.callback = callback
        self.model, self.train, self.dev, self.settings = model, train, dev, settings
        self.device = device_of(model)
        self.optimiser = torch.optim.SGD(
            [p for p in model.parameters() if p.requires_grad],
            lr=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        self.step, self.train_loss = 0, float("nan")
        self.history: list[Evaluation] = []
        self.best: State = {}

    def train_until_next_evaluation(self, progress: Progress) -> None:
        """Take steps up to the next multiple of `evaluate_every`, or the last one."""
        every, n = self.settings.evaluate_every, len(self.train.task)
        stop = min(self.settings.steps, (self.step // every + 1) * every)
        note = f"development loss {self.history[-1].dev_loss:.4f}" if self.history else ""
        total, first = torch.zeros((), device=self.device), self.step
        self.model.train()
        while self.step < stop:
            rows = _minibatch(self.settings.seed, self.step, self.settings.batch_size, n)
            seed_torch(_step_seed(self.settings.seed, self.step), self.device)  # for dropout
            total += self._descend(rows)
            self.step += 1
            progress.update(self.step, note)
            if self.callback is not None:
                self.callback(self.step, self.settings.steps)
        self.train_loss = float(total) / (stop - first)

    def _descend(self, rows: Index) -> Tensor:
        """One step down the gradient; the loss of the task before it."""
        scores = self.model(self.train.inputs.batch(rows, self.device))
        task = cross_entropy(scores.task, self._classes(self.train.task, rows))
        loss = task
        if scores.concept is not None:
            assert self.train.concept is not None
            loss = task + cross_entropy(scores.concept, self._classes(self.train.concept, rows))
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return task.detach()

    def _classes(self, codes: NDArray[np.int64], rows: Index) -> Tensor:
        return torch.from_numpy(codes[rows]).to(self.device)

    def evaluate(self) -> bool:
        """Look at the development set and keep the model if it is the best; False to give up."""
        task, concept = self._measure()
        if not np.isfinite([self.train_loss, task.loss, concept.loss if concept else 0.0]).all():
            self._diverged()
            return False
        if task.loss < min((e.dev_loss for e in self.history), default=float("inf")):
            self.best = _copy(self.model.state_dict())
        found = Evaluation(
            self.step,
            self.train_loss,
            task.loss,
            task.accuracy,
            None if concept is None else concept.loss,
            None if concept is None else concept.accuracy,
        )
        self.history.append(found)
        return True

    @torch.no_grad()
    def _measure(self) -> tuple[_HeadScore, _HeadScore | None]:
        """Loss and accuracy of both heads on the development set."""
        self.model.eval()
        dev, task, concept = self.dev, [], []
        for rows in buckets(dev.inputs.lengths, EVALUATION_BATCH):
            scores = self.model(dev.inputs.batch(rows, self.device))
            task.append(_sums(scores.task, self._classes(dev.task, rows)))
            if scores.concept is not None:
                assert dev.concept is not None
                concept.append(_sums(scores.concept, self._classes(dev.concept, rows)))
        n = len(dev.task)
        return _HeadScore.mean(task, n), _HeadScore.mean(concept, n) if concept else None

    def _diverged(self) -> None:
        if not self.history:
            raise InputError(
                "The training diverged before its first evaluation",
                f"a loss that is not finite at step {self.step}",
                "Lower learning_rate or weight",
            )
        warnings.warn(
            f"The training diverged before step {self.step} and was stopped; the best model of the "
            "steps before it is kept. Lower learning_rate or weight.",
            NotConverged,
            stacklevel=5,
        )

    def state(self) -> TrainingState:
        """All that `resume` needs."""
        slots = self.optimiser.state
        momentum = {
            name: slots[weight]["momentum_buffer"]
            for name, weight in self.model.named_parameters()
            if slots.get(weight, {}).get("momentum_buffer") is not None
        }
        history = [asdict(evaluation) for evaluation in self.history]
        return TrainingState(_copy(self.model.state_dict()), _copy(momentum), self.best, history)

    def resume(self, state: TrainingState, path: str) -> None:
        """Go on where `state` was written."""
        try:
            self.history = [Evaluation(**fields) for fields in state.history]
            self.step = self.history[-1].step
            self.model.load_state_dict(state.best)
            self.model.load_state_dict(state.model)
            weights = dict(self.model.named_parameters())
            for name, buffer in state.momentum.items():
                self.optimiser.state[weights[name]]["momentum_buffer"] = buffer.to(self.device)
        except (RuntimeError, TypeError, KeyError, IndexError) as error:
            raise BadArtifact(f"{path}: it does not fit this model ({error})") from error
        self.best = state.best
        if self.step > self.settings.steps:
            raise InputError(
                f"The checkpoint {path} has gone further than this run is to go",
                f"step {self.step} there, steps={self.settings.steps} here",
                "Pass another path as checkpoint=, or more steps",
            )


def own_randomness(device: torch.device) -> AbstractContextManager[None]:
    """Leave torch's generators as they were, whatever is drawn inside.

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.training_loop import own_randomness, seed_torch
    >>> before = torch.get_rng_state()
    >>> with own_randomness(torch.device("cpu")):
    ...     seed_torch(0, torch.device("cpu"))
    ...     drawn = torch.rand(3)
    >>> torch.equal(before, torch.get_rng_state())
    True
    """
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def seed_torch(seed: int, device: torch.device) -> None:
    """Seed torch's generators on the CPU and on `device`.

    Unlike ``torch.manual_seed`` this keeps no record of the call for devices that are not in use,
    so it may be called at every step.
    """
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        getattr(torch, device.type).manual_seed(seed)


class _HeadScore(NamedTuple):
    loss: float
    accuracy: float

    @classmethod
    def mean(cls, sums: list[_HeadScore], n: int) -> _HeadScore:
        return cls(sum(s.loss for s in sums) / n, sum(s.accuracy for s in sums) / n)


def _sums(scores: Tensor, classes: Tensor) -> _HeadScore:
    loss = cross_entropy(scores.double(), classes, reduction="sum")
    return _HeadScore(float(loss), float((scores.argmax(dim=1) == classes).sum()))


def _copy(state: Mapping[str, Tensor]) -> State:
    """Tensors of their own in main memory; tied weights become two."""
    return {name: tensor.detach().to("cpu", copy=True) for name, tensor in state.items()}


def _minibatch(seed: int, step: int, size: int, n: int) -> Index:
    """Rows of one step: all n in random order, then all n in another order, and so on."""
    places = np.arange(step * size, (step + 1) * size)
    epochs = places // n
    return np.concatenate(
        [_epoch(seed, int(e), n)[places[epochs == e] % n] for e in np.unique(epochs)]
    )


@lru_cache(maxsize=2)
def _epoch(seed: int, epoch: int, n: int) -> Index:
    return np.random.default_rng([seed, epoch]).permutation(n)


def _step_seed(seed: int, step: int) -> int:
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0])
