"""Hidden states of Hugging Face models: collect, erase, scrub layer by layer, bake into weights.

Nothing here knows a model by name: any module of any `torch.nn.Module` will do.
"""

from expunge.integrations.bake import bake
from expunge.integrations.collect import States, collect
from expunge.integrations.hooks import erasing
from expunge.integrations.install import install, uninstall
from expunge.integrations.scrub import scrub
from expunge.integrations.scrub_evaluation import ScrubEvaluation
from expunge.integrations.scrubbing import LayerReport, Scrubbing

__all__ = [
    "LayerReport",
    "ScrubEvaluation",
    "Scrubbing",
    "States",
    "bake",
    "collect",
    "erasing",
    "install",
    "scrub",
    "uninstall",
]
