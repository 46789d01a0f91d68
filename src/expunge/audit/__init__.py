"""The audit: what is left, what was lost.

``expunge.audit`` is the function. The modules of this package are reached by
``from expunge.audit import damage`` or ``from expunge.audit.probes import PROBES``.
"""

from expunge.audit.audit import audit
from expunge.audit.probing import Sizes
from expunge.audit.result import Audit

__all__ = ["Audit", "Sizes", "audit"]
