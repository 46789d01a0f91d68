"""Figures show the numbers they were given, where they belong."""

import numpy as np
import pytest

from expunge.report.line_figures import cluster_figure, gap_figure, spectrum_figure
from expunge.report.probe_figure import probe_figure
from expunge.report.scatter_figure import along_figure, scatter_figure


@pytest.mark.parametrize("name", ["fresh_rows", "same_rows"])
def test_bars_start_at_chance_and_end_at_the_value(words, name):
    figure = probe_figure(words[name], None, "caption", 0.95)
    bars = [trace for trace in figure.data if trace["type"] == "bar"]
    wanted = [
        probe["balanced_accuracy"]
        for family in ("linear", "nonlinear")
        for stage in ("before", "after")
        for probe in words[name][stage][family]["probes"]
    ]
    ends = [trace["base"] + x for trace in bars for x in trace["x"]]
    assert ends == pytest.approx([found["value"] for found in wanted])
    assert {trace["base"] for trace in bars} == {0.5}
    highs = [h for t in bars for h in np.add(t["error_x"]["array"], np.add(t["base"], t["x"]))]
    assert highs == pytest.approx([found["high"] for found in wanted])


def test_diamonds_have_the_limits_for_all_probes_at_once(words):
    figure = probe_figure(words["fresh_rows"], None, "caption", 0.95)
    points = [trace for trace in figure.data if trace["type"] == "scatter"]
    joint = words["fresh_rows"]["after"]["linear"]["strongest"]
    assert joint["value"] in [trace["x"][0] for trace in points]
    found = next(trace for trace in points if trace["x"] == [joint["value"]])
    assert found["error_x"]["arrayminus"] == pytest.approx([joint["value"] - joint["low"]])


def test_chance_is_a_line_and_sampling_error_a_band_behind_linear_probes_only(words):
    residue = words["residue"]
    figure = probe_figure(words["fresh_rows"], residue, "caption", 0.95)
    lines = [s for s in figure.layout["shapes"] if s["x0"] == s["x1"] == 0.5]
    assert [line["xref"] for line in lines] == ["x", "x2"]
    band = next(s for s in figure.layout["shapes"] if s["type"] == "rect")
    assert (band["x0"], band["x1"]) == (0.5, residue["balanced_accuracy_high"])
    dotted = [s for s in figure.layout["shapes"] if s["x0"] == residue["balanced_accuracy_here"]]
    assert [s["xref"] for s in (band, *dotted)] == ["x", "x"]
    assert len(probe_figure(words["same_rows"], None, "", 0.95).layout["shapes"]) == 2


def test_the_near_view_holds_all_that_is_left(words):
    figure = probe_figure(words["fresh_rows"], words["residue"], "caption", 0.95)
    low, high = figure.views[1].layout["xaxis.range"]
    for probe in words["fresh_rows"]["after"]["linear"]["probes"]:
        assert low < probe["balanced_accuracy"]["low"] < probe["balanced_accuracy"]["high"] < high
    assert high < 0.8 < figure.layout["xaxis"]["range"][1]


def test_where_much_is_left_there_is_no_near_view(words):
    protocol = words["fresh_rows"]
    protocol["after"] = protocol["before"]
    assert not probe_figure(protocol, None, "caption", 0.95).views


def test_a_family_may_be_missing(words):
    for stage in ("before", "after"):
        del words["fresh_rows"][stage]["linear"]
    figure = probe_figure(words["fresh_rows"], words["residue"], "caption", 0.95)
    assert {trace["xaxis"] for trace in figure.data} == {"x"}
    assert "xaxis2" not in figure.layout


def test_points_move_from_before_to_after(words):
    pca = words["pca"]
    figure = scatter_figure(pca, numeric=False)
    names = [entry[0] for trace in figure.data for entry in trace["customdata"]]
    assert sorted(names) == sorted(pca["names"])
    place = {name: i for i, name in enumerate(pca["names"])}
    for view, key in zip(figure.views, ("before", "after_shared", "after"), strict=True):
        for trace, moved in zip(figure.data, view.data, strict=True):
            rows = [place[entry[0]] for entry in trace["customdata"]]
            assert np.column_stack([moved["x"], moved["y"]]).tolist() == [pca[key][i] for i in rows]
            assert {pca["labels"][i] for i in rows} == {trace["name"]}


