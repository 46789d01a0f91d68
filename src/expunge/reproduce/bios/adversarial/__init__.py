"""Adversarial training by gradient reversal: the baseline that the paper compares with."""
