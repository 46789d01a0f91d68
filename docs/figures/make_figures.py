"""Draw the pictures of the documentation and write its table of V against K.

Run as ``python docs/figures/make_figures.py``.

Needs matplotlib (``pip install -e '.[reproduce]'``). Every random choice is seeded, so the same
versions of the packages give the same pictures. Takes about a minute.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

import expunge as ex
from expunge.data import load_glove
from expunge.game.certificate import certify
from expunge.game.losses import loss_for
from expunge.inputs import check_concept, check_rows

HERE = Path(__file__).parent
BLUE, ORANGE, GREEN, RED, INK = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#333333"
Array = NDArray[np.float64]

STYLE = {
    "font.size": 10,
    "axes.titlesize": 10.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "xtick.color": INK,
    "ytick.color": INK,
    "savefig.dpi": 130,
}


def main() -> None:
    """Draw every figure."""
    with plt.rc_context(STYLE), threadpool_limits(1):
        save(class_means(), "class_means")
        save(fantope(), "fantope")
        save(below_the_rank(), "below_the_rank")
        save(history(), "history")
        save(few_labels(), "few-labels")
        save(oracle_stamp(), "oracle-stamp")
        save(fold(), "fold")
        save(front(), "front")


def save(figure: Figure, name: str) -> None:
    """Write a figure without the version of the program in it."""
    figure.savefig(HERE / f"{name}.png", metadata={"Software": None})
    plt.close(figure)


# -- one direction in the plane ----------------------------------------------------------------


def plane() -> tuple[Array, NDArray[np.int64]]:
    """Two classes in the plane whose spread is not round."""
    rng = np.random.default_rng(3)
    y = np.repeat([0, 1], 150)
    X = rng.multivariate_normal([0, 0], [[1.0, 0.75], [0.75, 1.0]], size=300)
    X[:150] -= X[:150].mean(axis=0)
    X[150:] -= X[150:].mean(axis=0)
    return X + np.outer(2 * y - 1, [0.9, 0.15]), y


def loss_without(X: Array, y: NDArray[np.int64], directions: Array) -> Array:
    """Loss of the best predictor once each of the given unit directions is erased."""
    rows, concept = check_rows(X), check_concept(y, len(y))
    loss = loss_for("cross_entropy", "classes", 2)
    erasures = (ex.Erasure(u[:, None], u[None, :], X.mean(axis=0)) for u in directions)
    return np.array([certify(rows, concept, e, loss).primal for e in erasures])


def class_means() -> Figure:
    """Before, after, and the loss for every direction one could have erased instead."""
    X, y = plane()
    eraser = ex.RLACE().fit(X, y)
    weights = LogisticRegression(C=1e4).fit(X, y).coef_[0]
    figure, (left, middle, right) = plt.subplots(
        1, 3, figsize=(11, 3.9), layout="constrained", width_ratios=[1, 1, 1.15]
    )
    u = eraser.erasure_.basis[0] * np.sign(eraser.erasure_.basis[0, 0])
    scatter(left, X, y)
    arrow(left, u, RED, "difference of the\nclass means: erased", (2.3, 3.55))
    arrow(left, weights / np.linalg.norm(weights), INK, "predictor's weights", (2.4, -2.1))
    left.set_title("before: the means differ")
    scatter(middle, eraser.transform(X), y)
    middle.set_title("after: the means coincide")
    directions_panel(right, X, y, u, weights / np.linalg.norm(weights))
    return figure


def scatter(ax: Axes, X: Array, y: NDArray[np.int64]) -> None:
    """Rows and class means of two classes."""
    for c, colour, marker in [(0, BLUE, "o"), (1, ORANGE, "^")]:
        rows = X[y == c]
        ax.scatter(*rows.T, s=13, color=colour, marker=marker, alpha=0.55, linewidths=0)
    for c, colour, marker, size in [(0, BLUE, "o", 170), (1, ORANGE, "^", 90)]:
        mean = X[y == c].mean(axis=0)
        ax.scatter(
            *mean, s=size, color=colour, marker=marker, edgecolors="black", zorder=4, label=f"{c}"
        )
    ax.set(xlim=(-4, 4), ylim=(-4, 4), xlabel="feature 1", ylabel="feature 2", aspect="equal")
    ax.legend(title="mean of class", loc="upper left", handletextpad=0.2, title_fontsize=9)


def arrow(ax: Axes, u: Array, colour: str, text: str, at: tuple[float, float]) -> None:
    """A unit direction from the origin, with its name."""
    tip = 2.6 * u
    ax.annotate(
        "", xy=tip, xytext=(0, 0), arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 2.2}
    )
    ax.text(*at, text, color=colour, fontsize=9, ha="center", va="center")


def directions_panel(ax: Axes, X: Array, y: NDArray[np.int64], u: Array, w: Array) -> None:
    """The loss left to the predictor against the angle of the erased direction."""
    angles = np.radians(np.arange(-90, 91, 2))
    values = loss_without(X, y, np.column_stack([np.cos(angles), np.sin(angles)]))
    ax.axhline(np.log(2), color=INK, lw=1, ls=(0, (4, 3)))
    ax.text(-88, np.log(2) + 0.008, "V0: ignoring x, log 2", fontsize=9, color=INK, va="bottom")
    ax.plot(np.degrees(angles), values, color=BLUE, lw=2)
    marks = loss_without(X, y, np.array([u, w]))
    for direction, value, colour, marker, text, shift in [
        (u, marks[0], RED, "*", "difference of\nthe class means", (20, -0.075)),
        (w, marks[1], INK, "s", "the predictor's\nweights", (4, -0.06)),
    ]:
        angle = np.degrees(np.arctan2(direction[1], direction[0]))
        ax.plot(angle, value, marker, ms=15 if marker == "*" else 8, color=colour, zorder=4)
        align = "left" if shift[0] > 0 else "right"
        ax.text(angle + shift[0], value + shift[1], text, color=colour, fontsize=9, ha=align)
    ax.set(xlabel="angle of the erased direction, degrees", ylabel="loss of the best predictor, V")
    ax.set(xlim=(-90, 90), ylim=(0, 0.75), xticks=range(-90, 91, 45))
    ax.set_title("every direction one could erase")


# -- the relaxation ----------------------------------------------------------------------------


def relaxed_loss(X: Array, y: NDArray[np.int64], Q: Array, ridge: float) -> float:
    """Loss of the best predictor on x - Qx for Q inside the disc, by Newton's method."""
    Z = np.column_stack([X - X @ Q, np.ones(len(X))])
    penalty = np.diag([ridge, ridge, 0.0])
    t = np.zeros(3)
    for _ in range(12):
        p = 1 / (1 + np.exp(-Z @ t))
        gradient = Z.T @ (p - y) / len(y) + penalty @ t
        H = (Z * (p * (1 - p))[:, None]).T @ Z / len(y) + penalty + 1e-12 * np.eye(3)
        t -= np.linalg.solve(H, gradient)
    s = Z @ t
    return float(np.mean(np.logaddexp(0, s) - y * s) + t @ penalty @ t / 2)


