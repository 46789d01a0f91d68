"""Hidden states of Hugging Face models: collect them, erase in them, scrub a model layer by layer.

Nothing here knows a model by name: any module of any `torch.nn.Module` will do.
"""

from expunge.integrations.collect import States, collect
from expunge.integrations.hooks import erasing
from expunge.integrations.scrub import scrub
from expunge.integrations.scrubbing import LayerReport, Scrubbing

__all__ = ["LayerReport", "Scrubbing", "States", "collect", "erasing", "scrub"]
