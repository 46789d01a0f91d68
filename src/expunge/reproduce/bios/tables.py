"""The table of the experiment on biographies, and what came out in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from expunge.reproduce.bios import paper
from expunge.reproduce.runner.experiment_results import ExperimentResults
from expunge.reproduce.runner.paper_table import PaperLine, PaperTable

__all__ = ["FEW", "findings", "tables"]

SECTION = "Biographies"
COLUMNS = (  # key, title, factor, digits, place in the paper's table
    ("gender", "Gender accuracy of a linear probe, percent", 100.0, 2, 0),
    ("profession", "Profession accuracy, percent", 100.0, 2, 1),
    ("gap", "TPR gap between women and men, RMS over professions", 1.0, 3, 2),
    ("correlation", "Correlation of the TPR gap with the share of women", 1.0, 3, 3),
)
SIZES = ("one", "many")
ADVERSARIES = {"mlp": "MLP", "linear": "linear"}
FEW = 10  # professions below which a correlation over them means little


def _lines(results: ExperimentResults) -> Iterator[tuple[str, str, tuple[str, ...], str | None]]:
    """Setting, part, path in it, and the name in the paper's table."""
    for part, name in (("frozen", "BERT-frozen"), ("finetuned", "BERT-finetuned")):
        if not results.has(part):
            continue
        label = "frozen" if part == "frozen" else "fine-tuned"
        yield label, part, ("lines", "nothing"), name
        many = int(results.number(part, "many").mean)
        for size in SIZES:
            rank = 1 if size == "one" else many
            known = {"frozen": 50, "finetuned": 100}[part]
            shown = rank == 1 or rank == known
            for method, title, in_paper in (
                ("RLACE", "RLACE, descent-ascent", "RLACE"),
                ("RLACE exact", "RLACE, closed form", None),
                ("INLP", "INLP", "INLP"),
            ):
                theirs = f"{name} + {in_paper} (rank {rank})" if in_paper and shown else None
                path = ("lines", f"{method} {size}")
                if path[1] not in results.first(part, "lines"):
                    continue  # so narrow that there is but one rank
                yield f"{label} + {title} (rank {rank})", part, path, theirs
    for kind, title in ADVERSARIES.items():
        if results.has(f"adversarial-{kind}"):
            theirs = f"BERT-finetuned-adv ({title} adversary)"
            yield f"adversarial, {title} adversary", f"adversarial-{kind}", (), theirs
    for method in ("LEACE", "SPLINCE", "MeanProjection", "QuadraticLEACE"):
        if results.has("extras"):
            ranks = sorted({int(rank) for rank in results.values("extras", method, "rank")})
            said = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]} to {ranks[-1]}"
            without = ", label-free" if method == "QuadraticLEACE" else ""
            yield f"frozen + {method}{without} ({said}, ours)", "extras", (method,), None


def tables(results: ExperimentResults) -> list[PaperTable]:
    """One table for each column of the paper's, and ours."""
    made = [_summary(results)]
    for key, title, factor, digits, place in COLUMNS:
        lines = []
        for setting, part, path, theirs in _lines(results):
            known = paper.TABLE[theirs][place] if theirs else None
            lines.append(
                PaperLine((setting,), results.number(part, *path, key).times(factor), known)
            )
        if key in ("gender", "profession"):
            most = results.number("majority", key).times(factor)
            lines.append(PaperLine(("majority",), most, paper.TABLE["Majority"][place]))
        made.append(
            PaperTable(
                f"bios-{key}",
                title,
                ("setting",),
                lines,
                where=paper.TABLE_WHERE,
                digits=digits,
                note=_note(results, key),
                section=SECTION,
            )
        )
    return [*made, *_own(results)]


def _summary(results: ExperimentResults) -> PaperTable:
    """The table as the paper prints it, with our figures alone."""
    lines = []
    for setting, part, path, _ in _lines(results):
        row = [setting]
        for key, _, factor, digits, _ in COLUMNS:
            row.append(results.number(part, *path, key).times(factor).text(digits))
        adversarial = part.startswith("adversarial")
        own = results.number(part, "adversary").times(100).text(2) if adversarial else "–"
        lines.append(PaperLine((*row, own), None))
    most = (results.number("majority", key).times(100).text(2) for key in ("gender", "profession"))
    lines.append(PaperLine(("majority", *most, "–", "–", "–"), None))
    return PaperTable(
        "bios",
        "All settings, our figures",
        ("setting", "gender, %", "profession, %", "TPR gap RMS", "correlation", "adversary, %"),
        lines,
        note="The adversary's own accuracy, on development rows, is not a result: a fresh probe on "
        "the same encodings is what counts (gender, %).",
        section=SECTION,
    )


