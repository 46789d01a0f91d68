"""Plug in a loss: cross-entropy in which a missed "yes" costs three times a false one."""

import numpy as np
from scipy.special import expit

import expunge as ex
from expunge.data import load_glove
from expunge.game.losses import ColumnLoss


class Asymmetric(ColumnLoss):
    """e(y, s) = cost y log(1 + exp(-s)) + (1 - y) log(1 + exp(s)) for y in {0, 1}."""

    name = "asymmetric"

    def __init__(self, cost=3.0):
        self.cost = cost

    def elements(self, Y, S):
        """Loss of every entry."""
        return self.cost * Y * np.logaddexp(0, -S) + (1 - Y) * np.logaddexp(0, S)

    def derivative(self, Y, S):
        """Derivative in the scores."""
        return (1 - Y) * expit(S) - self.cost * Y * expit(-S)

    def second(self, Y, S):
        """Second derivative in the scores."""
        return (self.cost * Y + 1 - Y) * expit(S) * expit(-S)


words = load_glove().train
plain = ex.RLACE().fit(words.X, words.y)
custom = ex.RLACE(loss=Asymmetric()).fit(words.X, words.y)
cosine = abs(float(plain.erasure_.basis[0] @ custom.erasure_.basis[0]))

print(plain.certificate_)
print(custom.certificate_)
print(f"|cosine| of the two erased directions: {cosine:.6f}")
