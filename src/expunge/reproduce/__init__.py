"""The experiments of the paper, repeated on whatever data there are.

The package can be called: ``ex.reproduce("glove", "results")`` is `reproduce`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from expunge.reproduce.registry import EXPERIMENTS
from expunge.reproduce.runner.reproduction import Reproduction, reproduce

__all__ = ["EXPERIMENTS", "Reproduction", "reproduce"]


class _CallablePackage(ModuleType):
    """One thing under one name: a function for users, a package for its modules."""

    __wrapped__ = staticmethod(reproduce)  # whose signature is shown

    def __call__(self, *args: Any, **kwargs: Any) -> Reproduction:
        return reproduce(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