def path(X: Array, y: NDArray[np.int64], start: str, seed: int, steps: list[int]) -> Array:
    """Where descent-ascent stands after so many steps, as points of the unit disc."""
    points = []
    for count in steps:
        eraser = ex.RLACE(
            1,
            solver=ex.DescentAscent(start=start),
            step_size=0.05,
            max_iter=count,
            evaluate_every=count,
            tol=0,
            random_state=seed,
        ).fit(X, y)
        u, top = eraser.erasure_.basis[0], eraser.spectrum_[0]
        length = 2 * top - 1  # Q = top uu' + (1 - top) vv', v at a right angle to u
        points.append(length * np.array([u[0] ** 2 - u[1] ** 2, 2 * u[0] * u[1]]))
    return np.array(points)


def fantope() -> Figure:
    """The Fantope of the plane with two runs on it, and eigenvalues over steps on digits."""
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 4.4), layout="constrained", width_ratios=[1.05, 1]
    )
    figure.get_layout_engine().set(wspace=0.05)
    disc_panel(figure, left)
    spectrum_panel(right)
    return figure


def disc_panel(figure: Figure, ax: Axes) -> None:
    """All 2 x 2 matrices of the Fantope with K = 1: a disc, the projectors on its rim."""
    X, y = plane()
    grid = np.linspace(-1, 1, 61)
    values = np.zeros((61, 61))
    for i, b in enumerate(grid):
        for j, a in enumerate(grid):
            rim = max(1.0, float(np.hypot(a, b)))  # points outside are drawn as the rim, then cut
            Q = (np.eye(2) + np.array([[a, b], [b, -a]]) / rim) / 2
            values[i, j] = relaxed_loss(X - X.mean(axis=0), y, Q, 1e-2)
    shades = ax.contourf(grid, grid, values, levels=12, cmap="Blues")
    shades.set_clip_path(Circle((0, 0), 1, transform=ax.transData))
    figure.colorbar(shades, ax=ax, label="loss of the best predictor, ridge 0.01", shrink=0.75)
    turn = np.linspace(0, 2 * np.pi, 200)
    ax.plot(np.cos(turn), np.sin(turn), color=INK, lw=2)
    steps = [1, 5, 10, 15, 20, 30, 40, 50, 60, 80, 100, 130, 170, 230, 300, 500, 1000, 2000]
    for start, seed, colour, name in [
        ("center", 0, RED, "start at the centre"),
        ("vertex", 1, ORANGE, "start at a projector"),
    ]:
        points = path(X, y, start, seed, steps)
        ax.plot(*points.T, ".-", color=colour, lw=1.6, ms=5, label=name)
        ax.plot(*points[0], "o", color=colour, ms=8, mec="black")
    u = ex.RLACE().fit(X, y).erasure_.basis[0]
    best = u[0] ** 2 - u[1] ** 2, 2 * u[0] * u[1]
    ax.plot(*best, "*", color="white", mec="black", ms=17, zorder=5, label="closed form")
    ax.set(xlim=(-1.15, 1.3), ylim=(-1.45, 1.15), aspect="equal", xticks=[], yticks=[])
    ax.set_xlabel("$Q_{11} - Q_{22}$", labelpad=-2)
    ax.set_ylabel("$2\\,Q_{12}$", labelpad=-4)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.legend(loc="lower center", ncols=3, columnspacing=1, handlelength=1.4)
    ax.set_title("d = 2, K = 1: a disc with the projectors on its rim")


