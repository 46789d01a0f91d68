"""The tables of the experiment on faces, and what came out in sentences."""

from __future__ import annotations

from expunge.reproduce.faces.labelled_faces import CONCEPTS
from expunge.reproduce.faces.measurements import DESCENT, METHODS, NOT_CENTRED
from expunge.reproduce.runner.experiment_results import ExperimentResults, Number
from expunge.reproduce.runner.paper_table import PaperLine, PaperTable

__all__ = ["SECTIONS", "WHERE", "findings", "measured", "tables"]

SECTIONS = {
    "pictures": "Faces before and after",
    "accuracy": "Accuracy",
    "splits": "Other splits",
    "descent": "The paper's algorithm",
}
WHERE = "Figures 4 and 6 to 11, Section 5.3"  # of the paper
PAPER_AFTER = "less than 1 above the majority"
EXPECTED = {
    "balanced_accuracy_here": "expected, probe of as many faces",
    "balanced_accuracy": "expected, probe of unlimited faces",
}


def measured(results: ExperimentResults) -> list[str]:
    """The concepts for which there are measurements."""
    return [concept for concept in CONCEPTS if results.has(concept)]


def tables(results: ExperimentResults) -> list[PaperTable]:
    """All tables for which there are measurements."""
    made = [
        _same(results),
        _fresh(results),
        _natural(results),
        _by_image(results),
        _change(results),
        _rows(results),
    ]
    if results.has(DESCENT):
        made.append(_descent(results))
    return [table for table in made if table.lines]


def findings(results: ExperimentResults) -> list[str]:
    """What came out, in sentences."""
    said = []
    if concepts := measured(results):
        before = _listed(results, "same", "original")
        after = [_excess(results, concept) for concept in concepts]
        said = [
            "Before erasure a linear probe is right on these shares of new faces, where the "
            f"commoner class has 50 %: {before}.",
            f"After rank-1 RLACE, by the paper's protocol, it is {max(after):.1f} points above "
            "the commoner class at the most.",
        ]
        if shared := _listed(results, "by_image", "original"):
            said.append(
                "Where both parts may show the same people it is right before erasure on: "
                f"{shared}."
            )
        if fresh := _fresh_listed(results):
            said.append(
                "A probe trained on other new faces, erased alike, is right on (in brackets, what "
                f"the sampling error of the class means lets expect): {fresh}."
            )
    if results.has(DESCENT):
        said.append(
            f"The paper's algorithm, {results.first(DESCENT, 'steps'):,} steps on "
            f"{results.first(DESCENT, 'concept')}, finds the direction of the closed form: cosine "
            f"{results.number(DESCENT, 'cosine').text(4)}."
        )
    return said + [f"Left out: {', '.join(names)}: {why}." for why, names in _left_out(results)]


def _left_out(results: ExperimentResults) -> list[tuple[str, list[str]]]:
    """Why concepts were skipped, and which."""
    reasons: dict[str, list[str]] = {}
    for concept in CONCEPTS:
        if why := results.skipped(concept):
            reasons.setdefault(why, []).append(concept)
    return list(reasons.items())


def _accuracy(results: ExperimentResults, concept: str, *path: str) -> Number:
    return results.number(concept, *path, "accuracy", "value").times(100)


def _listed(results: ExperimentResults, protocol: str, method: str) -> str:
    """Accuracies of all concepts in words."""
    found = [(c, _accuracy(results, c, protocol, method)) for c in measured(results)]
    return ", ".join(f"{c} {value.text(1)} %" for c, value in found if value.runs)


def _fresh_listed(results: ExperimentResults) -> str:
    """Accuracies of fresh probes after RLACE in words, with those that are expected."""
    found = []
    for concept in measured(results):
        value = _accuracy(results, concept, "fresh", "RLACE")
        expected = results.number(concept, "expected", "balanced_accuracy_here").times(100)
        if value.runs:
            found.append(f"{concept} {value.text(1)} % ({expected.mean:.1f} %)")
    return ", ".join(found)


def _excess(results: ExperimentResults, concept: str) -> float:
    """Points above the majority after RLACE, the paper's protocol."""
    majority = results.number(concept, "same", "RLACE", "majority").times(100)
    return _accuracy(results, concept, "same", "RLACE").mean - majority.mean


def _same(results: ExperimentResults) -> PaperTable:
    lines = []
    for concept in measured(results):
        majority = results.number(concept, "same", "original", "majority").times(100)
        lines.append(PaperLine((concept, "majority"), majority))
        for name in METHODS:
            said = PAPER_AFTER if name == "RLACE" else None
            lines.append(
                PaperLine((concept, name), _accuracy(results, concept, "same", name), said)
            )
    return PaperTable(
        "accuracy",
        "Accuracy of a linear probe trained on the faces of the fit, in percent",
        ("concept", "faces"),
        lines,
        WHERE,
        digits=1,
        note="The paper's protocol: the probe is trained on the erased faces of the fit and tested "
        "on erased faces of other people. Both parts have as many faces with as without the "
        "concept (a random sample of the larger class), so accuracy and balanced accuracy agree. "
        "An exact eraser leaves a constant answer here by construction. At strength 0.5 the "
        "concept is still there: a linear probe undoes any scaling short of zero.",
        section=SECTIONS["accuracy"],
    )


