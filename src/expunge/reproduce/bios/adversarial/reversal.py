"""The gradient reversal layer, and an encoder with a task head and a concept adversary behind it.

With h = encoder(x), the task head's loss L_t(h) and the adversary's loss L_a(h), one backward pass
of L_t(h) + L_a(reverse(h)) gives every part the gradient it needs:

    task head   dL_t           adversary   dL_a           encoder   dL_t - weight dL_a

so the adversary learns the concept while the encoder learns the task and works against it.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from expunge.errors import InputError

__all__ = [
    "HIDDEN",
    "POOLINGS",
    "AdversarialModel",
    "Adversary",
    "Pooling",
    "check_first_token",
    "encodings",
    "reverse_gradient",
]

HIDDEN = 300  # units of the MLP adversary's one hidden layer

Adversary = Literal["linear", "mlp"]
Pooling = Literal["cls", "mean", "last"]
POOLINGS = ("cls", "mean", "last")
Batch = Tensor | dict[str, Tensor]  # rows of numbers, or the arguments of a Hugging Face model


class _Reversal(torch.autograd.Function):
    """x forwards, -weight times the gradient backwards."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: float) -> Tensor:
        ctx.weight = weight
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return -ctx.weight * gradients[0], None


def reverse_gradient(x: Tensor, weight: float = 1.0) -> Tensor:
    """`x` itself, whose gradient comes back multiplied by `-weight`.

    Parameters
    ----------
    x : torch.Tensor
        Of any shape.
    weight : float
        By which the gradient is multiplied, with the opposite sign.

    Returns
    -------
    torch.Tensor
        Of the same shape.

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.reversal import reverse_gradient
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> y = reverse_gradient(x, weight=0.5)
    >>> (3 * y).sum().backward()
    >>> y.tolist(), x.grad.tolist()
    ([1.0, 2.0], [-1.5, -1.5])
    """
    reversed_: Tensor = _Reversal.apply(x, weight)  # type: ignore[no-untyped-call]
    return reversed_


class HeadScores(NamedTuple):
    """Task scores (b x classes), and the adversary's concept scores likewise if there is one."""

    task: Tensor
    concept: Tensor | None


class AdversarialModel(nn.Module):
    """An encoder, a linear task head and, unless it is plain fine-tuning, a concept adversary.

    Parameters
    ----------
    encoder : torch.nn.Module
        Rows (b x d) to encodings (b x width), or a Hugging Face model.
    like : torch.Tensor of shape (..., width)
        Some encoding; the heads take its width, type and device.
    n_tasks : int
        Classes of the task.
    n_concepts : int
        Classes of the concept.
    adversary : {"linear", "mlp", None}
        "mlp" has one hidden layer of 300 units and ReLU.
    weight : float
        The encoder's share of the adversary's reversed gradient.
    pooling : {"cls", "mean", "last"}
        How a Hugging Face model's token vectors become one encoding.

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.reversal import AdversarialModel
    >>> encoder, like = torch.nn.Linear(4, 3), torch.zeros(3)
    >>> model = AdversarialModel(encoder, like, n_tasks=5, n_concepts=2, adversary="mlp")
    >>> scores = model(torch.zeros(7, 4))
    >>> scores.task.shape, scores.concept.shape
    (torch.Size([7, 5]), torch.Size([7, 2]))
    """

    def __init__(
        self,
        encoder: nn.Module,
        like: Tensor,
        *,
        n_tasks: int,
        n_concepts: int,
        adversary: Adversary | None,
        weight: float = 1.0,
        pooling: Pooling = "cls",
    ) -> None:
        super().__init__()
        self.encoder, self.weight, self.pooling = encoder, weight, pooling
        width = like.shape[-1]
        self.task = nn.Linear(width, n_tasks).to(like)
        self.adversary = None
        if adversary is not None:
            self.adversary = _adversary(adversary, width, n_concepts).to(like)

    def forward(self, batch: Batch) -> HeadScores:
        """Scores of both heads; the adversary sits behind the reversal layer."""
        h = encodings(self.encoder, batch, self.pooling)
        if self.adversary is None:
            return HeadScores(self.task(h), None)
        return HeadScores(self.task(h), self.adversary(reverse_gradient(h, self.weight)))


def _adversary(kind: Adversary, width: int, n_concepts: int) -> nn.Module:
    if kind == "linear":
        return nn.Linear(width, n_concepts)
    return nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, n_concepts))


def encodings(encoder: nn.Module, batch: Batch, pooling: Pooling) -> Tensor:
    """Encodings (b x width) of one batch.

    Parameters
    ----------
    encoder : torch.nn.Module
    batch : tensor of shape (b, d), or dict of input_ids and attention_mask of shape (b, length)
    pooling : {"cls", "mean", "last"}
        The first token's vector, the mean over the tokens that are not padding, or the last of
        these, which is the one that has seen the whole text in a causal model.

    Returns
    -------
    torch.Tensor

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.reversal import encodings
    >>> encodings(torch.nn.Flatten(), torch.ones(2, 3), "cls").shape
    torch.Size([2, 3])
    """
    if isinstance(batch, Tensor):
        dtype = next((weight.dtype for weight in encoder.parameters()), batch.dtype)
        return _as_encodings(encoder(batch.to(dtype)))
    tokens: Tensor = encoder(**batch).last_hidden_state
    if pooling == "cls":
        return tokens[:, 0]
    if pooling == "last":
        places = torch.arange(tokens.shape[1], device=tokens.device)
        last = (places * batch["attention_mask"]).argmax(dim=1)
        return tokens[torch.arange(len(tokens), device=tokens.device), last]
    there = batch["attention_mask"].unsqueeze(-1).to(tokens.dtype)
    return (tokens * there).sum(dim=1) / there.sum(dim=1)


def check_first_token(encoder: nn.Module, batch: Batch) -> None:
    """Refuse the first token as an encoding where it does not see the others: in a causal model.

    Parameters
    ----------
    encoder : torch.nn.Module
    batch : tensor of shape (b, d), or dict of input_ids and attention_mask of shape (b, length)

    Examples
    --------
    >>> import torch
    >>> from expunge.reproduce.bios.adversarial.reversal import check_first_token
    >>> check_first_token(torch.nn.Flatten(), torch.ones(2, 3))
    """
    if isinstance(batch, Tensor) or batch["input_ids"].shape[1] < 2:
        return
    ids = batch["input_ids"][:1]
    other = ids.clone()
    other[:, 1:] = torch.where(ids[:, 1:] == ids[:, :1], 0, ids[:, :1])
    with torch.no_grad():
        first, second = (encoder(input_ids=each).last_hidden_state[:, 0] for each in (ids, other))
    if torch.equal(first, second) and not torch.equal(ids, other):
        raise InputError(
            "The first token of this model does not see the others: it says nothing of a text",
            f"pooling='cls' with {type(encoder).__name__}",
            "Pass pooling='last' or 'mean'",
        )


def _as_encodings(output: Any) -> Tensor:
    if isinstance(output, Tensor) and output.ndim == 2:
        return output
    shape = f" of shape {tuple(output.shape)}" if isinstance(output, Tensor) else ""
    raise InputError(
        "The encoder does not give one vector per row",
        f"{type(output).__name__}{shape}",
        "Pass a module from (n, d) to (n, width), or a Hugging Face model with tokenizer=",
    )
