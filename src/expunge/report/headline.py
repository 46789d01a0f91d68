"""The top of the page: what the audit says, and what is proven."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from expunge.audit.families import least_excess
from expunge.number_text import count, number, percent, score, short
from expunge.report.frontier_figure import fold_advice
from expunge.report.parts import Block, Card, Cards, Details, Items, Section, Statement, Table, Tone
from expunge.report.probe_figure import FAMILIES, STATISTICS, Expected
from expunge.report.values import scored

__all__ = ["verdict_section"]

Audit = Mapping[str, Any]
TONES: dict[str, Tone] = {"at chance": "good", "found": "bad", "cannot tell": "unsure"}
ROWS = {"train": "the training rows", "test": "the test rows"}


def verdict_section(audit: Audit) -> Section:
    """Headline, a card for each family of probes, the certificate.

    Parameters
    ----------
    audit : mapping
        Of `Audit.to_dict`.

    Returns
    -------
    Section
    """
    verdict = audit["verdict"]
    cards = [card for family in FAMILIES if (card := _probe_card(audit, family)) is not None]
    if not cards:
        cards = [Card("All probes", "Not shown", "plain", note="There were no fresh rows.")]
    proof = audit["certificates"].get("train")
    if proof is not None:
        cards.append(_certificate_card(proof))
    content: list[Block] = [Statement(verdict["headline"])]
    if verdict.get("warnings"):
        content.append(Items([f"Warning: {text}" for text in verdict["warnings"]]))
    content.append(Cards(cards))
    if audit["fresh_rows"] is not None:
        content.append(_meaning(audit))
    reasons = Items([line[:1].upper() + line[1:] for line in verdict["lines"]])
    if len(reasons.texts) > 1:
        content.append(Details("The reasons, line by line", [reasons]))
    elif reasons.texts:
        content.append(reasons)
    if audit["certificates"]:
        content.append(_certificates(audit["certificates"]))
    return Section("Verdict", content)


def _probe_card(audit: Audit, family: str) -> Card | None:
    protocol = audit["fresh_rows"]
    if protocol is None or family not in protocol["after"]:
        return None
    found = protocol["after"][family]
    statistic, joint = found["statistic"], found["strongest"]
    name = STATISTICS[statistic]
    facts = [
        (
            f"Measured, {name} of the strongest probe",
            scored(joint, statistic),
        )
    ]
    if found.get("part") is not None:
        part, title = found["part"], f"Most of all, {found['part']['label']}"
        if part["against_rest"]:
            title = f"{part['label']} against the rest, chance {score(part['chance'], statistic)}"
        facts.append((title, scored(part, statistic)))
    if family == "linear" and audit["residue"] is not None:
        facts.append(_expected(audit["residue"], statistic))
    facts.append(("Chance", score(found["chance"], statistic)))
    earlier = protocol["before"].get(family)
    if earlier is not None:
        facts.append(("Before erasure", score(earlier["strongest"]["value"], statistic)))
    note = _excuse(audit) if family == "linear" else ""
    if family == "nonlinear" and found["status"] == "found":
        note = fold_advice(audit)
    tested = f"Fresh rows: tested on {count(found['n_test'])} that the eraser has never seen."
    status = found["status"]
    return Card(
        f"{FAMILIES[family]} on fresh rows",
        status[:1].upper() + status[1:],
        TONES.get(status, "plain"),
        facts,
        note + tested,
    )


def _excuse(audit: Audit) -> str:
    """Whether sampling error of the fit explains what linear probes find, or may do so at all."""
    verdict = audit["verdict"]
    if verdict["excuse"]:
        return f"{_sentence(verdict['excuse'])} "
    if verdict["explained"] and verdict.get("condition"):
        return f"No more than the sampling error of the fit explains, {verdict['condition']}. "
    return {
        True: "No more than the sampling error of the fit explains. ",
        False: "More than the sampling error of the fit explains. ",
        None: "",
    }[verdict["explained"]]


def _expected(residue: Mapping[str, Any], statistic: str) -> tuple[str, str]:
    limit, _, here = Expected.of(residue, statistic)
    if here is None:
        return "Expected from sampling error alone", f"{score(limit, statistic)}, unlimited rows"
    return (
        f"Expected from sampling error alone, learning from {count(residue['probe_rows'])} rows",
        f"{score(here, statistic)} ({score(limit, statistic)} with unlimited rows)",
    )


def _meaning(audit: Audit) -> str:
    result = next(iter(audit["fresh_rows"]["after"].values()))
    least = least_excess(result["chance"], audit["settings"]["leak"])
    excess = f"an R² of {least:g} or more"
    if result["statistic"] != "r2":
        excess = f"a balanced accuracy {short(100 * least)} percentage points or more over chance"
    return (
        f"At chance: {excess} is excluded, with {percent(audit['settings']['confidence'], 0)} "
        "confidence, for all probes at once. Found: chance itself is excluded. Cannot tell: "
        "neither is, or scores lie below chance."
    )


def _certificate_card(proof: Mapping[str, Any]) -> Card:
    facts = [
        ("Loss of every linear predictor, at least", number(proof["value"], 6)),
        ("Loss of the best constant answer", number(proof["bound"], 6)),
    ]
    if proof["bits_left"] is not None:
        facts.append(("Left, at most", f"{number(proof['bits_left'], 2)} bits per row"))
    return Card(
        "Certificate on the training rows",
        "Erased there" if proof["erased"] else "Not erased",
        "good" if proof["erased"] else "bad",
        facts,
        "Proven for these rows and all linear predictors. It says nothing about new rows.",
    )


def _certificates(found: Mapping[str, Mapping[str, Any]]) -> Section:
    """The proofs in words, and their fields."""
    content: list[Block] = []
    for name, proof in found.items():
        rows = f"{count(proof['n_rows'])} rows" if "n_rows" in proof else "rows"
        content.append(f"On {ROWS[name]} ({rows}). {_sentence(proof['text'])}")
    if "test" in found:
        content.append(
            "The certificate of the test rows is about a predictor trained on those very rows, so "
            "part of its gain is their noise. Probes that are tested on other rows than they learn "
            "from are the better measure."
        )
    content.append(Details("All fields of the certificate", [_fields(found)]))
    return Section("Certificate", content)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


FIELDS = {
    "erased": "erased",
    "optimal": "proven best for its rank",
    "loss": "loss",
    "value": "proven lower bound on the loss",
    "primal": "loss a trained predictor reached",
    "bound": "loss of the best constant answer",
    "gap": "gap",
    "bits_left": "bits per row left, at most",
    "alpha": "ridge, relative to the mean variance of a column",
    "ridge": "ridge, absolute",
    "tol": "tolerance, relative to the bound",
    "n_rows": "rows",
    "n_rows_all": "rows there were",
}


def _fields(found: Mapping[str, Mapping[str, Any]]) -> Table:
    names: Sequence[str] = list(found)
    rows = []
    for key, title in FIELDS.items():
        values = [found[name].get(key) for name in names]
        if any(value is not None for value in values):
            rows.append([title, *(_field(value) for value in values)])
    return Table(
        ["field", *(ROWS[name] for name in names)],
        rows,
        "Losses are means per row, in nats for cross-entropy, with the predictor's ridge term.",
    )


def _field(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.6g}"
    return count(value) if isinstance(value, int) and not isinstance(value, bool) else value