def spectrum_panel(ax: Axes) -> None:
    """Eigenvalues of the relaxed eraser on digits, from the centre."""
    X, y = load_digits(return_X_y=True)
    steps, K = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], 4
    spectra = np.array([relaxed_spectrum(X, y, K, count) for count in steps])
    for k in range(X.shape[1]):
        colour, width = (BLUE, 1.8) if k < K else (ORANGE, 1.0)
        name = {0: f"the {K} largest", K: "all others"}.get(k)
        ax.plot(steps, spectra[:, k], color=colour, lw=width, label=name)
    ax.set(xscale="log", ylim=(-0.03, 1.05), xlabel="steps", ylabel="eigenvalues of Q")
    ax.legend(loc="center left")
    ax.set_title(f"digits, K = {K}: from K/d each to ones and zeros")


def relaxed_spectrum(X: Array, y: NDArray[np.int64], K: int, steps: int) -> Array:
    """Eigenvalues after so many steps from the centre."""
    settings = ex.DescentAscent(start="center", width=None)
    eraser = ex.RLACE(
        K, solver=settings, step_size=0.1, max_iter=steps, evaluate_every=steps, random_state=0
    )
    return eraser.fit(X, y).spectrum_


# -- below the concept's rank ------------------------------------------------------------------


@cache
def on_digits(K: int, solver: str) -> Any:
    """A fit on the handwritten digits of scikit-learn: ten classes, 64 pixels, 1,797 rows."""
    X, y = load_digits(return_X_y=True)
    if solver == "singular":
        return ex.RayleighEraser(K, objective="pls").fit(X, y)
    return ex.RLACE(
        K, solver=solver, step_size=0.1, max_iter=DESCENT.get(solver), evaluate_every=400
    ).fit(X, y)


DESCENT = {"descent_ascent": 4000}
TABLE = "<!-- V against K: written by figures/make_figures.py -->", "<!-- end of the table -->"


