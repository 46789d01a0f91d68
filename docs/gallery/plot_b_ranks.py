"""
Fewer directions than the concept has
=====================================

Ten classes have nine directions. What do K of them leave, and what do they cost?
"""

# %%
# Handwritten digits: the game for K from 1 to 9.
import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

import expunge as ex

X, y = load_digits(return_X_y=True)
half = len(X) // 2
path = ex.rank_path(X[:half], y[:half], ranks=[2, 4, 6, 8, 9])
print(path)

# %%
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
path.plot(ax)
