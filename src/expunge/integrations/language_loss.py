"""How well a model predicts tokens, and how far its predictions are from those it made before."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from expunge.integrations.module_names import unwrapped
from expunge.optional import require

__all__ = ["Language"]

torch = require("torch", "transformers")

HIDDEN = 0.15  # share of tokens that a masked language model has to guess


class Language:
    """Sums over batches of a causal or masked language model; of no use for other models.

    Parameters
    ----------
    model : torch.nn.Module
    tokenizer : Hugging Face tokenizer or None
        For its mask token, and for special tokens, which are not guessed.
    rng : numpy.random.Generator
        Chooses the tokens to guess.
    """

    def __init__(self, model: Any, tokenizer: Any, rng: np.random.Generator) -> None:
        self.mask_token = getattr(tokenizer, "mask_token_id", None)
        name = type(unwrapped(model)).__name__
        masked = "MaskedLM" in name and self.mask_token is not None
        causal = "CausalLM" in name or "LMHead" in name
        self.kind = "masked" if masked else "causal" if causal else None
        self.special = [int(number) for number in getattr(tokenizer, "all_special_ids", ())]
        self.rng, self.guessed = rng, None
        self.cost: dict[str, float] = {}
        self.apart: dict[str, float] = {}
        self.n = 0
        self.before: Any = None

    def masked(self, inputs: Any) -> Any:
        """A batch in which the tokens to guess are masked; other batches as they are."""
        if self.kind != "masked" or not isinstance(inputs, Mapping) or "input_ids" not in inputs:
            return inputs
        ids = inputs["input_ids"]
        there = inputs.get("attention_mask", torch.ones_like(ids)).bool()
        there = there & (there.cumsum(dim=1) > 1)  # not the first token
        there = there & ~torch.isin(ids, torch.tensor(self.special, dtype=ids.dtype))
        chosen = torch.from_numpy(self.rng.random(ids.shape) < HIDDEN)
        self.guessed = there & chosen
        return {**inputs, "input_ids": ids.masked_fill(self.guessed, self.mask_token)}

    def add(self, condition: str, inputs: Any, output: Any) -> None:
        """The output of one batch under a condition; "before" comes first."""
        if self.kind is None or not isinstance(inputs, Mapping) or "input_ids" not in inputs:
            return
        logits, ids = output.logits, inputs["input_ids"].to(output.logits.device)
        if self.kind == "causal":
            there = inputs.get("attention_mask", torch.ones_like(ids)).bool().to(logits.device)
            logits, ids = logits[:, :-1], ids[:, 1:]
            at = there[:, 1:] & there[:, :-1]
        else:
            at = self.guessed.to(logits.device)  # type: ignore[attr-defined]
        scores = torch.log_softmax(logits[at].float(), dim=-1)
        cost = -scores.gather(1, ids[at][:, None]).sum()
        self.cost[condition] = self.cost.get(condition, 0.0) + float(cost)
        if condition == "before":
            self.before, self.n = scores, self.n + len(scores)
        else:
            apart = (self.before.exp() * (self.before - scores)).sum()
            self.apart[condition] = self.apart.get(condition, 0.0) + float(apart)

    def loss(self) -> dict[str, float]:
        """Bits per token by condition."""
        return {name: cost / self.n / math.log(2) for name, cost in self.cost.items() if self.n}

    def kl(self) -> dict[str, float]:
        """Bits per token from "before", by the other conditions."""
        return {name: cost / self.n / math.log(2) for name, cost in self.apart.items() if self.n}
