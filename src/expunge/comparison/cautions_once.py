"""Warnings of many fits, said once for all of them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["CautionsOnce"]

NUMBER = r"\d[\d.,e+-]*"


class CautionsOnce:
    """Keeps the warnings of fits, of which each method has many, and says each sentence once.

    Sentences that begin with the method and differ by that and by numbers are one.

    Examples
    --------
    >>> import warnings
    >>> from expunge.comparison.cautions_once import CautionsOnce
    >>> cautions = CautionsOnce()
    >>> with warnings.catch_warnings(record=True) as heard:
    ...     warnings.simplefilter("always")
    ...     for name in ["SAL", "RLACE", "SAL"]:
    ...         with cautions.of(name):
    ...             warnings.warn(f"{name} depends on units", stacklevel=1)
    ...     cautions.say(stacklevel=1)
    >>> [str(warning.message) for warning in heard]
    ['SAL depends on units. Likewise: RLACE']
    """

    def __init__(self) -> None:
        self._heard: dict[tuple[type[Warning], str], dict[str, str]] = {}

    @contextmanager
    def of(self, name: str) -> Iterator[None]:
        """Keep what is warned of inside, as of this method; filters apply as they are."""
        heard: list[warnings.WarningMessage] = []
        try:
            with warnings.catch_warnings(record=True) as heard:
                yield
        finally:
            for warning in heard:
                text = str(warning.message)
                kind = warning.category, re.sub(NUMBER, "", text.removeprefix(name))
                self._heard.setdefault(kind, {}).setdefault(name, text)

    def say(self, *, stacklevel: int) -> None:
        """Warn of each in the words that came first, and name the other methods."""
        for (category, _), texts in self._heard.items():
            (_, text), *others = texts.items()
            same = ", ".join(name for name, _ in others)
            warnings.warn(
                f"{text}. Likewise: {same}" if same else text, category, stacklevel=stacklevel + 1
            )
