"""Adversarial training by gradient reversal; it lives with the experiment that compares with it."""

from expunge.errors import MissingPackage

try:  # first of all modules that need it, so that the message names the extra
    import torch  # noqa: F401
except ModuleNotFoundError as error:
    raise MissingPackage("torch", "transformers") from error

from expunge.reproduce.bios.adversarial.frozen_encoder import encode, fresh_probe_accuracy
from expunge.reproduce.bios.adversarial.reversal import reverse_gradient
from expunge.reproduce.bios.adversarial.trainer import GradientReversal, TrainingResult
from expunge.reproduce.bios.adversarial.training_loop import Evaluation

__all__ = [
    "Evaluation",
    "GradientReversal",
    "TrainingResult",
    "encode",
    "fresh_probe_accuracy",
    "reverse_gradient",
]
