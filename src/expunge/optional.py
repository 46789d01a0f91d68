"""Packages that are not there for everybody."""

from __future__ import annotations

import importlib
from typing import Any

from expunge.errors import MissingPackage

__all__ = ["require"]


def require(package: str, extra: str) -> Any:
    """Import an optional package, or say what to install.

    Parameters
    ----------
    package : str
        The name it is imported by.
    extra : str
        The extra of expunge that brings it.

    Returns
    -------
    module

    Raises
    ------
    MissingPackage
        When the package is absent; the message names the extra. What fails inside a package that
        is there is raised as it is.

    Examples
    --------
    >>> from expunge.optional import require
    >>> require("json", "torch").loads("[1]")
    [1]
    >>> try:
    ...     require("no_such_package", "torch")
    ... except ImportError as error:
    ...     print(error)
    no_such_package is not installed; get it with: pip install 'expunge[torch]'
    """
    name = package.partition(".")[0]
    try:
        importlib.import_module(name)
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingPackage(name, extra) from error