def _own(results: ExperimentResults) -> list[PaperTable]:
    """What the paper has no table for."""
    fresh = [
        PaperLine((setting,), results.number(part, *path, "fresh").times(100))
        for setting, part, path, _ in _lines(results)
    ]
    made = [
        PaperTable(
            "bios-fresh",
            "Gender accuracy of a probe trained and tested on rows the eraser never saw, percent",
            ("setting",),
            fresh,
            digits=2,
            note="Cross-fitted on development and test rows, with the ridge (of three) that finds "
            "most. The sampling error of the class means leaves a little to be found on new rows.",
            section=SECTION,
        )
    ]
    adversaries = [
        PaperLine(
            (f"{title} adversary",),
            results.number(f"adversarial-{kind}", "adversary").times(100),
            paper.ADVERSARY,
        )
        for kind, title in ADVERSARIES.items()
        if results.has(f"adversarial-{kind}")
    ]
    if adversaries:
        made.append(
            PaperTable(
                "bios-adversary",
                "The adversary's own gender accuracy on development rows, percent",
                ("adversary",),
                adversaries,
                where=paper.ADVERSARY_WHERE,
                digits=2,
                note="Not a result: a fresh probe on the same encodings is what counts (above).",
                section=SECTION,
            )
        )
    return made


def _note(results: ExperimentResults, key: str) -> str:
    if key == "correlation":
        few = min(_defined(results))
        return f"Over {few} professions a correlation means little." if few < FEW else ""
    if key == "gap":
        return (
            "By the definition: the root of the mean squared gap. The paper's column does not "
            f"match the definition it cites.{_without_gap(results)}"
        )
    if key == "gender":
        return "Probes are trained on the erased training rows and tested on the test rows."
    return (
        "A new multi-class logistic regression on the encodings, for the fine-tuned ones too, "
        "trained on the training rows and tested on the test rows."
    )


def _defined(results: ExperimentResults) -> list[int]:
    """Professions with women and men among the test rows, in each run."""
    lines = results.values("frozen", "lines", "nothing")
    return [len(set(line["professions"]) - set(line["undefined"])) for line in lines]


def _without_gap(results: ExperimentResults) -> str:
    """A sentence on professions that lack women or men among the test rows."""
    counts, total = _defined(results), int(results.data.facts["Professions"])
    if min(counts) == total:
        return ""
    names = sorted(
        {n for line in results.values("frozen", "lines", "nothing", "undefined") for n in line}
    )
    runs = ", ".join(map(str, counts))
    return (
        f" Only {runs} (by run) of the {total} professions have women and men among the test rows; "
        f"the others have no gap: {', '.join(names)}."
    )


def findings(results: ExperimentResults) -> list[str]:
    """What came out, in sentences."""

    def percent(part: str, *path: str) -> str:
        return f"{results.number(part, *path).times(100).text(1)} %"

    found = []
    if results.has("frozen"):
        most = percent("majority", "gender")
        found.append(
            f"Frozen: gender accuracy {percent('frozen', 'lines', 'nothing', 'gender')} -> "
            f"{percent('frozen', 'lines', 'RLACE exact one', 'gender')} after rank-1 RLACE "
            f"(closed form), {percent('frozen', 'lines', 'INLP one', 'gender')} after rank-1 INLP; "
            f"majority {most}."
        )
        gap = [
            results.number("frozen", "lines", name, "gap").text(3)
            for name in ("nothing", "RLACE exact one")
        ]
        found.append(
            f"Frozen: profession accuracy "
            f"{percent('frozen', 'lines', 'nothing', 'profession')} -> "
            f"{percent('frozen', 'lines', 'RLACE exact one', 'profession')}; TPR gap RMS "
            f"{gap[0]} -> {gap[1]}."
        )
    for kind in ("mlp", "linear"):
        part = f"adversarial-{kind}"
        if results.has(part):
            found.append(
                f"Adversarial training, {kind} adversary: the adversary itself is right on "
                f"{percent(part, 'adversary')}, a fresh probe on {percent(part, 'gender')}."
            )
    if reason := results.skipped("finetuned"):
        found.append(f"Fine-tuning was left out: {reason}.")
    return found
