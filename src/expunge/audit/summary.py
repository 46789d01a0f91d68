"""The result of an audit on two screens of text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Any

from expunge.number_text import in_words, table_number

__all__ = ["summary"]

Content = dict[str, Any]
WIDTH = 92
TITLES = {
    "same_rows": "trained on the rows of the fit, tested on new rows",
    "fresh_rows": "trained and tested on fresh rows",
    "training_rows": "trained and tested on these rows, in turns (shows nothing about new rows)",
}
LIMITS = ("value", "low", "high")
FAMILIES = {"linear": "linear", "nonlinear": "non-linear"}
HEADS = {
    "accuracy": "accuracy %",
    "balanced_accuracy": "balanced %",
    "auc": "AUC",
    "bits": "bits",
    "r2": "R²",
}


def summary(content: Content) -> str:
    """Text from the plain values of an audit.

    Parameters
    ----------
    content : dict
        Of `Audit.to_dict`.

    Returns
    -------
    str
    """
    makers = (_head, _worst_cases, _every_probe, _certificates, _lost, _words, _fairness, _limits)
    return "\n\n".join(text for make in makers if (text := "\n".join(make(content))))


def _wrapped(text: str, indent: str = "") -> Iterator[str]:
    yield from textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_on_hyphens=False,
    )


def _head(content: Content) -> Iterator[str]:
    e, data, concept = content["erasure"], content["data"], content["concept"]
    what = e["type"] if e["method"] is None else f"{e['type']} by {e['method']}"
    rank = "" if e["rank"] is None else f", rank {e['rank']} of {e['n_features']} features"
    yield f"Audit of {what}{rank}"
    yield from _wrapped(content["verdict"]["headline"])
    for warning in content["verdict"].get("warnings", ()):
        yield from _wrapped(f"Warning: {warning}")
    yield ""
    fresh = "none of them surely" if data["looks_fitted"] else f"{data['n_fresh']:,} of them"
    tested = f"{data['n_test']:,} test rows, {fresh} fresh"
    fitted = f"{data['n_train']:,} training rows" if data["n_train"] else "no training rows"
    yield f"Rows: {fitted}; {tested if data['n_test'] else 'no test rows'}"
    if pool := e.get("n_unlabelled"):
        yield f"Fitted with {pool:,} rows without labels"
    shares = "continuous"
    if concept["kind"] != "continuous":
        means = concept["test_means"] or concept["train_means"] or concept["means"]
        pairs = [f"{n} {100 * m:.1f} %" for n, m in zip(concept["labels"], means, strict=True)]
        shares = ", ".join(pairs[:6]) + (", ..." if len(pairs) > 6 else "")
    yield from _wrapped(f"Concept: {shares}")
    for note in data["notes"]:
        yield from _wrapped(f"Note: {note}")


def _worst_cases(content: Content) -> Iterator[str]:
    """The strongest probe of each family, before and after, in both protocols."""
    protocols = [content[name] for name in TITLES if content[name] is not None]
    first = next(iter(protocols[0]["after"].values()))
    statistic, level = first["statistic"], content["settings"]["confidence"]
    yield (
        f"Strongest probe, {_words_of(statistic)}, before -> after; chance "
        f"{in_words(statistic, first['chance'])}; limits at {level:.0%}, all at once"
    )
    for protocol in protocols:
        yield f"  {TITLES[protocol['name']]}"
        for family, title in FAMILIES.items():
            if family in protocol["after"]:
                yield _worst_case(protocol, family, title)
                yield from _part(protocol["after"][family])
                yield from _sampled(protocol["after"][family])
    yield from _residue(content)


def _worst_case(protocol: Content, family: str, title: str) -> str:
    before, after = protocol["before"][family], protocol["after"][family]
    start, value, low, high = (
        in_words(after["statistic"], x)
        for x in (before["strongest"]["value"], *(after["strongest"][k] for k in LIMITS))
    )
    bits = after["bits"]
    left = "" if bits is None else f"; {bits['low']:.3f} to {bits['high']:.3f} bits"
    return f"    {title:<11}{start:>8} -> {value:>7} [{low}, {high}]{left}: {after['status']}"


def _part(result: Content) -> Iterator[str]:
    """Of several labels or numbers the one that is found by itself."""
    if (found := result.get("part")) is not None:
        value, low, high = (in_words(result["statistic"], found[k]) for k in LIMITS)
        who, more = f"most of all {found['label']!r}", ""
        if found["against_rest"]:
            chance = in_words(result["statistic"], found["chance"])
            who, more = f"{found['label']!r} against the rest", f"; chance {chance}"
        yield f"               {who}: {value} [{low}, {high}]{more}"


def _sampled(result: Content) -> Iterator[str]:
    """Sizes of a sample, where there were more rows."""
    used, there = result["n_train"], result["n_train_all"]
    tested, all_tested = result["n_test"], result["n_test_all"]
    if used < there or tested < all_tested:
        yield (
            f"               sample: trained on {used:,} of {there:,} rows, tested on {tested:,} "
            f"of {all_tested:,}"
        )


def _residue(content: Content) -> Iterator[str]:
    residue, fresh = content["residue"], content["fresh_rows"]
    if fresh is None or "linear" not in fresh["after"]:
        return
    if residue is None:
        if excuse := content["verdict"]["excuse"]:
            yield from _wrapped(excuse, "  ")
        return
    result = fresh["after"]["linear"]
    statistic = result["statistic"]
    here, ceiling = (in_words(statistic, residue[statistic + end]) for end in ("_here", ""))
    measured = in_words(statistic, result["strongest"]["value"])
    yield f"  sampling error of the fit: {measured} measured on fresh rows, expected {here} for a"
    yield f"    linear probe with {residue['probe_rows']:,} rows, {ceiling} with unlimited rows"


def _words_of(statistic: str) -> str:
    return "R²" if statistic == "r2" else statistic.replace("_", " ")


def _every_probe(content: Content) -> Iterator[str]:
    """All probes after erasure, under the headline protocol."""
    name = "fresh_rows" if content["fresh_rows"] is not None else "training_rows"
    results = list(content[name]["after"].values())
    columns = ["accuracy", "balanced_accuracy", "auc", "bits"]
    if results[0]["statistic"] == "r2":
        columns = ["r2"]
    title = f"Every probe after, {name.replace('_', ' ')}"
    yield f"{title:<35}" + "".join(f"{HEADS[column]:>15}" for column in columns)
    for result in results:
        for probe in result["probes"]:
            cells = "".join(f" {_cell(probe.get(column), column):>14}" for column in columns)
            yield f"  {probe['name']:<33}{cells}"


def _cell(found: dict[str, float] | None, column: str) -> str:
    if found is None:
        return "-"
    value, half = found["value"], (found["high"] - found["low"]) / 2
    share = column in ("accuracy", "balanced_accuracy")
    return " ± ".join(table_number(x, share=share) for x in (value, half))


def _certificates(content: Content) -> Iterator[str]:
    titles = {
        "train": "training rows",
        "test": "test rows (predictors trained on these very rows)",
    }
    for name, found in content["certificates"].items():
        rows = f"{found['n_rows']:,} {titles[name]}"
        yield from _wrapped(f"Certificate on {rows}: {found['text']}")


def _lost(content: Content) -> Iterator[str]:
    damage, clusters = content["damage"], content["v_measure"]
    if damage is not None:
        near = ", ".join(
            f"{100 * share:.1f} % of {k}" for k, share in damage["neighbour_overlap"].items()
        )
        asked, among, there = (damage[key] for key in ("n_queries", "n_base", "n_rows"))
        if among < there:
            near += f" (of {asked:,} rows, among {among:,} of {there:,})"
        least = damage["least_change"]
        more = "" if least is None else f" (least that erases it from these very rows: {least:.4g})"
        lost = 100 * (1 - damage["variance_kept"])
        some = f"Lost: {lost:.2f} % of the variance"
        if lost <= -0.005:  # an oblique map may write more to columns than it takes
            some = f"Lost: nothing of the variance, which grew by {-lost:.2f} %"
        yield from _wrapped(
            f"{some}; mean squared "
            f"change {damage['mean_squared_change']:.4g}{more}; nearest neighbours kept: {near}"
        )
    if clusters is not None:
        a, b = clusters["before"], clusters["after"]
        rows = zip(a["clusters"], a["mean"], b["mean"], strict=True)
        shown = ", ".join(f"{k}: {x:.3f} -> {y:.3f}" for k, x, y in rows)
        if damage is not None and a["n_rows"] < damage["n_rows"]:
            shown += f" ({a['n_rows']:,} of {damage['n_rows']:,} rows)"
        yield from _wrapped(f"V-measure of k-means clusters with the concept, k = {shown}")


def _words(content: Content) -> Iterator[str]:
    words = content["association"]
    if words is None:
        return
    if words["n_words_read"] < words["n_words"]:
        yield f"Words: {words['n_words_read']:,} of {words['n_words']:,} were looked at"
    for test in words["skipped"]:
        missing = test["missing"]
        listed = f": {', '.join(missing[:6])}" if missing else ""
        more = f" and {len(missing) - 6} more" if len(missing) > 6 else ""
        yield from _wrapped(f"Skipped {test['name']}: {test['reason']}{listed}{more}")
    for test in words["weat"]:
        sizes = (test[stage]["effect_size"] for stage in ("before", "after"))
        d = " -> ".join("undefined" if size is None else f"{size:.3f}" for size in sizes)
        p = " -> ".join(f"{test[stage]['p_value']:.3g}" for stage in ("before", "after"))
        yield f"WEAT {test['name']}: d {d}, p {p}"
    if (found := words["similarity"]) is not None:
        r = " -> ".join(f"{found[stage]['spearman']:.3f}" for stage in ("before", "after"))
        yield f"{found['name']}, {found['before']['n_used']} pairs: Spearman {r}"
    for change in words["neighbours"][:3]:
        before, after = ", ".join(change["before"][:3]), ", ".join(change["after"][:3])
        yield f"Nearest to {change['word']}: {before} -> {after}"


def _fairness(content: Content) -> Iterator[str]:
    found = content["fairness"]
    if found is None:
        return
    correct, balanced = (
        " -> ".join(f"{100 * found[stage][name]['value']:.1f} %" for stage in ("before", "after"))
        for name in ("accuracy", "balanced_accuracy")
    )
    rms = " -> ".join(_rms(found[stage]) for stage in ("before", "after"))
    yield from _wrapped(
        f"Task: accuracy {correct} (always the commonest class: {100 * found['majority']:.1f} %); "
        f"balanced accuracy {balanced} (chance {100 * found['chance']:.1f} %); RMS gap in true "
        f"positive rate {rms}{_tested(found)}"
    )
    if left_out := found["left_out"]:
        cells = [f"{name} in {group} ({rows})" for name, group, rows in left_out[:6]]
        more = f" and {len(left_out) - 6} more" if len(left_out) > 6 else ""
        yield from _wrapped(
            f"Left out of the RMS gap, as rates of fewer than {found['least_rows']} rows: "
            f"{', '.join(cells)}{more}",
            "  ",
        )


def _rms(stage: Content) -> str:
    if stage["rms"] is None:
        return "not known"
    return f"{stage['rms']:.3f} [{stage['rms_low']:.3f}, {stage['rms_high']:.3f}]"


def _tested(found: Content) -> str:
    tested, there = found["n_test"], found["n_test_all"]
    return f" (tested on {tested:,} of {there:,} rows)" if tested < there else ""


def _limits(content: Content) -> Iterator[str]:
    yield "What this does not show"
    for limit in content["limits"]:
        yield from _wrapped(f"- {limit}")
