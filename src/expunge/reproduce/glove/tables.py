"""The tables of the experiment on word vectors, and what came out in sentences."""

from __future__ import annotations

from collections.abc import Callable

from expunge.reproduce.glove import paper
from expunge.reproduce.glove.measurements import NONLINEAR_PROBES
from expunge.reproduce.runner.experiment_results import ExperimentResults, Number
from expunge.reproduce.runner.paper_table import PaperLine, PaperTable

__all__ = ["LABELS", "SECTIONS", "findings", "tables", "word_part"]

LABELS = {
    "original": "original",
    "PairPCA": "PCA of pairs",
    "RLACE": "RLACE, descent-ascent",
    "RLACE exact": "RLACE, closed form",
    "INLP": "INLP",
}
SECTIONS = {
    "accuracy": "Gender accuracy",
    "geometry": "Geometry",
    "weat": "Word associations",
    "kept": "What is kept",
    "relaxation": "The relaxation",
    "angles": "RLACE and INLP",
}
SHOWN_RANKS = (1, 2, 5, 6, 10, 20)
SHOWN_CLUSTERS = (2, 4, 8, 16)
SHOWN_EIGENVALUES = 8


def word_part(method: str) -> str:
    """The part that measured a method on words: that of all runs, or that of one."""
    return "words" if method == "RLACE" else "words_exact"


def tables(results: ExperimentResults) -> list[PaperTable]:
    """All tables for which there are measurements."""
    makers: tuple[tuple[Callable[[ExperimentResults], PaperTable], str], ...] = (
        (_accuracy, "accuracy"),
        (_fresh, "accuracy"),
        (_steps, "accuracy"),
        (_nonlinear, "nonlinear"),
        (_clusters, "clusters"),
        (_weat_d, "words"),
        (_weat_p, "words"),
        (_simlex, "words"),
        (_neighbours, "neighbours"),
        (_spectrum, "spectrum"),
        (_angles, "angles"),
    )
    return [make(results) for make, part in makers if results.has(part)]


def findings(results: ExperimentResults) -> list[str]:
    """What came out, one sentence for each part."""
    exact = results.first("accuracy_exact")
    percent = {name: [100 * v for v in exact[name]["fit"]] for name in _exact_methods(results)}
    descent = [100 * mean for mean in results.series("accuracy", "fit")[0]]
    said = [
        f"A logistic regression finds the gender of {exact['original']['fit']:.1%} of the test "
        f"words before erasure; the commoner class has {exact['majority']:.1%}.",
        f"After RLACE it finds {_range(descent)} over all K by descent-ascent and "
        f"{_range(percent['RLACE exact'])} by the closed form.",
        f"After INLP it finds {percent['INLP'][0]:.1f} % at K = 1 and {percent['INLP'][-1]:.1f} % "
        f"at K = {exact['INLP']['ranks'][-1]}.",
    ]
    if "PairPCA" in percent:
        said.append(
            f"After PCA of pairs it finds {percent['PairPCA'][0]:.1f} % at K = 1 and "
            f"{percent['PairPCA'][-1]:.1f} % at K = {exact['PairPCA']['ranks'][-1]}."
        )
    if results.has("nonlinear"):
        after = [results.number("nonlinear", name).times(100) for name in NONLINEAR_PROBES]
        said.append(
            "Non-linear probes still find it after rank-1 RLACE: RBF-SVM "
            f"{after[0].text(1)} %, MLP {after[1].text(1)} %."
        )
    return said + (_word_findings(results) if results.has("words") else [])


def _word_findings(results: ExperimentResults) -> list[str]:
    tests = ", ".join(
        f"{test} {_weat(results, 'original', test, 'd').text(2)} to "
        f"{_weat(results, 'RLACE', test, 'd').text(2)}"
        for test in results.first("words", "RLACE", "weat")
    )
    before = results.number("words_exact", "original", "simlex", "pearson")
    after = results.number("words", "RLACE", "simlex", "pearson")
    return [
        f"WEAT d from before to after rank-1 RLACE: {tests}.",
        f"The correlation with SimLex-999 goes from {before.text(3)} to {after.text(3)}.",
    ]


def _range(values: list[float]) -> str:
    least, most = f"{min(values):.1f}", f"{max(values):.1f}"
    return f"{least} %" if least == most else f"{least} to {most} %"


def _exact_methods(results: ExperimentResults) -> list[str]:
    known = results.first("accuracy_exact")
    return [name for name in ("RLACE exact", "INLP", "PairPCA") if name in known]


def _methods(results: ExperimentResults) -> list[str]:
    known = results.first("words_exact")
    return [name for name in LABELS if name == "RLACE" or name in known]


