"""The experiments of the paper, repeated on whatever data there are."""

from expunge.reproduce.registry import EXPERIMENTS
from expunge.reproduce.reproduction import Reproduction, reproduce

__all__ = ["EXPERIMENTS", "Reproduction", "reproduce"]
