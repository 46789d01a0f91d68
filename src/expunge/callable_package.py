"""A package that can be called: for a public function that shares its name with a folder.

``expunge.audit`` is a folder of modules and ``ex.audit(...)`` the function they serve. Python keeps
one attribute of that name, and importing any module of the folder sets it to the package. Were it
the function, ``import expunge.audit.probes as probes`` would look for `probes` on the function and
fail; were it a plain package, ``ex.audit(...)`` would. So the package itself takes the call.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["CallablePackage", "make_callable"]


class CallablePackage(ModuleType):
    """A package whose call is that of one function in it.

    Attributes
    ----------
    __signature__ : inspect.Signature
        Of the function, for `help` and editors.
    """

    __signature__: inspect.Signature
    _called: Callable[..., Any]

    def __call__(self, *args: Any, **settings: Any) -> Any:
        """Call the function."""
        return self._called(*args, **settings)

    def __reduce__(self) -> tuple[Any, ...]:
        return importlib.import_module, (self.__name__,)


def make_callable(package: str, function: Callable[..., Any]) -> None:
    """Let the call of a package be that of a function in it.

    Parameters
    ----------
    package : str
        Its full name; it calls this from its own `__init__`.
    function : callable

    Examples
    --------
    >>> import inspect
    >>> import expunge as ex
    >>> import expunge.audit.probes as probes
    >>> callable(ex.audit), ex.audit.probes is probes
    (True, True)
    >>> inspect.signature(ex.audit) == inspect.signature(ex.audit.audit)
    True
    """
    module = sys.modules[package]
    module.__class__ = CallablePackage
    module.__dict__.update(_called=function, __signature__=inspect.signature(function))
