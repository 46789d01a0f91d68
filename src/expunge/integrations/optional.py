"""Packages that are not there for everybody."""

from __future__ import annotations

import importlib
from typing import Any

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
    ImportError
        When the package is absent; the message names the extra. What fails inside a package that
        is there is raised as it is.

    Examples
    --------
    >>> from expunge.integrations.optional import require
    >>> require("json", "torch").loads("[1]")
    [1]
    >>> require("no_such_package", "torch")
    Traceback (most recent call last):
        ...
    ImportError: no_such_package is not installed; get it with: pip install 'expunge[torch]'
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package.partition(".")[0]:
            raise
        message = f"{package} is not installed; get it with: pip install 'expunge[{extra}]'"
        raise ImportError(message) from error