def _fresh(results: ExperimentResults) -> PaperTable:
    lines = []
    for concept in measured(results):
        for name in METHODS:
            lines.append(PaperLine((concept, name), _accuracy(results, concept, "fresh", name)))
        for key, label in EXPECTED.items():
            expected = results.number(concept, "expected", key).times(100)
            lines.append(PaperLine((concept, label), expected))
    return PaperTable(
        "accuracy_fresh",
        "Accuracy of a linear probe trained on faces that no eraser has seen, in percent",
        ("concept", "faces"),
        lines,
        digits=1,
        note="Trained and tested on erased held-out faces in turns, no person in both. The "
        "expected figures are those of an exact eraser with so many faces and pixels, for pixels "
        "that are all alike; faces are not, so what is found is mostly less.",
        section=SECTIONS["accuracy"],
    )


def _natural(results: ExperimentResults) -> PaperTable:
    lines = []
    measures = {"accuracy": "accuracy", "balanced_accuracy": "balanced accuracy"}
    for concept in measured(results):
        majority = results.number(concept, "natural", "original", "majority").times(100)
        lines.append(PaperLine((concept, "majority", "accuracy"), majority))
        for name in ("original", "RLACE"):
            for key, label in measures.items():
                value = results.number(concept, "natural", name, key, "value").times(100)
                said = PAPER_AFTER if (name, key) == ("RLACE", "accuracy") else None
                lines.append(PaperLine((concept, name, label), value, said))
    return PaperTable(
        "natural_shares",
        "The same with the classes as common as they are, in percent",
        ("concept", "faces", "measure"),
        lines,
        WHERE,
        digits=1,
        note="Eraser and probe are fitted anew. Where a concept is rare the majority is hard to "
        "beat even before erasure; balanced accuracy takes the shares out.",
        section=SECTIONS["splits"],
    )


def _by_image(results: ExperimentResults) -> PaperTable:
    lines = [
        PaperLine((concept, name), _accuracy(results, concept, "by_image", name))
        for concept in measured(results)
        for name in ("original", "RLACE")
        if _accuracy(results, concept, "by_image", name).runs
    ]
    return PaperTable(
        "shared_people",
        "The same when both parts may show the same people, classes balanced, in percent",
        ("concept", "faces"),
        lines,
        digits=1,
        note="Images are split at random, so a probe can recognise people it was trained on and "
        "what they wear. The tables above keep people apart.",
        section=SECTIONS["splits"],
    )


def _change(results: ExperimentResults) -> PaperTable:
    names = (*METHODS[1:], NOT_CENTRED)
    lines = [
        PaperLine((concept, name), results.number(concept, "change", name))
        for concept in measured(results)
        for name in names
    ]
    return PaperTable(
        "change",
        "Change of a pixel, root mean square, in levels of 256",
        ("concept", "erasure"),
        lines,
        digits=1,
        note="Of held-out faces. LEACE changes the faces of its fit least of all affine erasers, "
        "up to the shrinkage of its covariance (0.1).",
        section=SECTIONS["pictures"],
    )


def _rows(results: ExperimentResults) -> PaperTable:
    names = {
        "with": "with the concept, all",
        "without": "without it, all",
        "fit": "in the fit, balanced",
        "held_out": "held out, balanced",
        "people_fit": "people in the fit",
        "people_held_out": "people held out",
        "people_shared": "people in both",
    }
    lines = []
    for concept in measured(results):
        found = {label: results.number(concept, "rows", key) for key, label in names.items()}
        lines += [
            PaperLine((concept, label), value) for label, value in found.items() if value.runs
        ]
    return PaperTable(
        "faces",
        "Faces used",
        ("concept", "faces"),
        lines,
        digits=0,
        section=SECTIONS["splits"],
    )


def _descent(results: ExperimentResults) -> PaperTable:
    lines = [
        PaperLine(("cosine with the closed form",), results.number(DESCENT, "cosine")),
        PaperLine(("share of the entropy left at the most",), results.number(DESCENT, "gap")),
        PaperLine(("accuracy after, descent-ascent",), _after_descent(results, "descent")),
        PaperLine(("accuracy after, closed form",), _after_descent(results, "exact")),
    ]
    return PaperTable(
        "descent",
        f"Descent-ascent, {results.first(DESCENT, 'steps'):,} steps on the concept "
        f"{results.first(DESCENT, 'concept')}",
        ("what",),
        lines,
        digits=4,
        note="With the settings that the paper names for word vectors; it names none for images.",
        section=SECTIONS["descent"],
    )


def _after_descent(results: ExperimentResults, name: str) -> Number:
    return results.number(DESCENT, name, "accuracy", "value")
