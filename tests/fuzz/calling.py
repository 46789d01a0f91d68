"""One planned call and everything that is checked about it."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from building import Case, as_array, build
from certificates import check_certificate
from exact_rows import spreads
from findings import Finding, Refused
from plans import Plan
from promises import broken_promise, is_full_fit

import expunge as ex

__all__ = ["SECONDS", "Report", "run"]

SECONDS = 60.0  # of processor time that a call on such small data may take
OURS = tuple(
    thing
    for thing in vars(ex.errors).values()
    if isinstance(thing, type)
    and issubclass(thing, Warning)
    and thing.__module__ == ex.errors.__name__
)


EXCUSES = {"RankTruncated", "NotConverged"}  # warnings that a promise may not be kept


class Report:
    """What happened in one plan: `calls` to public entries, warnings heard, a refusal if any."""

    def __init__(self) -> None:
        self.calls = 0
        self.refusal = ""
        self.heard: set[str] = set()


class _TooLong(BaseException):
    """Not an `Exception`, so that nothing on the way catches it."""


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Interrupt what takes longer, in processor time: other work on the machine does not count."""

    def stop(*_: Any) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def run(plan: Plan) -> Report:
    """Make the call and check it; raises `Finding` for a fault."""
    case, report = build(plan), Report()
    try:
        if plan.entry in ex.ERASERS:
            _run_eraser(case, report)
        elif plan.entry == "certify":
            _run_certify(case, report)
        else:
            _run_slow(case, report)
    except Refused as refused:
        report.refusal = str(refused)
        if plan.is_tame and plan.entry in ("LEACE", "SAL", "MeanProjection", "OracleLEACE"):
            raise Finding("silent", "refused plain rows", str(refused)) from None
    else:
        if not plan.is_valid:
            what = plan.bad or plan.rows.defect or plan.target.defect or plan.weights.defect
            raise Finding("silent", f"accepted bad {what}", repr(plan.parameters.get(what, "")))
    return report


@contextlib.contextmanager
def _calling(report: Report, what: str, *, foreign: bool = False) -> Iterator[None]:
    """Around every call: only our own errors and warnings come out, and it ends."""
    report.calls += 1
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            with _limited(SECONDS):
                yield
        except ex.ExpungeError as error:
            problem = getattr(error, "problem", str(error))
            raise Refused(f"{what}: {problem}") from error
        except _TooLong:
            raise Finding("raw", f"{what} takes too long", _where()) from None
        except Finding:
            raise
        except Exception as error:
            where = _origin(error)
            raise Finding(
                "raw", f"{type(error).__name__} in {where}", f"{what}: {error}"
            ) from error
    for warning in heard:
        if issubclass(warning.category, OURS):
            report.heard.add(warning.category.__name__)
        elif not foreign:
            place = Path(warning.filename).stem
            name = f"{warning.category.__name__} in {place}:{warning.lineno}"
            raise Finding("raw", name, f"{what}: {warning.message}")


