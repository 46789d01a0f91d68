"""The audit: what is left, what was lost."""

from expunge.audit.audit import audit
from expunge.audit.probing import Sizes
from expunge.audit.result import Audit

__all__ = ["Audit", "Sizes", "audit"]