def _accuracy(results: ExperimentResults) -> PaperTable:
    said = {
        "original": "near-perfect",
        "RLACE": "nearly chance at every K",
        "INLP": "above the majority even at K = 20",
        "PairPCA": "no significant change at K = 1 to 10",
    }
    note = (
        "A logistic regression (scikit-learn) is trained on the words of the fit, as in the paper. "
        "The paper shows its figures as a picture; its words are quoted in short. One standard "
        f"error of an accuracy on these test words is {_standard_error(results):.1f} points. A "
        "probe that finds nothing answers with the commoner class of the training words, so it can "
        "lie a little below the majority of the test words."
    )
    lines = _accuracy_lines(results, "fit", said)
    return PaperTable(
        "accuracy",
        "Gender accuracy on test words, in percent",
        ("method", "K"),
        lines,
        paper.ACCURACY_FIGURE,
        digits=1,
        note=note,
        section=SECTIONS["accuracy"],
    )


def _fresh(results: ExperimentResults) -> PaperTable:
    note = (
        "The probe is trained on development words, which no method has seen. What it finds after "
        "RLACE is the sampling error of the class means: it falls with more words in the fit, and "
        "is the same for other projections."
    )
    return PaperTable(
        "accuracy_fresh",
        "Gender accuracy on test words of a probe trained on unseen words, in percent",
        ("method", "K"),
        _accuracy_lines(results, "fresh", {}),
        digits=1,
        note=note,
        section=SECTIONS["accuracy"],
    )


def _accuracy_lines(
    results: ExperimentResults, protocol: str, said: dict[str, str]
) -> list[PaperLine]:
    part = "accuracy_exact"
    before = results.number(part, "original", protocol).times(100)
    lines = [
        PaperLine(("majority", ""), results.number(part, "majority").times(100)),
        PaperLine((LABELS["original"], ""), before, said.get("original")),
    ]
    for name in ("RLACE", *_exact_methods(results)):
        path: tuple[str, ...] = () if name == "RLACE" else (name,)
        source = "accuracy" if name == "RLACE" else part
        for place, rank in enumerate(results.first(source, *path, "ranks")):
            if rank in SHOWN_RANKS:
                ours = results.number(source, *path, protocol, place).times(100)
                lines.append(PaperLine((LABELS[name], str(rank)), ours, said.pop(name, None)))
    return lines


def _standard_error(results: ExperimentResults) -> float:
    share = results.first("accuracy_exact", "majority")
    return float(100 * (share * (1 - share) / len(results.data.content.glove.test)) ** 0.5)


def _steps(results: ExperimentResults) -> PaperTable:
    lines = []
    for place, rank in enumerate(results.first("accuracy", "ranks")):
        if rank in SHOWN_RANKS:
            lines.append(
                PaperLine((str(rank), "steps"), results.number("accuracy", "steps", place))
            )
            bits = results.number("accuracy", "gap", place).times(1e4)
            lines.append(PaperLine((str(rank), "entropy left, in 1/10,000"), bits))
    return PaperTable(
        "descent_steps",
        "How long descent-ascent ran",
        ("K", "what"),
        lines,
        digits=1,
        note="The paper makes 50,000 steps; here descent stops when its certificate shows that no "
        "linear predictor gains more than 5/10,000 of the entropy of the labels.",
        section=SECTIONS["accuracy"],
    )


def _nonlinear(results: ExperimentResults) -> PaperTable:
    lines = []
    for name in NONLINEAR_PROBES:
        before = results.number("nonlinear_before", name).times(100)
        after = results.number("nonlinear", name).times(100)
        lines.append(PaperLine((name, "before"), before))
        lines.append(PaperLine((name, "after rank-1 RLACE"), after, paper.NONLINEAR))
    return PaperTable(
        "nonlinear",
        "Gender accuracy of non-linear probes on test words, in percent",
        ("probe", "stage"),
        lines,
        paper.NONLINEAR_WHERE,
        digits=1,
        section=SECTIONS["accuracy"],
    )


def _clusters(results: ExperimentResults) -> PaperTable:
    counts = results.first("clusters", "clusters")
    known = results.first("clusters")
    said = {("original", 2): Number(1.0)}
    lines = [
        PaperLine(
            (LABELS[name], str(count)),
            results.number("clusters", name, place),
            said.get((name, count)),
        )
        for name in LABELS
        if name in known
        for place, count in enumerate(counts)
        if count in SHOWN_CLUSTERS
    ]
    return PaperTable(
        "clusters",
        "V-measure of k-means clusters of test words against gender, after rank-1 erasure",
        ("method", "clusters"),
        lines,
        paper.CLUSTER_FIGURE,
        note="The paper's text says 1.0 for the original vectors and does not name the number of "
        "clusters; its other figures are a picture.",
        section=SECTIONS["geometry"],
    )