def below_the_rank() -> Figure:
    """The loss V against K on digits for three ways to choose the directions."""
    ranks = [1, 2, 4, 6, 8]
    bound = on_digits(9, "closed_form").certificate_.bound
    table = [["K", *map(str, ranks)], ["---"] * (len(ranks) + 1)]
    figure, ax = plt.subplots(figsize=(6.6, 4.2), layout="constrained")
    ax.axhline(bound, color=INK, lw=1, ls=(0, (4, 3)))
    ax.text(0.9, bound + 0.03, f"V0 = {bound:.3f}: ignoring x", fontsize=9, color=INK)
    for solver, name, colour, line in [
        ("subspace_ascent", "subspace_ascent (auto)", GREEN, "o-"),
        ("descent_ascent", "descent_ascent, 4,000 steps of 0.1", RED, "s--"),
        ("singular", "leading singular directions", BLUE, "^:"),
    ]:
        values = [on_digits(K, solver).certificate_.primal for K in ranks]
        table.append([name, *(f"{value:.3f}" for value in values)])
        ax.plot(ranks, values, line, color=colour, lw=1.8, ms=6, label=name)
    write_table(table)
    ax.plot(9, bound, "*", color=INK, ms=15, ls="none", label="closed_form (auto)")
    ax.set(xlabel="erased directions K", ylabel="loss of the best predictor, V", ylim=(0, 2.5))
    ax.set_xticks(range(1, 10))
    ax.legend(loc="upper left", bbox_to_anchor=(0, 0.92))
    ax.set_title("handwritten digits, ten classes: higher is better for the eraser")
    return figure


def write_table(table: list[list[str]]) -> None:
    """Replace the table of V against K in the page about the game."""
    page = HERE.parent / "the-game.md"
    before, rest = page.read_text(encoding="utf-8").split(TABLE[0])
    lines = "\n".join(f"| {' | '.join(row)} |" for row in table)
    after = rest.split(TABLE[1])[1]
    page.write_text(f"{before}{TABLE[0]}\n{lines}\n{TABLE[1]}{after}", encoding="utf-8")


def history() -> Figure:
    """Values over steps of the two iterative solvers on digits, K = 4."""
    ascent, descent = on_digits(4, "subspace_ascent").history_, on_digits(4, "descent_ascent")
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(10, 3.7), layout="constrained", width_ratios=[1, 1.25]
    )
    last = ascent[-1].value
    missing = [(s.step, last - s.value) for s in ascent if last - s.value > 1e-10]
    left.semilogy(*zip(*missing, strict=True), "o-", color=GREEN, ms=4)
    left.set(xlabel="gradient steps at the final ridge", ylabel="what V still gains")
    left.set_title("subspace_ascent: V never falls")
    steps = [s.step for s in descent.history_]
    values = [s.value for s in descent.history_]
    relaxed = [s.relaxed for s in descent.history_]
    right.plot(steps, relaxed, ":", color=INK, lw=1.6, label="minibatch loss, relaxed")
    right.plot(steps, values, "s-", color=RED, ms=4, lw=1.4, label="V after rounding")
    best = int(np.argmax(values))
    right.plot(steps[best], values[best], "o", ms=13, mfc="none", mec=INK, ls="none", label="kept")
    right.axhline(last, color=GREEN, lw=1.4, ls="--", label="subspace_ascent")
    right.set(xlabel="steps", ylabel="loss", ylim=(0, 2))
    right.legend(loc="upper right", ncols=2)
    right.set_title("descent_ascent: noisy, so the best evaluation is kept")
    return figure


# -- few labels, many rows -----------------------------------------------------------------------