def _origin(error: BaseException) -> str:
    """The deepest place in the library that an exception went through."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if "expunge" in Path(frame.filename).parts]
    return f"{Path(own[-1].filename).stem}.{own[-1].name}" if own else "the caller"


def _where() -> str:
    return f"more than {SECONDS:g} seconds of processor time"


# -- erasers ---------------------------------------------------------------------------------------


def _run_eraser(case: Case, report: Report) -> None:
    plan = case.plan
    eraser = ex.ERASERS[plan.entry](**plan.parameters)
    with _calling(report, "fit"):
        eraser.fit(case.X, **_given(case, slice(None)))
        certificate = eraser.certificate_
        repr(eraser), str(certificate)
    if not plan.is_valid:
        return
    excused = bool(report.heard & EXCUSES)
    clean = _transformed(eraser, case, report)
    if certificate is not None:
        intercept = _has_intercept(plan)
        check_certificate(certificate, eraser, case, intercept=intercept)
    erased = certificate is not None and certificate.erased
    warned = {"equal_class_covariances"} if "CovariancesDiffer" in report.heard else set()
    broken = broken_promise(eraser, case, warned_of=warned)
    if broken and (erased or certificate is None) and not excused:
        raise broken
    if plan.is_tame and _exact(eraser, case) and not erased:
        raise Finding("silent", "promised on plain rows, but NOT erased", str(certificate))
    _check_precision(eraser, case, report)
    if plan.seed % 3 == 0:
        _check_saved(eraser, case, clean, report)
    if plan.seed % 2 == 0 and hasattr(eraser, "partial_fit"):
        _check_stream(eraser, case, clean, report)


def _given(case: Case, part: Any) -> dict[str, Any]:
    """Arguments of a fit on some rows."""
    y = case.y
    if isinstance(y, dict):
        y = {name: column[part] for name, column in y.items()}
    elif y is not None:
        y = y[part]
    found = {"y": y} if case.task is None else {"y": case.task[part], "concept": y}
    if case.weights is not None:
        found["sample_weight"] = case.weights[part]
    return found


def _exact(eraser: Any, case: Case) -> bool:
    """Whether this fit erases in closed form whatever the concept."""
    return (
        "zero_cross_covariance" in eraser.guarantees
        and is_full_fit(eraser, case)
        and case.task is None
        and eraser.get_params().get("solver", "auto") in ("auto", "closed_form")
        and eraser.get_params().get("tol", 1e-6) >= 1e-9
        and eraser.get_params().get("alpha", 1e-4) >= 1e-6
    )


def _has_intercept(plan: Plan) -> bool:
    """Whether the predictors that a certificate speaks of have an intercept."""
    return bool(plan.parameters.get("fit_intercept", plan.parameters.get("center", True)))


def _told(eraser: Any, case: Case) -> dict[str, Any]:
    return {"concept": case.y} if hasattr(eraser, "conditional_erasure_") else {}


def _transformed(eraser: Any, case: Case, report: Report) -> np.ndarray:
    with _calling(report, "transform"):
        clean = eraser.transform(case.X, **_told(eraser, case))
    out = as_array(clean)
    if out.shape != case.values.shape:
        raise Finding("silent", "transform changes the shape", f"{out.shape}")
    if not np.isfinite(out).all():
        raise Finding("silent", "NaN or infinity out of transform", f"{(~np.isfinite(out)).sum()}")
    return out


def _check_precision(eraser: Any, case: Case, report: Report) -> None:
    """Rows in float32 come out as those in float64 do, up to rounding."""
    if hasattr(eraser, "conditional_erasure_") or np.abs(case.values).max() > 1e30:
        return
    single = case.values.astype(np.float32)
    with _calling(report, "transform in float32"):
        narrow = eraser.erasure_.transform(single)
        wide = eraser.erasure_.transform(single.astype(np.float64))
    if narrow.dtype != np.float32:
        raise Finding("silent", "float32 is not kept", str(narrow.dtype))
    e = eraser.erasure_
    centre = np.zeros(e.n_features) if e.center is None else np.abs(e.center)
    size = np.abs(single).astype(np.float64)
    passed = (size + centre) @ np.abs(e.right).T @ np.abs(e.left).T
    allowed = 32 * np.finfo(np.float32).eps * (size + np.abs(wide) + passed) + 1e-37
    with np.errstate(all="ignore"):
        worst = float((np.abs(narrow - wide) / allowed).max())
    if not worst <= 1:
        raise Finding("silent", "float32 differs from float64", f"{worst:.3g} times what is due")


def _check_saved(eraser: Any, case: Case, clean: np.ndarray, report: Report) -> None:
    told = hasattr(eraser, "conditional_erasure_")
    erasure = eraser.conditional_erasure_ if told else eraser.erasure_
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "erasure.safetensors"
        with _calling(report, "save and load"):
            erasure.save(path)
            again = type(erasure).load(path)
    with _calling(report, "transform of a loaded erasure"):
        out = as_array(again.transform(case.X, **_told(eraser, case)))
    if not np.array_equal(out, clean) or again.meta != erasure.meta:
        raise Finding("silent", "a saved erasure differs", f"{np.abs(out - clean).max():.3g}")


def _check_stream(eraser: Any, case: Case, clean: np.ndarray, report: Report) -> None:
    """Chunks give what the whole gives; on rows in odd units, what they certify holds too."""
    stream = ex.ERASERS[case.plan.entry](**case.plan.parameters)
    n = len(case.values)
    order, cuts = np.arange(n), [n // 3, n // 3 + 1]
    if case.plan.entry == "PairPCA":  # a set has to come in one chunk
        cuts = [cut - cut % case.plan.target.count for cut in cuts]
    try:
        for part in np.split(order, cuts):
            if part.size and (case.weights is None or case.weights[part].any()):
                X = case.X if case.plan.rows.home != "list" else np.asarray(case.X)
                X = X.iloc[part] if hasattr(X, "iloc") else X[part]
                with _calling(report, "partial_fit"):
                    stream.partial_fit(X, **_given(case, part))
        with _calling(report, "the end of a stream"):
            certificate = stream.certificate_
    except Refused:
        return
    if case.plan.is_tame and not isinstance(eraser, ex.FoldEraser):  # whose stream is not closed
        out = _transformed(stream, case, report)
        digits = 1e-8 * _reach(eraser, case)  # of a column that does not vary
        spread = np.maximum(spreads(case.values, case.w), digits + 1e-300).astype(float)
        spread = np.maximum(spread, spreads(clean, case.w).astype(float))  # of rows it stretches
        apart = float((np.abs(out - clean) / spread).max())
        if stream.rank_ != eraser.rank_ or (apart > 1e-5 and not _tied(eraser, case)):
            ranks = f"ranks {stream.rank_} and {eraser.rank_}"
            raise Finding("silent", "a stream differs from a fit", f"{ranks}, {apart:.3g}")
    told = getattr(stream, "conditional_erasure_", None)
    if told is not None and len(told.mean_z) != case.Z.shape[1]:
        return  # it has seen classes whose rows do not count, or not seen them
    if certificate is not None:
        intercept = _has_intercept(case.plan)
        check_certificate(certificate, stream, case, intercept=intercept, stream=True)


def _reach(eraser: Any, case: Case) -> np.ndarray:
    """How large numbers are that a map adds up in each column: rounding is a part of that."""
    size = np.abs(case.values).max(axis=0)
    found = getattr(eraser, "erasure_", None)
    return size if found is None else size + np.abs(found.left) @ (np.abs(found.right) @ size)


def _tied(eraser: Any, case: Case) -> bool:
    """Whether principal components vary alike, so that any of them may be taken."""
    if getattr(eraser, "objective", "") != "pca":
        return False
    X = case.values.astype(float) * np.sqrt(case.w)[:, None]
    if eraser.center:
        X = (case.values - case.w @ case.values) * np.sqrt(case.w)[:, None]
    variances = np.append(np.linalg.svd(X, compute_uv=False) ** 2, 0.0)
    return bool(variances[eraser.rank_ - 1] - variances[eraser.rank_] < 1e-6 * variances[0])


# -- other entries ---------------------------------------------------------------------------------


def _erasure(case: Case, report: Report) -> Any:
    """What `certify` and `audit` are given: an erasure, or a fitted eraser."""
    d, name = case.plan.rows.d, case.plan.erasure
    rng = np.random.default_rng(case.plan.seed)
    if name == "nothing" or (d == 1 and name in ("random", "turned")):
        return ex.Erasure(np.zeros((d, 0)), np.zeros((0, d)))
    if name in ("random", "turned"):
        q = np.linalg.qr(rng.normal(size=(d, 1)))[0]
        center = (case.values / len(case.values)).sum(axis=0)
        if name == "turned":  # a hundredth away from the direction of the concept
            X = (case.values - center) / (np.abs(case.values).max() or 1.0)
            gap = X.T @ (case.Z[:, -1] - case.Z[:, -1].mean())
            q = gap[:, None] / (np.linalg.norm(gap) or 1.0) + 0.01 * q
            q = q / np.linalg.norm(q)
        return ex.Erasure(q, q.T, center)
    if case.kind == "continuous" and name == "MeanProjection":
        name = "SAL"
    with _calling(report, f"fit of {name}"):
        return ex.ERASERS[name]().fit(case.X, case.y)


def _run_certify(case: Case, report: Report) -> None:
    plan = case.plan
    erasure = _erasure(case, report)
    with _calling(report, "certify"):
        certificate = ex.certify(
            erasure, case.X, case.y, sample_weight=case.weights, **plan.parameters
        )
        str(certificate)
    if not plan.is_valid:
        return
    rows = None
    if plan.parameters.get("as_transformed"):
        with _calling(report, "transform"):
            rows = as_array(erasure.transform(case.X, **_told(erasure, case)))
    intercept = _has_intercept(plan)
    check_certificate(certificate, erasure, case, intercept=intercept, transformed=rows)
    given = {**{"tol": 1e-6, "alpha": 1e-4}, **plan.parameters}
    fair = plan.is_tame and given["tol"] >= 1e-9 and given["alpha"] >= 1e-6
    full = plan.erasure in ex.ERASERS and intercept and rows is None
    if fair and full and not certificate.erased:
        raise Finding("silent", "erased plain rows, certified as NOT erased", str(certificate))


def _run_slow(case: Case, report: Report) -> None:
    plan = case.plan
    if plan.entry == "rank_path":
        with _calling(report, "rank_path"):
            path = ex.rank_path(case.X, case.y, ranks=[1], sample_weight=case.weights)
            numbers = [point.loss for point in path.points]
    elif plan.entry == "compare":
        with _calling(report, "compare"):
            found = ex.compare(case.X, case.y, methods=["LEACE"], runs=1)
            str(found)
            numbers = []
    else:
        erasure = _erasure(case, report)
        half = len(case.values) // 2
        a, b = _given(case, slice(0, half))["y"], _given(case, slice(half, None))["y"]
        with _calling(report, "audit"):
            found = ex.audit(erasure, case.values[:half], a, case.values[half:], b, probes="linear")
            str(found)
            numbers = []
    if not np.isfinite(numbers).all():
        raise Finding("silent", "numbers that are not finite", f"{numbers}")
