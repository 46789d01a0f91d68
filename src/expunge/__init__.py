"""Remove a concept from vectors so that no linear predictor can recover it, and prove it."""

from expunge._version import __version__
from expunge.erasers import ERASERS, RLACE, RayleighEraser
from expunge.erasure import Erasure
from expunge.errors import BadArtifact, ExpungeError, InputError, NotConverged, RankTruncated
from expunge.game.certificate import Certificate
from expunge.moments import Moments

__all__ = [
    "ERASERS",
    "RLACE",
    "BadArtifact",
    "Certificate",
    "Erasure",
    "ExpungeError",
    "InputError",
    "Moments",
    "NotConverged",
    "RankTruncated",
    "RayleighEraser",
    "__version__",
]
