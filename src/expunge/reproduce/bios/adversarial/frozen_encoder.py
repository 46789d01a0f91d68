"""What a frozen encoder gives, and what a predictor trained afresh finds in it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from expunge.concept import Concept, Label
from expunge.errors import InputError, NotConverged
from expunge.game.losses import loss_for
from expunge.game.predictor import Problem, fit_predictor
from expunge.inputs import check_choice, check_concept, check_number, check_rows
from expunge.inputs.several import match_labels
from expunge.integrations.text_batches import evaluating
from expunge.reproduce.bios.adversarial.model_inputs import buckets, model_inputs
from expunge.reproduce.bios.adversarial.reversal import (
    POOLINGS,
    Pooling,
    check_first_token,
    encodings,
)

__all__ = ["check_encoder", "device_of", "encode", "fresh_probe_accuracy", "training_codes"]


def encode(
    encoder: torch.nn.Module,
    inputs: Any,
    *,
    tokenizer: Any = None,
    pooling: Pooling = "cls",
    max_length: int = 512,
    batch_size: int = 64,
    callback: Callable[[int, int], None] | None = None,
) -> NDArray[np.float32]:
    """Encodings by an encoder as it is, without dropout, in batches of about equal length.

    Parameters
    ----------
    encoder : torch.nn.Module
        A module from (n, d) to (n, width), or a Hugging Face model. It runs where its weights are.
    inputs : array or tensor of shape (n, d), or n texts
    tokenizer : callable, optional
        The Hugging Face tokenizer of the encoder; inputs are then texts.
    pooling : {"cls", "mean", "last"}
        Encoding of a text: the first token's vector, the mean over its tokens, or the last
        token's, as for causal models.
    max_length : int
        Tokens read of a text, at most what model and tokenizer can take.
    batch_size : int
    callback : callable, optional
        Called with the number of rows encoded so far and of all rows, after each batch.

    Returns
    -------
    float32 array of shape (n, width)
        In the order of `inputs`.

    Examples
    --------
    >>> import torch
    >>> from expunge.integrations.adversarial import encode
    >>> encode(torch.nn.ReLU(), [[-1.0, 2.0], [3.0, -4.0]])
    array([[0., 2.],
           [3., 0.]], dtype=float32)
    """
    check_encoder(encoder)
    check_choice(pooling, POOLINGS, "pooling")
    check_number(batch_size, "batch_size", least=1, whole=True)
    checked = model_inputs(inputs, tokenizer, encoder=encoder, max_length=max_length)
    device, done = device_of(encoder), 0
    out: NDArray[np.float32] | None = None
    with evaluating(encoder), torch.inference_mode():
        if pooling == "cls":
            check_first_token(encoder, checked.batch(checked.lengths.argsort()[-1:], device))
        for rows in buckets(checked.lengths, batch_size):
            h = encodings(encoder, checked.batch(rows, device), pooling)
            if out is None:
                out = np.empty((len(checked.lengths), h.shape[1]), dtype=np.float32)
            out[rows] = h.float().cpu().numpy()
            done += len(rows)
            if callback is not None:
                callback(done, len(checked.lengths))
    assert out is not None  # there is at least one row
    return out


def fresh_probe_accuracy(
    encodings_train: Any, concept_train: Any, encodings_test: Any, concept_test: Any
) -> float:
    """Share of test rows whose concept a new linear predictor gets right.

    The predictor is a logistic regression trained to its optimum on the training encodings, with a
    ridge of 1e-4 of their mean variance, so that small encodings do not hide anything.

    Parameters
    ----------
    encodings_train : array of shape (n, width)
        What the predictor learns from.
    concept_train : array of shape (n,)
        Their classes.
    encodings_test : array of shape (m, width)
        What it is asked about, encoded alike.
    concept_test : array of shape (m,)
        Their classes, all of which the training rows have.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from expunge.integrations.adversarial import fresh_probe_accuracy
    >>> concept = np.arange(200) % 2
    >>> H = np.random.default_rng(0).normal(size=(200, 3)) + 4 * np.outer(concept, [1, 0, 0])
    >>> fresh_probe_accuracy(H[:100], concept[:100], H[100:], concept[100:]) > 0.9
    True
    """
    train = check_rows(encodings_train, name="encodings_train")
    test = check_rows(encodings_test, name="encodings_test", least=1)
    if test.n_features != train.n_features:
        raise InputError(
            "encodings_train and encodings_test differ in width",
            f"{train.n_features} and {test.n_features} columns",
            "Encode both with the same encoder",
        )
    concept = check_concept(
        concept_train, train.n_samples, concept_type="classes", name="concept_train"
    )
    codes = training_codes(concept.labels, concept_test, test.n_samples, "concept_test")
    loss, moments = loss_for("cross_entropy", "classes", concept.width), train.moments(concept)
    probe = fit_predictor(Problem(train, concept, loss, moments))
    if not probe.converged:
        warnings.warn(
            "The fresh probe was stopped before its optimum; a better one may exist",
            NotConverged,
            stacklevel=2,
        )
    asked = Concept("classes", codes, concept.labels)
    center = moments.mean_x  # the intercept is the score of the mean training row
    return test.glm_pass(loss, probe.coef, probe.intercept, asked, None, center=center).accuracy


def training_codes(labels: tuple[Label, ...], values: Any, n: int, name: str) -> NDArray[np.int64]:
    """Class numbers of n `values`, called `name`, among the labels of the training rows.

    Examples
    --------
    >>> from expunge.reproduce.bios.adversarial.frozen_encoder import training_codes
    >>> training_codes(("f", "m"), ["m", "m", "f"], 3, "concept")
    array([1, 1, 0])
    """
    found = check_concept(values, n, concept_type="classes", name=name, whole=False)
    try:
        return match_labels(found, "classes", labels).values.astype(np.int64)
    except InputError as error:
        unknown = [label for label in found.labels if label not in labels]
        raise InputError(
            f"{name} has classes that the training rows do not have",
            ", ".join(map(repr, unknown[:5])),
            "Drop those rows, or train on rows of these classes too",
        ) from error


def check_encoder(encoder: Any) -> None:
    """Refuse what is not a torch module.

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.frozen_encoder import check_encoder
    >>> check_encoder(torch.nn.ReLU())
    """
    if not isinstance(encoder, torch.nn.Module):
        raise InputError(
            "The encoder is not a torch module",
            type(encoder).__name__,
            "Pass a torch.nn.Module or a Hugging Face model",
        )


def device_of(module: torch.nn.Module) -> torch.device:
    """Where the weights of a module are; the CPU if it has none.

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.frozen_encoder import device_of
    >>> device_of(torch.nn.Linear(2, 2))
    device(type='cpu')
    """
    return next((weight.device for weight in module.parameters()), torch.device("cpu"))