def _weat(results: ExperimentResults, method: str, test: str, measure: str) -> Number:
    return results.number(word_part(method), method, "weat", test, measure)


def _weat_d(results: ExperimentResults) -> PaperTable:
    return _weat_table(results, "d", "WEAT d, male and female names, after rank-1 erasure", 2)


def _weat_p(results: ExperimentResults) -> PaperTable:
    return _weat_table(results, "p", "WEAT p-value, one-sided, after rank-1 erasure", 3)


def _weat_table(results: ExperimentResults, measure: str, title: str, digits: int) -> PaperTable:
    side = 0 if measure == "d" else 1
    lines = []
    for test in results.first("words", "RLACE", "weat"):
        for method in _methods(results):
            printed = paper.WEAT[test].get(method)
            lines.append(
                PaperLine(
                    (test, LABELS[method]),
                    _weat(results, method, test, measure),
                    printed[side] if printed else None,
                )
            )
    return PaperTable(
        f"weat_{measure}",
        title,
        ("test", "method"),
        lines,
        paper.WEAT_WHERE,
        digits=digits,
        section=SECTIONS["weat"],
    )


def _simlex(results: ExperimentResults) -> PaperTable:
    lines = [
        PaperLine(
            (LABELS[method],),
            results.number(word_part(method), method, "simlex", "pearson"),
            paper.SIMLEX.get(method),
        )
        for method in _methods(results)
    ]
    pairs = results.first("words_exact", "original", "simlex", "pairs")
    return PaperTable(
        "simlex",
        "Pearson correlation of cosines with SimLex-999, after rank-1 erasure",
        ("method",),
        lines,
        paper.SIMLEX_WHERE,
        note=f"{pairs} of 999 pairs have vectors for both words.",
        section=SECTIONS["kept"],
    )


def _neighbours(results: ExperimentResults) -> PaperTable:
    lines = []
    for word, found in results.first("neighbours", "words").items():
        printed = paper.NEIGHBOURS.get(word, ((), ()))
        for stage, ours, theirs in zip(
            ("before", "after"), (found["before"], found["after"]), printed, strict=True
        ):
            lines.append(PaperLine((word, stage), ", ".join(ours), ", ".join(theirs) or None))
    overlap = results.first("neighbours", "overlap_10")
    return PaperTable(
        "neighbours",
        "Nearest words by cosine, before and after rank-1 RLACE",
        ("word", "stage"),
        lines,
        paper.NEIGHBOURS_WHERE,
        note=f"Over a sample of all words {overlap:.1%} of the ten nearest neighbours stay.",
        section=SECTIONS["kept"],
    )


def _spectrum(results: ExperimentResults) -> PaperTable:
    rank = results.first("spectrum", "rank")
    starts = {"center": "centre", "vertex": "random projector"}
    lines = [
        PaperLine(
            (name, str(place + 1)),
            results.number("spectrum", start, place),
            "close to 1" if place < rank else "close to 0",
        )
        for start, name in starts.items()
        for place in range(min(SHOWN_EIGENVALUES, len(results.first("spectrum", start))))
    ]
    return PaperTable(
        "spectrum",
        f"Leading eigenvalues of the relaxed eraser before rounding, K = {rank}",
        ("start", "number"),
        lines,
        paper.SPECTRUM_FIGURE,
        note="Gender has two classes, so one direction is all the game asks for: one eigenvalue "
        "goes to 1 from any start. Nothing pushes the others: from the centre they stay equal and "
        "small, from a projector the directions of the start stay large and give up together "
        "the room that the new one needs. How near the rest is to 0 and 1 tells where the descent "
        "began, not how tight the relaxation is. (The paper's caption says K = 7, its text K = 6.)",
        section=SECTIONS["relaxation"],
    )


def _angles(results: ExperimentResults) -> PaperTable:
    lines = []
    for place, rank in enumerate(results.first("angles", "ranks")):
        if rank not in SHOWN_RANKS:
            continue
        for name in ("RLACE", "RLACE exact"):
            ends = {"smallest": 0, "largest": rank - 1} if rank > 1 else {"the angle": 0}
            for end, index in ends.items():
                ours = results.number("angles", name, place, index)
                lines.append(PaperLine((LABELS[name], str(rank), end), ours))
    return PaperTable(
        "angles",
        "Principal angles between the subspaces of RLACE and INLP, in degrees",
        ("RLACE", "K", "angle"),
        lines,
        digits=1,
        note="The paper says that the two are not similar (Section 4.3) and gives no numbers.",
        section=SECTIONS["angles"],
    )
