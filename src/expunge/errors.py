"""What can go wrong, by name."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = [
    "BadArtifact",
    "CovariancesDiffer",
    "ExpungeError",
    "InputError",
    "LostCluster",
    "MissingAsClass",
    "MissingPackage",
    "NotConverged",
    "NotNumeric",
    "NothingLeft",
    "NumbersAsClasses",
    "PoolDiffers",
    "PoolRepeats",
    "RankTruncated",
    "RoundingShows",
    "RowsStretched",
    "SampleTaken",
    "UnitsMatter",
]


class ExpungeError(Exception):
    """Root of every error raised on purpose by this library."""


class InputError(ExpungeError, ValueError):
    """Bad input, in three parts: what is wrong, what was received, what to do.

    Parameters
    ----------
    problem, received, remedy : str
        One clause each; `received` completes the words "Received ...".

    Examples
    --------
    >>> from expunge.errors import InputError
    >>> print(InputError("X is empty", "shape (0, 3)", "Pass at least two rows"))
    X is empty. Received shape (0, 3). Pass at least two rows.
    """

    def __init__(self, problem: str, received: str, remedy: str) -> None:
        super().__init__(problem, received, remedy)
        self.problem = problem
        self.received = received
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}. Received {self.received}. {self.remedy}."


class NotNumeric(InputError, TypeError):
    """Entries that are not numbers at all; an `InputError` that is a `TypeError` too."""


class BadArtifact(ExpungeError, ValueError):
    """A file that is not a readable erasure: damaged, truncated, foreign or too new."""


class LostCluster(ExpungeError, OSError):
    """The scheduler or the workers of a cluster went away; nothing that looks whole was left."""


class MissingPackage(ExpungeError, ImportError):
    """An optional package is not installed.

    Parameters
    ----------
    package : str
    extra : str
        The extra of expunge that brings it; empty where none does.

    Examples
    --------
    >>> from expunge.errors import MissingPackage
    >>> print(MissingPackage("torch", "transformers"))
    torch is not installed; get it with: pip install 'expunge[transformers]'
    >>> print(MissingPackage("s3fs", ""))
    s3fs is not installed; get it with: pip install s3fs
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, extra)
        self.package = package
        self.extra = extra

    def __str__(self) -> str:
        wanted = f"'expunge[{self.extra}]'" if self.extra else self.package
        return f"{self.package} is not installed; get it with: pip install {wanted}"


class NotConverged(ConvergenceWarning):  # type: ignore[misc]  # scikit-learn is untyped
    """An iterative solver stopped before it reached its tolerance."""


class RankTruncated(UserWarning):
    """Singular values were treated as zero although they exceed rounding error."""


class NothingLeft(UserWarning):
    """The erasure leaves next to nothing of the rows: all of them become nearly the same."""


class CovariancesDiffer(UserWarning):
    """Class covariances that were to be made equal are not, where a class hardly varies."""


class NumbersAsClasses(UserWarning):
    """Whole numbers stored as floats, with many different values, were taken for classes."""


class MissingAsClass(UserWarning):
    """Labels such as nan, None or NA, as text, were taken for a class."""


class UnitsMatter(UserWarning):
    """Columns differ so much in spread that the widest of them decides what is erased."""


class RoundingShows(UserWarning):
    """Rounding erased rows to their type puts part of the concept back."""


class RowsStretched(UserWarning):
    """The erasure makes rows vary far more than they did: what it keeps is next to the concept."""


class SampleTaken(UserWarning):
    """Something that wants all rows in memory was given some of them, at random."""


class NothingToFold(UserWarning):
    """A fold was asked for, and LEACE alone was taken: nothing more would hold on new rows."""


class OnlyLinear(UserWarning):
    """Features of x were to help LEACE, and LEACE alone was taken: nothing more would hold."""


class PoolDiffers(UserWarning):
    """Rows with and without labels, passed to one fit, are not of one population."""


class PoolRepeats(UserWarning):
    """Many rows without labels are labelled rows too, or copies: they teach a fit nothing."""
