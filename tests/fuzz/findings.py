"""Outcomes of a call, and the exception that carries one."""

from __future__ import annotations

__all__ = ["OUTCOMES", "Finding", "Refused"]

OUTCOMES = ("ok", "refused", "unsound", "silent", "raw")


class Finding(AssertionError):
    """A fault: its outcome, a short name that tells it from others, and the details."""

    def __init__(self, outcome: str, name: str, details: str = "") -> None:
        super().__init__(outcome, name, details)
        self.outcome, self.name, self.details = outcome, name, details

    def __str__(self) -> str:
        return f"{self.outcome}: {self.name}: {self.details}"


class Refused(Exception):
    """The call was refused in the library's own words."""
