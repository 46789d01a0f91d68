"""Plans are drawn here: which data, concepts, weights and parameters, and how often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from plans import Plan, Rows, Target, Weights

import expunge as ex

__all__ = ["BAD", "ENTRIES", "FIXED", "draw_plan", "parameter_names"]

# entries by how often they are drawn; the last three train probes, so they are slow
ENTRIES = dict.fromkeys(ex.ERASERS, 8) | {"RLACE": 24, "certify": 24, "LEACE": 12}
SLOW = {"rank_path": 1, "compare": 1, "audit": 1}

# not drawn: what only shows progress, is called back, or is a model of its own
FIXED = {"callback", "verbose", "classifier", "random_state", "concept_type"}

# what has to be refused
BAD: dict[str, tuple[Any, ...]] = {
    "rank": (0, -1, 99, 2.5, True, "two", None),
    "strength": (-0.1, 1.1, float("nan"), "full", None),
    "alpha": (-1.0, float("nan"), float("inf"), "much", None),
    "tol": (-1.0, float("nan"), "tight", None),
    "loss": ("nonsense", None, 3),
    "solver": ("nonsense", None),
    "shrinkage": (-0.5, 2.0, "nonsense", None, float("nan")),
    "objective": ("nonsense", None),
    "transport": ("nonsense", None),
    "directions": (-1, 2.5, "many", None),
    "rounds": (-1, 0.5, None),
    "predictor": ("nonsense", None),
    "n_components": (0, -1, 2.5, "many", None),
    "scale": ("nonsense", None, 2.0),
    "max_iter": (0, -3, 2.5),
    "step_size": (0.0, -1.0, float("nan")),
    "batch_size": (0, 1.5),
    "evaluate_every": (0, "often"),
    "restarts": (-1, 0.5),
    "validation_fraction": (0.0, -0.1, 1.0, float("nan")),
    "random_state": (-1, "seed"),
    "concept_type": ("nonsense", None),
}


def draw_plan(source: Any, entry: str | None = None) -> Plan:
    """One plan; of a given entry if one is named."""
    if entry is None:
        table = SLOW if source.chance(0.005) else ENTRIES
        entry = source.choice([name for name, times in table.items() for _ in range(times)])
    slow = entry in SLOW
    rows = _rows(source, slow)
    target = _target(source, entry, rows)
    weights = _weights(source) if entry not in ("compare", "audit") else Weights()
    erasure = ""
    if entry in ("certify", "audit"):
        some = ("nothing", "random", "turned", "SAL", "LEACE", "MeanProjection", "OracleLEACE")
        erasure = source.choice(some)
    parameters = _parameters(source, entry, rows, target)
    plan = Plan(
        entry,
        source.integer(0, 2**31),
        rows,
        target,
        weights,
        entry == "SPLINCE" and source.chance(0.7),
        erasure,
        parameters,
    )
    return _spoilt(source, plan) if source.chance(0.04) and not slow else plan


def parameter_names(entry: str) -> set[str]:
    """What an entry can be told besides data."""
    if entry in ex.ERASERS:
        return set(ex.ERASERS[entry]().get_params(deep=False))
    if entry == "certify":
        return {"loss", "fit_intercept", "alpha", "tol", "concept_type", "as_transformed"}
    return set()


def _power(source: Any, low: float, high: float) -> float:
    return float(f"{10 ** source.number(low, high):.3g}")


def _rows(source: Any, slow: bool) -> Rows:
    dtype = "float64"
    if source.chance(0.35):
        dtype = source.choice(("float32", "float32", "float16", "int64", "int8", "bool"))
    n = source.integer(2, 12) if source.chance(0.15) else source.integer(8, 60)
    if source.chance(0.15):
        n = source.integer(60, 200)
    d = source.integer(1, 12) if source.chance(0.5) else source.integer(2, 5)
    few = dtype in ("float16", "int8", "bool") or slow
    odd = source.chance(0.6)  # the rest is plain Gaussian data
    tricks: dict[str, Any] = {}
    if odd and source.chance(0.15):
        tricks["integers"] = True
    if odd and source.chance(0.3):
        tricks["mixed"] = source.choice((1.0, 2.0, 4.0, 8.0)) if not few else 1.0
    if odd and source.chance(0.2) and not few:
        tricks["scale"] = source.choice((1e-8, 1e8, 1e-4, 1e5))
    if odd and source.chance(0.08) and dtype == "float64":
        tricks["scale"] = source.choice((1e-200, 1e-170, 1e-155, 1e-100, 1e100, 1e155, 1e200))
    if odd and source.chance(0.2) and not few:
        tricks["one_scale"] = source.choice((1e5, 1e-5, 1e8, 1e-8, 1e3))
    if odd and source.chance(0.04) and dtype == "float64":
        tricks["one_scale"] = source.choice((1e-200, 1e-155, 1e100, 1e155, 1e200))
    if odd and source.chance(0.2):
        tricks["offset"] = source.choice((1.0, 30.0, 1e3, 1e6)) if not few else 1.0
    if odd and source.chance(0.15):
        tricks["constants"] = source.integer(1, d)
    if odd and source.chance(0.1):
        tricks["twins"] = True
    if odd and source.chance(0.08):
        tricks["nearly"] = source.choice((1e-3, 1e-6, 1e-9, 1e-12))
    if odd and source.chance(0.1):
        tricks["copies"] = source.integer(1, 6)
    if odd and source.chance(0.04) and dtype == "float64":
        tricks["outlier"] = source.choice((1e155, 1e100, 1e20, 1e6, -1e8))
    if odd and source.chance(0.1) and not few:
        tricks["tails"] = source.choice((0.5, 1.0, 2.0, 3.0))
    if odd and source.chance(0.1):
        tricks["empty"] = source.choice((0.5, 0.9, 0.98))
    if source.chance(0.15):
        tricks["home"] = source.choice(("fortran", "strided", "list", "frame", "tensor"))
    gap = source.choice((1.0, 1.0, 0.0, 0.1, 5.0, 30.0))
    return Rows(n, d, gap, dtype=dtype, **tricks)


def _target(source: Any, entry: str, rows: Rows) -> Target:
    if entry == "PairPCA":
        return Target("sets", source.integer(2, 4))
    kinds = ["binary", "binary", "classes", "classes"]
    takes = ex.ERASERS[entry].kinds if entry in ex.ERASERS else {"classes"}
    if entry in ("certify", "rank_path", "compare", "audit") or "labels" in takes:
        kinds += ["labels", "several"]
    if entry in ("certify", "rank_path", "compare", "audit") or "continuous" in takes:
        kinds += ["number", "vector", "several"]
    kind = source.choice(kinds)
    tricks: dict[str, Any] = {}
    if kind in ("classes", "labels", "vector"):
        tricks["count"] = source.integer(2 + (kind == "classes"), 5)
    if kind in ("binary", "classes", "labels", "several") and source.chance(0.2):
        tricks["rare"] = True
    if kind in ("binary", "classes") and source.chance(0.3):
        tricks["text"] = True
    if kind in ("number", "vector", "several") and source.chance(0.4):
        tricks["units"] = source.choice((1e3, 1e-3, 1e-8, 1e8, 1e11, 1e18))
        tricks["origin"] = source.choice((0.0, 0.0, 10.0, 1e3, 1e6))
    if kind in ("labels", "vector"):
        if source.chance(0.08):
            tricks["frozen"] = True
        if source.chance(0.08):
            tricks["twin"] = True
    return Target(kind, **tricks)


def _weights(source: Any) -> Weights:
    if source.chance(0.65):
        return Weights()
    ratio = source.choice((1.0, 2.0, 1e2, 1e4, 1e6, 1e8))
    zeros = source.choice((0.0, 0.0, 0.2, 0.6))
    return Weights(ratio, zeros, source.chance(0.08))


def _parameters(source: Any, entry: str, rows: Rows, target: Target) -> dict[str, Any]:
    names = parameter_names(entry)
    numbers = target.kind in ("number", "vector", "several")
    found: dict[str, Any] = {}
    if "rank" in names and rows.d > 1:
        below = entry == "RLACE" and target.kind not in ("binary", "number")
        if source.chance(0.06 if below else 0.03 if entry == "RLACE" else 0.4):
            found["rank"] = source.integer(1, min(rows.d - 1, 4))
    if entry == "INLP" and "rank" not in found and rows.d > 1 and source.chance(0.8):
        found["rank"] = source.integer(1, min(rows.d - 1, 3))
    if "loss" in names and (numbers or source.chance(0.4)):
        some = ("cross_entropy", "squared", "squared_hinge", "squared")
        found["loss"] = "squared" if numbers else source.choice(some)
        if not numbers and source.chance(0.08):
            found["loss"] = "hinge"
    if "solver" in names and source.chance(0.05):
        found["solver"] = source.choice(("closed_form", "closed_form", "descent_ascent"))
        if found["solver"] == "descent_ascent":
            found.update(max_iter=source.integer(1, 60), evaluate_every=30)
            if source.chance(0.3):
                found["step_size"] = source.choice((1e-4, 0.5, 100.0))
                found["batch_size"] = source.integer(1, 300)
        if source.chance(0.2):
            found["restarts"] = 1
    if "max_iter" in names and "solver" not in found and "rank" in found:
        found["max_iter"] = source.integer(1, 6)
    if "alpha" in names and source.chance(0.35):
        found["alpha"] = _power(source, -12, 0)
    if "tol" in names and source.chance(0.2):
        found["tol"] = 0.0 if source.chance(0.2) else _power(source, -12, -1)
    if "fit_intercept" in names and source.chance(0.2):
        found["fit_intercept"] = False
    if "scale" in names and source.chance(0.25):
        found["scale"] = "std"
    if "as_transformed" in names and source.chance(0.2):
        found["as_transformed"] = True
    if "center" in names and source.chance(0.2):
        found["center"] = False
    if "objective" in names and source.chance(0.6):
        found["objective"] = source.choice(("cca", "cca", "pca"))
    if "label_free" in names and source.chance(0.3):
        found["label_free"] = True
    if "shrinkage" in names and source.chance(0.3):
        found["shrinkage"] = source.choice(("ledoit_wolf", "oas", 0.1, 1.0, "none"))
    if "transport" in names and source.chance(0.2):
        found["transport"] = "shift"
    if "directions" in names and source.chance(0.3):
        found["directions"] = source.choice((0, 1, 2))
    if "rounds" in names and source.chance(0.2):
        found["rounds"] = source.choice((1, 2))
    if "predictor" in names and source.chance(0.3):
        found["predictor"] = "random_features" if entry == "LEACE" else "discriminant"
    if found.get("predictor") == "random_features":
        found["n_components"] = source.choice((1, 7, 30))
    if "validation_fraction" in names and source.chance(0.1):
        found["validation_fraction"] = source.number(0.05, 0.9)
    if "strength" in names and source.chance(0.12):
        found["strength"] = source.choice((0.0, 0.5, 0.99, 1.0, 1e-9))
    return found


def _spoilt(source: Any, plan: Plan) -> Plan:
    """The same plan with one thing that has to be refused."""
    what = source.choice(("parameter", "parameter", "rows", "target", "weights"))
    names = sorted(parameter_names(plan.entry) & BAD.keys())
    if what == "parameter" and names:
        name = source.choice(names)
        bad = source.choice(BAD[name])
        if name == "loss" and plan.entry == "certify" and bad is None:
            bad = "nonsense"  # None is the default there
        if name == "concept_type" and plan.parameters.get("objective") == "pca":
            name, bad = "rank", 0  # it has no concept
        return replace(plan, parameters={**plan.parameters, name: bad}, bad=name)
    if what == "target" and plan.entry != "PairPCA":
        defect = source.choice(("none", "short", "nan", "single"))
        if plan.parameters.get("objective") != "pca":
            return replace(plan, target=Target(defect=defect), task=False)
    if what == "weights":
        defect = source.choice(("negative", "nan", "short", "zero"))
        return replace(plan, weights=Weights(defect=defect))
    defect = source.choice(("nan", "inf", "empty", "flat", "complex", "text"))
    return replace(plan, rows=Rows(plan.rows.n, plan.rows.d, defect=defect))
