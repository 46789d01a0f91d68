"""The experiments of the paper, repeated on whatever data there are.

``expunge.reproduce`` is this package and can be called as the function `reproduce` in it.
"""

from expunge.callable_package import make_callable
from expunge.reproduce.registry import EXPERIMENTS
from expunge.reproduce.runner.reproduction import Reproduction, reproduce

__all__ = ["EXPERIMENTS", "Reproduction", "reproduce"]

make_callable(__name__, reproduce)