def few_labels() -> Figure:
    """Distance of class means left on new words, against labels, alone and with a pool."""
    glove = load_glove()
    X, y, unit = glove.train.X, glove.train.y, glove.test.X.std(axis=0)
    counts, draws = [150, 300, 600, 1200, 2400, 4800], 5
    left: dict[str, list[list[float]]] = {"labels alone": [], "with the rest of the words": []}
    for n in counts:
        for name, found in left.items():
            found.append([])
            for draw in range(draws):
                order = np.random.default_rng(draw).permutation(len(X))
                pool = {} if name == "labels alone" else {"unlabelled": X[order[n:]]}
                clean = ex.RLACE().fit(X[order[:n]], y[order[:n]], **pool).transform(glove.test.X)
                means = [(clean / unit)[glove.test.y == k].mean(axis=0) for k in (0, 1)]
                found[-1].append(float(np.linalg.norm(means[1] - means[0])))
    figure, ax = plt.subplots(figsize=(6.0, 3.4), layout="constrained")
    for (name, found), marker in zip(left.items(), "os", strict=True):
        ax.plot(counts, np.mean(found, axis=1), marker=marker, label=name)
    ax.set(
        xscale="log", xlabel="labels", ylabel="distance of class means, new words", ylim=(0, None)
    )
    ax.set_xticks(counts, [f"{n:,}" for n in counts])
    ax.minorticks_off()
    ax.legend()
    return figure


# -- the first page --------------------------------------------------------------------------------


def front() -> Figure:
    """What the first block of the first page draws, with words on it."""
    page = (HERE.parent / "index.md").read_text(encoding="utf-8")
    code = page.split("```python\n")[1].split("```")[0]
    exec(code, {})
    figure = plt.gcf()
    figure.set_layout_engine("constrained")
    figure.set_size_inches(9, 3.2)
    for ax, title in zip(figure.axes, ["before", "after RLACE()"], strict=True):
        for bars, colour in zip(ax.containers, [BLUE, ORANGE], strict=True):
            for bar in bars:
                bar.set_color(colour)
        ax.set(title=title, xlabel="score of a linear probe, new words", yticks=[])
    figure.axes[0].legend(figure.axes[0].containers, ["nearer to he", "nearer to she"])
    return figure


# -- an oracle on whole numbers --------------------------------------------------------------------


def fold() -> Figure:
    """Two classes of different shape: as they are, after LEACE, after a fold."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 900)
    X = rng.normal(size=(900, 2)) * np.where(y[:, None] == 1, [0.35, 1.6], [1.6, 0.35])
    X += np.where(y[:, None] == 1, [2.6, 1.0], [-2.6, -1.0])
    shape = {"figsize": (9, 3.2), "layout": "constrained"}
    figure, axes = plt.subplots(1, 3, sharex=True, sharey=True, **shape)
    maps = [
        ("before", lambda A: A),
        ("after LEACE: equal means", ex.LEACE().fit(X, y).transform),
        ("after FoldEraser", ex.FoldEraser(rounds=1).fit(X, y).transform),
    ]
    for ax, (title, change) in zip(axes, maps, strict=True):
        clean = change(X)
        for code, colour in ((0, BLUE), (1, ORANGE)):
            ax.scatter(*clean[y == code].T, s=6, color=colour, alpha=0.6, linewidths=0)
        ax.set_title(title)
        ax.set_aspect("equal")
    return figure


def oracle_stamp() -> Figure:
    """Ages before, after an oracle and after LEACE: what stands behind the point."""
    people = load_diabetes(as_frame=True, scaled=False).data
    sex, X = people["sex"].to_numpy(), people.drop(columns="sex").to_numpy()
    erased = {
        "as they are": X,
        "OracleLEACE (and CorrelationRemover)": ex.OracleLEACE().fit_transform(X, sex),
        "LEACE": ex.LEACE().fit_transform(X, sex),
    }
    figure, panels = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained", sharey=True)
    rng = np.random.default_rng(0)
    for ax, (name, rows) in zip(panels, erased.items(), strict=True):
        for s, colour, marker in [(1, BLUE, "o"), (2, ORANGE, "^")]:
            ages = rows[sex == s, 0]
            height = ages % 1 + rng.normal(0, 0.006, len(ages))
            ax.scatter(ages, height, s=12, color=colour, marker=marker, linewidths=0, alpha=0.7)
        ax.set(title=name, xlabel="age", ylim=(-0.08, 1.05))
    panels[0].set_ylabel("what stands behind the point")
    panels[0].legend(["sex 1", "sex 2"], loc="upper right")
    return figure


if __name__ == "__main__":
    main()
