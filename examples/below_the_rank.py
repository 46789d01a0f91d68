"""Two directions against ten classes: what each solver leaves to the best linear predictor."""

from sklearn.datasets import load_digits

import expunge as ex

X, y = load_digits(return_X_y=True)
K = 2  # ten classes need nine

short = ex.RLACE(K, solver="descent_ascent", step_size=0.1, max_iter=1000).fit(X, y)
auto = ex.RLACE(K).fit(X, y)
full = ex.RLACE().fit(X, y)

print("loss of the best linear predictor (ridge term included), higher is better for the eraser")
for name, eraser in [
    (f"K = {K}, descent_ascent, 1,000 steps", short),
    (f"K = {K}, auto ({auto.solver_})", auto),
    (f"K = {full.rank_}, auto ({full.solver_})", full),
]:
    print(f"{name:36} {eraser.certificate_.primal:.4f}")
print(f"{'ignoring x':36} {full.certificate_.bound:.4f}")
