"""The audit: what is left, what was lost.

``expunge.audit`` is this package and can be called as the function `audit` in it.
"""

from expunge.audit.audit_result import Audit
from expunge.audit.auditing import audit
from expunge.audit.protocols import Sizes
from expunge.audit.strongest import StrongestProbe, strongest_probe
from expunge.callable_package import make_callable

__all__ = ["Audit", "Sizes", "StrongestProbe", "audit", "strongest_probe"]

make_callable(__name__, audit)
