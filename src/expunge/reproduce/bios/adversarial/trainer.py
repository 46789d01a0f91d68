"""Adversarial training by gradient reversal: the baseline that erasure is compared with.

The adversary trained along ends near chance, which is often taken for success. It is not: a
predictor trained afresh on the frozen encodings finds the concept again. So the number to report is
`fresh_probe_accuracy`, never the adversary's own.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from expunge.concept import Label
from expunge.errors import InputError
from expunge.inputs import check_choice, check_concept, check_number, check_rng
from expunge.reproduce.bios.adversarial.frozen_encoder import (
    check_encoder,
    device_of,
    encode,
    training_codes,
)
from expunge.reproduce.bios.adversarial.model_inputs import ModelInputs, digest, model_inputs
from expunge.reproduce.bios.adversarial.reversal import (
    POOLINGS,
    AdversarialModel,
    Adversary,
    Pooling,
    check_first_token,
    encodings,
)
from expunge.reproduce.bios.adversarial.training_loop import (
    Evaluation,
    LabelledInputs,
    TrainingSettings,
    finetune,
    own_randomness,
    seed_torch,
)

__all__ = ["GradientReversal", "TrainingResult"]


class _Labels(NamedTuple):
    """Classes of the task and of the concept, in sorted order."""

    task: tuple[Label, ...]
    concept: tuple[Label, ...] = ()


@dataclass(frozen=True)
class TrainingResult:
    """How a training run went, on the development set.

    Attributes
    ----------
    best : Evaluation
        That of the model which was kept: the lowest development loss.
    history : tuple of Evaluation
        All of them, in order of steps.

    Examples
    --------
    >>> from expunge.integrations.adversarial import Evaluation, TrainingResult
    >>> kept = Evaluation(500, 0.4, 0.5, 0.85, 0.69, 0.53)
    >>> print(TrainingResult(kept, (kept,)))
    step 500 of 500 kept: development loss 0.5000, task accuracy 85.0%
    the adversary trained along is right on 53.0%; this does not bound a fresh predictor, see
    fresh_probe_accuracy
    """

    best: Evaluation
    history: tuple[Evaluation, ...]

    @property
    def adversary_accuracy(self) -> float | None:
        """Of the adversary trained along, None without one. Not a measure of what is left."""
        return self.best.adversary_accuracy

    @property
    def task_accuracy(self) -> float:
        """Accuracy of the task head."""
        return self.best.task_accuracy

    def __str__(self) -> str:
        text = (
            f"step {self.best.step:,} of {self.history[-1].step:,} kept: development loss "
            f"{self.best.dev_loss:.4f}, task accuracy {self.best.task_accuracy:.1%}"
        )
        if self.adversary_accuracy is None:
            return text
        return (
            f"{text}\nthe adversary trained along is right on {self.adversary_accuracy:.1%}; this "
            "does not bound a fresh predictor, see\nfresh_probe_accuracy"
        )


class GradientReversal:
    """Fine-tune an encoder for a task against a concept adversary, or without one.

    The gradient of the encoder is that of the task's loss minus `weight` times that of the
    adversary's loss. The model of lowest development loss of the task is kept. The defaults are the
    paper's settings.

    Parameters
    ----------
    encoder : torch.nn.Module
        A module from (n, d) to (n, width), or a Hugging Face model. It is copied; the one you pass
        is not changed.
    tokenizer : callable, optional
        The Hugging Face tokenizer of the encoder; inputs are then texts.
    n_classes_task : int, optional
        Classes of the task, if you want them checked.
    adversary : {"linear", "mlp", None}
        A linear one, one with a hidden layer of 300 units and ReLU, or none: plain fine-tuning.
    weight : float
        The adversary's share in the encoder's gradient.
    steps, batch_size : int
        Minibatches of SGD, and rows in each.
    learning_rate, weight_decay, momentum : float
        Of SGD, for the encoder and both heads.
    evaluate_every : int
        Steps between two looks at the development set; checkpoints are written then.
    pooling : {"cls", "mean", "last"}
        Encoding of a text: the first token's vector, the mean over its tokens, or the last
        token's, as for causal models, whose first token sees no other.
    max_length : int
        Tokens read of a text, at most what model and tokenizer can take.
    random_state : int, Generator or None
        Fixes the heads' first weights, the order of the rows and dropout.
    checkpoint : path, optional
        A file to go on from if it exists, written at each evaluation. It must belong to the same
        run: same settings (but for `steps`), data and first weights.
    callback : callable, optional
        Called with the number of steps taken so far and of all steps, after each step.
    verbose : bool
        Whether to show a progress bar.

    Attributes
    ----------
    encoder_ : torch.nn.Module
        The trained encoder.
    result_ : TrainingResult
    task_labels_, concept_labels_ : tuple
        Classes in sorted order.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from expunge.integrations.adversarial import GradientReversal
    >>> rng = np.random.default_rng(0)
    >>> task, concept = rng.integers(0, 2, (2, 300))
    >>> X = rng.normal(size=(300, 5)) + 3 * np.outer(task, np.eye(5)[0])
    >>> model = GradientReversal(torch.nn.Linear(5, 4), steps=300, learning_rate=0.01)
    >>> model = model.fit(X[:200], task[:200], concept[:200],
    ...                   validation=(X[200:], task[200:], concept[200:]))
    >>> model.encode(X).shape, model.result_.task_accuracy > 0.8
    ((300, 4), True)
    """

    def __init__(
        self,
        encoder: torch.nn.Module,
        *,
        tokenizer: Any = None,
        n_classes_task: int | None = None,
        adversary: Adversary | None = "linear",
        weight: float = 1.0,
        steps: int = 70_000,
        batch_size: int = 10,
        learning_rate: float = 5e-4,
        weight_decay: float = 1e-6,
        momentum: float = 0.9,
        evaluate_every: int = 2500,
        pooling: Pooling = "cls",
        max_length: int = 512,
        random_state: Any = 0,
        checkpoint: str | os.PathLike[str] | None = None,
        callback: Callable[[int, int], None] | None = None,
        verbose: bool = False,
    ) -> None:
        self.encoder, self.tokenizer, self.n_classes_task = encoder, tokenizer, n_classes_task
        self.adversary, self.weight, self.steps, self.batch_size = (
            adversary,
            weight,
            steps,
            batch_size,
        )
        self.learning_rate, self.weight_decay, self.momentum = learning_rate, weight_decay, momentum
        self.evaluate_every, self.pooling, self.max_length = evaluate_every, pooling, max_length
        self.random_state, self.checkpoint = random_state, checkpoint
        self.callback, self.verbose = callback, verbose

    def fit(
        self, inputs: Any, task: Any, concept: Any = None, *, validation: Sequence[Any]
    ) -> GradientReversal:
        """Train on `inputs`, keep the model that is best on `validation`.

        Parameters
        ----------
        inputs : array or tensor of shape (n, d), or n texts
        task : array of shape (n,)
            Classes to predict.
        concept : array of shape (n,), optional
            Classes the adversary predicts; needed if there is one.
        validation : (inputs, task, concept)
            The development set; without an adversary (inputs, task) will do.

        Returns
        -------
        GradientReversal
            Itself.
        """
        settings = self._settings()
        train, labels = self._read(inputs, task, concept)
        dev = self._read_validation(validation, labels)
        model = self._untrained(train.inputs, labels, settings.seed)
        resumable = self.checkpoint is not None
        history = finetune(
            model,
            train,
            dev,
            settings,
            checkpoint=self.checkpoint,
            identity=self._identity(settings, labels, train, dev) if resumable else None,
            callback=self.callback,
            verbose=self.verbose,
        )
        self.model_, self.encoder_ = model, model.encoder
        self.task_labels_, self.concept_labels_ = labels
        self.result_ = TrainingResult(min(history, key=lambda e: e.dev_loss), tuple(history))
        return self

    def encode(self, inputs: Any, *, batch_size: int = 64) -> NDArray[np.float32]:
        """Encodings by the trained encoder, which is frozen.

        Parameters
        ----------
        inputs : array or tensor of shape (n, d), or n texts
            As in `fit`.
        batch_size : int
            Rows encoded at once.

        Returns
        -------
        float32 array of shape (n, width)
        """
        return encode(
            self._trained().encoder,
            inputs,
            tokenizer=self.tokenizer,
            pooling=self.pooling,
            max_length=self.max_length,
            batch_size=batch_size,
        )

    def predict_task(self, inputs: Any) -> NDArray[Any]:
        """Classes of the task, shape (n,), by the task head.

        Parameters
        ----------
        inputs : array or tensor of shape (n, d), or n texts
            As in `fit`.

        Returns
        -------
        array of shape (n,)
        """
        head = self._trained().task
        with torch.inference_mode():
            scores = head(torch.from_numpy(self.encode(inputs)).to(head.weight))
        return np.asarray(np.take(self.task_labels_, scores.argmax(dim=1).cpu().numpy()))

    def _trained(self) -> AdversarialModel:
        if not hasattr(self, "model_"):
            raise NotFittedError("This GradientReversal is not fitted yet. Call fit first.")
        return self.model_

    def _settings(self) -> TrainingSettings:
        """The parameters, checked."""
        check_encoder(self.encoder)
        if self.adversary is not None:
            check_choice(self.adversary, ("linear", "mlp"), "adversary")
        check_choice(self.pooling, POOLINGS, "pooling")
        for name in ("steps", "batch_size", "evaluate_every"):
            check_number(getattr(self, name), name, least=1, whole=True)
        for name in ("weight", "weight_decay", "momentum"):
            check_number(getattr(self, name), name)
        check_number(self.learning_rate, "learning_rate", strict=True)
        return TrainingSettings(
            steps=int(self.steps),
            batch_size=int(self.batch_size),
            learning_rate=float(self.learning_rate),
            weight_decay=float(self.weight_decay),
            momentum=float(self.momentum),
            evaluate_every=int(self.evaluate_every),
            seed=int(check_rng(self.random_state).integers(2**32)),
        )

    def _read(self, inputs: Any, task: Any, concept: Any) -> tuple[LabelledInputs, _Labels]:
        """The training rows, whose classes are the classes there are."""
        checked = self._inputs(inputs, "inputs")
        n = len(checked.lengths)
        classes = check_concept(task, n, concept_type="classes", name="task", owner="fit")
        if self.n_classes_task not in (None, classes.width):
            raise InputError(
                f"task does not have n_classes_task={self.n_classes_task} classes",
                f"{classes.width} classes: {', '.join(map(repr, classes.labels[:10]))}",
                "Pass rows of every class, or leave n_classes_task out",
            )
        if self.adversary is None:
            return LabelledInputs(checked, classes.values.astype(np.int64), None), _Labels(
                classes.labels
            )
        if concept is None:
            raise _no_concept("fit")
        hidden = check_concept(concept, n, concept_type="classes", name="concept")
        codes = (found.values.astype(np.int64) for found in (classes, hidden))
        return LabelledInputs(checked, *codes), _Labels(classes.labels, hidden.labels)

    def _read_validation(self, validation: Sequence[Any], labels: _Labels) -> LabelledInputs:
        """The development rows, in terms of the classes of the training rows."""
        if not isinstance(validation, tuple | list) or len(validation) not in (2, 3):
            raise InputError(
                "validation is not a development set",
                type(validation).__name__,
                "Pass validation=(inputs, task, concept)",
            )
        inputs = self._inputs(validation[0], "validation inputs")
        n = len(inputs.lengths)
        task = training_codes(labels.task, validation[1], n, "validation task")
        if self.adversary is None:
            return LabelledInputs(inputs, task, None)
        if len(validation) == 2 or validation[2] is None:
            raise _no_concept("validation")
        concept = training_codes(labels.concept, validation[2], n, "validation concept")
        return LabelledInputs(inputs, task, concept)

    def _inputs(self, inputs: Any, name: str) -> ModelInputs:
        return model_inputs(
            inputs, self.tokenizer, encoder=self.encoder, max_length=self.max_length, name=name
        )

    def _untrained(self, inputs: ModelInputs, labels: _Labels, seed: int) -> AdversarialModel:
        """A copy of the encoder with new heads."""
        encoder = copy.deepcopy(self.encoder)
        device = device_of(encoder)
        with own_randomness(device):
            with torch.no_grad():
                like = encodings(encoder.eval(), inputs.batch(np.arange(1), device), self.pooling)
                if self.pooling == "cls":
                    longest = inputs.lengths.argsort()[-1:]
                    check_first_token(encoder, inputs.batch(longest, device))
            seed_torch(seed, device)
            return AdversarialModel(
                encoder,
                like,
                n_tasks=len(labels.task),
                n_concepts=len(labels.concept),
                adversary=self.adversary,
                weight=self.weight,
                pooling=self.pooling,
            )

    def _identity(
        self,
        settings: TrainingSettings,
        labels: _Labels,
        train: LabelledInputs,
        dev: LabelledInputs,
    ) -> dict[str, Any]:
        """What a checkpoint of this run is recognised by; a run may be made longer."""
        chosen = {name: value for name, value in asdict(settings).items() if name != "steps"}
        return {
            **chosen,
            "adversary": self.adversary,
            "weight": float(self.weight),
            "pooling": self.pooling,
            "task": list(labels.task),
            "concept": list(labels.concept),
            "encoder": digest(*self.encoder.state_dict().values()),
            "training rows": digest(train.inputs.digest(), *train[1:]),
            "development rows": digest(dev.inputs.digest(), *dev[1:]),
        }


def _no_concept(where: str) -> InputError:
    return InputError(
        f"The adversary needs the concept, but {where} has none",
        "concept=None",
        "Pass its classes, or adversary=None for plain fine-tuning",
    )
