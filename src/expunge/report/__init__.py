"""An audit as one HTML page that opens anywhere, and pages of the same look for anything else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from expunge.artifact import write_atomically
from expunge.report.findings import (
    damage_section,
    fairness_section,
    picture_section,
    spectrum_section,
    words_section,
)
from expunge.report.frontier_figure import frontier_section
from expunge.report.headline import verdict_section
from expunge.report.html_page import render_page
from expunge.report.inside_model import model_section
from expunge.report.parts import (
    Card,
    Cards,
    Cell,
    Details,
    Facts,
    Figure,
    Items,
    Picture,
    Section,
    Statement,
    Table,
    View,
)
from expunge.report.probe_tables import probe_section
from expunge.report.provenance import data_section, limits_section, method_section, title_of
from expunge.report.values import cleaned

__all__ = [
    "Card",
    "Cards",
    "Cell",
    "Details",
    "Facts",
    "Figure",
    "Items",
    "Picture",
    "Section",
    "Statement",
    "Table",
    "View",
    "render",
    "render_page",
    "write_report",
]

SECTIONS = (
    verdict_section,
    picture_section,
    probe_section,
    frontier_section,
    words_section,
    damage_section,
    fairness_section,
    model_section,
    spectrum_section,
    method_section,
    data_section,
    limits_section,
)


def render(audit_dict: Mapping[str, Any]) -> str:
    """The page of an audit.

    Parameters
    ----------
    audit_dict : mapping
        Of `Audit.to_dict`, or the same read back from JSON. An entry "model", as the evaluation of
        a scrubbed model gives it by its `to_dict`, becomes a section.

    Returns
    -------
    str
        HTML, the same for the same audit.

    Examples
    --------
    >>> import numpy as np
    >>> import expunge as ex
    >>> from expunge.report import render
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 400)
    >>> X = rng.normal(size=(400, 3)) + np.outer(y, [3, 0, 0])
    >>> e = ex.RLACE().fit(X[:200], y[:200]).erasure_
    >>> audit = ex.audit(e, X[:200], y[:200], X[200:], y[200:], probes=["linear SVM"])
    >>> page = render(audit.to_dict())
    >>> "<title>Erasure audit: 0 / 1</title>" in page, len(page) < 6e6
    (True, True)
    """
    audit = cleaned(audit_dict)
    title, subtitle = title_of(audit)
    sections = [found for make in SECTIONS if (found := make(audit)) is not None]
    numbers = {key: value for key, value in audit.items() if key != "pca"}
    return render_page(title, sections, subtitle=subtitle, data=numbers)


def write_report(audit: Any, path: str | os.PathLike[str], *, model: Any = None) -> None:
    """Write the page of an audit to a file, all of it or nothing.

    Parameters
    ----------
    audit : Audit or mapping
        A mapping is what `Audit.to_dict` gives.
    path : str or path
    model : ScrubEvaluation or mapping, optional
        What scrubbing does to the model that the rows come from, as a section of the page.

    Raises
    ------
    ImportError
        Without jinja2 or plotly; the message names the extra that brings them.
    """
    content = audit if isinstance(audit, Mapping) else audit.to_dict()
    if model is not None:
        content = {**content, "model": model if isinstance(model, Mapping) else model.to_dict()}
    write_atomically(path, render(content).encode())