def test_classes_lie_apart_before_and_together_after(words):
    figure = scatter_figure(words["pca"], numeric=False)
    names = [trace["name"] for trace in figure.data]
    assert names[:2] * (len(names) // 2) == names  # in turns, so that none covers the other
    assert [trace["showlegend"] for trace in figure.data] == [True] * 2 + [False] * (len(names) - 2)
    gaps = [
        np.linalg.norm(
            np.subtract(
                *[
                    [
                        np.mean(np.concatenate([part[axis] for part in v.data[k::2]]))
                        for axis in "xy"
                    ]
                    for k in range(2)
                ]
            )
        )
        for v in figure.views
    ]
    assert gaps[0] > 1
    assert max(gaps[1:]) < 0.4


def test_rows_without_names_are_called_by_number(words):
    words["pca"]["names"] = None
    figure = scatter_figure(words["pca"], numeric=False)
    assert f"row {words['pca']['rows'][0]}" in [
        entry[0] for trace in figure.data for entry in trace["customdata"]
    ]
    assert figure.find == "Find a row"


def test_too_many_points_are_thinned_out_evenly(words):
    pca, n = words["pca"], 5000
    for key in ("before", "after", "after_shared", "along"):
        pca[key] = [[float(i), 0.0] for i in range(n)]
    pca |= {
        "rows": list(range(n)),
        "n_rows": 9000,
        "names": None,
        "labels": ["a"] * (n // 2) + ["b"] * (n // 2),
    }
    figure = scatter_figure(pca, numeric=False)
    assert [len(trace["customdata"]) for trace in figure.data] == [250] * 8
    assert "2,000 rows, drawn at random from" in figure.caption
    assert "The same 2,000 rows" in along_figure(pca, numeric=False).caption


def test_rare_labels_share_a_colour(words):
    pca = words["pca"]
    pca["labels"] = [f"label {min(i % 40, 7 + i % 13)}" for i in range(len(pca["rows"]))]
    kinds = len(set(pca["labels"]))
    figure = scatter_figure(pca, numeric=False)
    assert len({trace["name"] for trace in figure.data}) == 8
    assert figure.data[-1]["name"] == f"{kinds - 7} others"
    assert sum(len(trace["customdata"]) for trace in figure.data) == len(pca["rows"])


def test_numbers_have_a_colour_scale(number):
    figure = scatter_figure(number["pca"], numeric=True)
    assert figure.data[0]["marker"]["color"] == number["pca"]["labels"]
    assert along_figure(number["pca"], numeric=True) is None


def test_shares_along_the_direction_add_up(words):
    figure = along_figure(words["pca"], numeric=False)
    assert [sum(trace["y"]) for trace in figure.data] == pytest.approx([1.0] * 4)
    before, after = figure.data[:2], figure.data[2:]
    overlap = [sum(np.minimum(*[trace["y"] for trace in stage])) for stage in (before, after)]
    assert overlap[0] < 0.1  # the labels lay apart
    assert overlap[1] > 0.9  # and fell together


def test_rows_that_do_not_move_have_no_direction(words):
    words["pca"]["along"] = [[0.0, 0.0] for _ in words["pca"]["along"]]
    assert along_figure(words["pca"], numeric=False) is None


def test_clusters_and_spectrum(words):
    figure = cluster_figure(words["v_measure"])
    assert [trace["y"] for trace in figure.data] == [
        words["v_measure"][stage]["mean"] for stage in ("before", "after")
    ]
    figure = spectrum_figure([0.2, 1.0, *[0.0] * 500], 1)
    assert figure.data[0]["y"][:2] == [1.0, 0.2]
    assert figure.data[0]["marker"]["color"][:2] == ["var(--after)", "var(--before)"]
    assert len(figure.data[0]["y"]) < 10


def test_gaps_with_two_and_with_many_groups(words):
    gaps = [words["fairness"][stage]["gaps"] for stage in ("before", "after")]
    figure = gap_figure(*gaps, "caption")
    assert not figure.views
    shown = dict(
        zip([e[0] for e in figure.data[1]["customdata"]], figure.data[1]["x"], strict=True)
    )
    assert shown == {n: row[0] for n, row in zip(gaps[0]["classes"], gaps[0]["gaps"], strict=True)}
    low, high = figure.layout["xaxis"]["range"]
    assert low < 0 < high
    many = {
        "classes": ["a", "b"],
        "gap_groups": ["<x>", "y", "z"],
        "gaps": [[0.1, None, 0.3], [0.4, 0.5, 0.6]],
    }
    figure = gap_figure(many, many, "caption")
    assert [view.name for view in figure.views] == ["<x>", "y", "z"]
    assert figure.views[1].data[1]["x"] == [0.5, None]  # largest gap first, undefined kept
