"""Figures draw the numbers of the results, in the sizes and fonts of publishers, and are reproducible."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hopline as hl

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

from matplotlib import pyplot as plt
from matplotlib.patches import Circle, FancyArrowPatch

ROOT = Path(__file__).parents[2]
CHAIN = ROOT / "scenarios/chain/scenario.toml"
WEB = ROOT / "scenarios/web/scenario.toml"
WINDOWS = {"tcp.window": [2, 3, 8, "unclamped"]}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def windows():
    return hl.compare(CHAIN, WINDOWS, runs=4, set={"duration_s": 10})


@pytest.fixture(scope="module")
def one():
    return hl.compare(CHAIN, {"tcp.window": [2]}, runs=2, set={"duration_s": 3})


@pytest.fixture(scope="module")
def twelve():
    vary = {"transport": ["tcp-newreno", "tcp-sack", "tpa-star"], "tcp.window": [2, 4, 8, "unclamped"]}
    return hl.compare(CHAIN, vary, runs=2, set={"duration_s": 3})


@pytest.fixture(scope="module")
def twenty():
    vary = {
        "transport": ["tcp-newreno", "tcp-sack", "tcp-cubic", "tpa", "tpa-star"],
        "queue.discipline": ["drop-tail", "red", "codel", "fq-codel"],
    }
    return hl.compare(CHAIN, vary, runs=2, set={"duration_s": 3})


@pytest.fixture(scope="module")
def results(windows, one):
    """Results that cannot be drawn, or not completely."""
    return {
        "windows": windows,
        "one": one,
        "run": hl.run(CHAIN, set={"duration_s": 1}),
        "crowd": hl.compare(CHAIN, {"tcp.window": range(2, 63)}, runs=1, set={"duration_s": 0.5}),
        "bare": hl.sweep({"scenario": str(CHAIN), "runs": 1, "series": "none", "set": {"duration_s": 2}}),
    }


def drawn(axes):
    """Returns mean and ends of the bar of each row."""
    rows = []
    for container in axes.containers:
        line, _caps, (bars,) = container.lines
        (low, _), (high, _) = bars.get_segments()[0]
        rows.append((float(line.get_xdata()[0]), float(low), float(high)))
    return rows


def asked(result):
    """Returns the rows of the estimates for the selected metric."""
    question, table = result.question, result.estimates
    rows = [table[number] for number in range(len(table))]
    return [row for row in rows if row["metric"] == question["metric"] and (row["of"] or "") == question["of"]]


def singles(axes):
    return [list(line.get_xdata()) for line in axes.lines if line.get_gid() == "singles"]


def nodes(axes):
    """Returns the positions of nodes: radio nodes, then wired ones."""
    return [place for line in axes.lines if line.get_gid() for place in zip(*line.get_data(), strict=True)]


def python(program, *words, **environment):
    own = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MPLBACKEND": "Agg", **environment}
    command = [sys.executable, "-c", program, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=own).stdout


def test_gains_are_those_of_the_estimates(windows):
    rows = asked(windows)[1:]
    expected = [(row["gain_pct"], row["gain_low_pct"], row["gain_high_pct"]) for row in rows]
    assert len(expected) == 3
    for row, want in zip(drawn(hl.plot.gain(windows)), expected, strict=True):
        assert row == pytest.approx(want, rel=1e-9)


def test_means_are_those_of_the_estimates_in_the_unit_that_people_read(windows):
    for row, want in zip(drawn(hl.plot.means(windows)), asked(windows), strict=True):
        assert row == pytest.approx((want["mean"] / 1e3, want["low"] / 1e3, want["high"] / 1e3), rel=1e-9)
    axes = hl.plot.means(windows, metric="delay_p95")
    assert axes.get_xlabel() == "delay p95 (ms)"
    for row, want in zip(drawn(axes), asked(windows.asking("delay_p95")), strict=True):
        assert row == pytest.approx((want["mean"] * 1e3, want["low"] * 1e3, want["high"] * 1e3), rel=1e-9)


def test_gains_are_those_that_the_command_prints(windows, hopline):
    said = hopline(
        "compare", CHAIN, "--vary", "tcp.window=2,3,8,unclamped", "--runs", "4", "--set", "duration_s=10", "--json"
    )
    gains = [variant["asked"]["difference_pct"] for variant in said["variants"][1:]]
    for row, gain in zip(drawn(hl.plot.gain(windows)), gains, strict=True):
        assert row == pytest.approx((gain["mean"], *gain["interval"]), rel=1e-9)


def test_single_pairs_average_to_the_gain(windows):
    axes = hl.plot.gain(windows)
    pairs = singles(axes)
    assert [len(values) for values in pairs] == [4, 4, 4]
    for values, (mean, _, _) in zip(pairs, drawn(axes), strict=True):
        assert sum(values) / len(values) == pytest.approx(mean, rel=1e-9)
    assert not any(singles(hl.plot.gain(windows, singles=False)))


def test_a_gain_of_named_variants_is_over_the_baseline_of_each():
    plan = {
        "scenario": str(CHAIN),
        "runs": 2,
        "set": {"duration_s": 3},
        "variant": [{"name": "small", "set": {"tcp.window": 2}}, {"name": "large", "set": {"tcp.window": 8}}],
        "grid": {"nodes.spacing_m": [150, 200]},
    }
    result = hl.sweep(plan)
    axes = hl.plot.gain(result)
    expected = [row["gain_pct"] for row in asked(result) if row["gain_pct"] is not None]
    assert [mean for mean, _, _ in drawn(axes)] == pytest.approx(expected)
    assert len(expected) == 2
    assert "each baseline" in axes.get_xlabel()
    over = hl.plot.over(result, "nodes.spacing_m")
    assert over.get_legend_handles_labels()[1] == ["small", "large"]


def test_a_single_run_of_each_has_no_bar():
    single = hl.compare(CHAIN, {"tcp.window": [2, 8]}, runs=1, set={"duration_s": 3})
    rows = drawn(hl.plot.gain(single)) + drawn(hl.plot.means(single))
    assert len(rows) == 3
    for mean, low, high in rows:
        assert low == high == mean


def test_over_draws_mean_and_band_of_every_value():
    vary = {"transport": ["tcp-sack", "tpa"], "nodes.spacing_m": [240, 100, 200]}
    result = hl.compare(CHAIN, vary, runs=3, set={"duration_s": 3})
    axes = hl.plot.over(result, "nodes.spacing_m")
    assert axes.get_legend_handles_labels()[1] == ["sack", "tpa"]
    for line, band, transport in zip(axes.lines, axes.collections, vary["transport"], strict=True):
        rows = [row for row in asked(result) if row["transport"] == transport]
        rows.sort(key=lambda row: row["nodes.spacing_m"])
        assert list(line.get_xdata()) == [100, 200, 240]
        assert list(line.get_ydata()) == pytest.approx([row["mean"] / 1e3 for row in rows])
        corners = {(x, round(y, 6)) for x, y in band.get_paths()[0].vertices}
        assert {
            (row["nodes.spacing_m"], round(row[end] / 1e3, 6)) for row in rows for end in ("low", "high")
        } <= corners


def test_keys_that_go_along_make_no_lines_of_their_own():
    plan = {
        "scenario": str(CHAIN),
        "runs": 1,
        "set": {"duration_s": 2},
        "grid": {"transport": ["tcp-sack", "tpa"]},
        "zip": {"nodes.count": [3, 4], "flow.0.dst": ["n2", "n3"]},
    }
    axes = hl.plot.over(hl.sweep(plan), "nodes.count")
    assert axes.get_legend_handles_labels()[1] == ["sack", "tpa"]


def test_words_stand_beside_each_other(windows):
    axes = hl.plot.over(windows, "tcp.window")
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "3", "8", "unclamped"]


def test_cdf_draws_the_quantiles_in_milliseconds(windows):
    axes = hl.plot.cdf(windows)
    kept = json.loads(windows._core.distributions)
    for line, (_, each) in zip(axes.lines, kept, strict=True):
        all_flows = next(one for one in each if one["times"] == "delay" and one["of"] == "")
        assert list(line.get_xdata()) == pytest.approx([1e3 * value for value in all_flows["quantiles_s"]])
    runs = windows.to_dict()["variants"][2]["runs"]
    for percent in (50, 95, 99):
        at = list(axes.lines[2].get_ydata()).index(percent)
        assert axes.lines[2].get_xdata()[at] == pytest.approx(1e3 * runs[0][f"delay_p{percent}_s"], rel=1e-9)


def test_series_are_those_of_the_table(windows):
    table = windows.series.to_dict()
    for what, column, factor in (
        ("goodput", "goodput_bps", 1e-3),
        ("queue", "queue_packets", 1),
        ("rtt", "srtt_s", 1e3),
    ):
        for point, line in enumerate(hl.plot.series(windows, what).lines):
            want = [value for value, of in zip(table[column], table["point"], strict=True) if of == point]
            got = [None if math.isnan(value) else value for value in line.get_ydata()]
            assert len(want) == 10
            assert got == pytest.approx([None if value is None else factor * value for value in want])


def test_a_run_has_a_line_for_each_flow():
    run = hl.run(WEB, set={"duration_s": 5})
    assert hl.plot.series(run).get_legend_handles_labels()[1] == ["pages", "calls", "download"]
    assert len(hl.plot.series(run, flow="calls").lines) == 1
    assert len(hl.plot.cdf(run, of="download").lines) == 1


def test_map_has_every_node_flow_and_range():
    scenario = hl.Scenario(WEB)
    network = json.loads(scenario._core.map(1))
    axes = hl.plot.map(scenario)
    assert sorted(nodes(axes)) == sorted((node["path"][0]["x_m"], node["path"][0]["y_m"]) for node in network["nodes"])
    radii = {patch.radius for patch in axes.patches if isinstance(patch, Circle)}
    assert radii == {network["transmission_m"], network["carrier_sense_m"]}
    ends = {(flow["src"], flow["dst"]) for flow in network["flows"]}
    assert len([patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]) == len(ends)
    words = [text.get_text() for text in axes.texts]
    assert {node["name"] for node in network["nodes"]} <= set(words)
    for flow in network["flows"]:
        assert any(flow["name"] in word.split(", ") for word in words)


def test_nodes_that_move_are_where_they_are_at_a_time():
    scenario = hl.Scenario(
        duration_s=10,
        radio={},
        nodes={"layout": "random", "count": 5, "width_m": 300, "height_m": 300},
        mobility={"model": "random-waypoint", "max_speed_mps": 20},
        flow=[{"src": "n0", "dst": "n1"}],
    )
    path = json.loads(scenario._core.map(1))["nodes"][0]["path"]
    assert nodes(hl.plot.map(scenario, time_s=0))[0] == (path[0]["x_m"], path[0]["y_m"])
    assert nodes(hl.plot.map(scenario, time_s=10))[0] == pytest.approx((path[-1]["x_m"], path[-1]["y_m"]))
    assert nodes(hl.plot.map(scenario, time_s=0)) != nodes(hl.plot.map(scenario, time_s=5))
    with pytest.raises(ValueError, match="from 0 to 10 s"):
        hl.plot.map(scenario, time_s=11)


SIZES = [("ieee-column", 3.5), ("ieee-page", 7.16), ("acm-column", 3.3367), ("acm-page", 7.0056), ("slide", 10)]


@pytest.mark.parametrize(("size", "inches"), SIZES)
def test_files_have_the_published_widths(windows, tmp_path, size, inches):
    for draw in (hl.plot.gain, hl.plot.means, hl.plot.cdf, hl.plot.series, hl.plot.map):
        hl.plot.save(draw(windows, size=size), tmp_path / "x.pdf")
        box = re.search(rb"/MediaBox \[ ?0 0 ([0-9.]+) ([0-9.]+) ?\]", (tmp_path / "x.pdf").read_bytes())
        assert float(box[1]) / 72 == pytest.approx(inches, abs=1e-3)


def test_fonts_are_embedded_as_truetype_and_between_7_and_9_points(twenty, tmp_path):
    axes = hl.plot.gain(twenty)
    hl.plot.save(axes, tmp_path / "x.pdf")
    pdf = (tmp_path / "x.pdf").read_bytes()
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf
    texts = [*axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label]
    assert {text.get_fontsize() for text in texts} == {7, 8}


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_the_same_result_gives_the_same_bytes(windows, tmp_path, kind):
    for draw in (hl.plot.gain, hl.plot.cdf, hl.plot.map):
        for name in ("a", "b"):
            hl.plot.save(draw(windows), tmp_path / f"{name}.{kind}")
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes()


def test_the_same_result_gives_the_same_bytes_in_another_process(tmp_path):
    program = (
        "import sys, hopline as hl\n"
        f"result = hl.compare({str(CHAIN)!r}, {WINDOWS!r}, runs=2, set={{'duration_s': 2}}, progress=False)\n"
        "hl.plot.save(hl.plot.gain(result), sys.argv[1])\n"
    )
    for name, seed in (("a.pdf", "1"), ("b.pdf", "2")):
        python(program, tmp_path / name, PYTHONHASHSEED=seed)
    assert (tmp_path / "a.pdf").read_bytes() == (tmp_path / "b.pdf").read_bytes()


def collisions(texts):
    """Returns pairs of texts that overlap by more than a pixel."""
    boxes = [(text.get_text(), text.get_window_extent()) for text in texts if text.get_text() and text.get_visible()]
    pairs = [(a, b) for place, a in enumerate(boxes) for b in boxes[place + 1 :]]
    covered = [(a, b, a[1].intersection(a[1], b[1])) for a, b in pairs]
    return [(a[0], b[0]) for a, b, both in covered if both is not None and both.width > 1 and both.height > 1]


def texts_of(axes):
    """Returns all visible texts: ticks beyond the ends of an axis are not."""
    shown = []
    for labels, limits, place in (
        (axes.get_xticklabels(), axes.get_xlim(), 0),
        (axes.get_yticklabels(), axes.get_ylim(), 1),
    ):
        shown += [label for label in labels if min(limits) <= label.get_position()[place] <= max(limits)]
    legend = axes.get_legend()
    shown += [axes.xaxis.label, axes.yaxis.label, *(legend.get_texts() if legend else [])]
    return [text for text in shown if text.get_text()]


@pytest.mark.parametrize("size", ["ieee-column", "acm-column", "acm-page", "slide"])
def test_no_text_covers_another_or_leaves_the_figure(windows, one, twelve, twenty, size):
    long = dict.fromkeys(windows.variants[1:], "a name that is longer than anybody would ever put there")
    figures = [hl.plot.gain(result, size=size) for result in (windows, twelve, twenty)]
    figures += [hl.plot.means(result, size=size) for result in (one, windows, twelve, twenty)]
    figures += [
        draw(result, size=size) for draw in (hl.plot.cdf, hl.plot.series) for result in (one, windows, twelve, twenty)
    ]
    figures += [hl.plot.gain(windows, labels=long, size=size), hl.plot.series(windows, labels=long, size=size)]
    figures += [hl.plot.map(windows, size=size), hl.plot.over(twenty, "transport", size=size)]
    for axes in figures:
        figure = axes.get_figure()
        figure.canvas.draw()
        texts = texts_of(axes)
        assert not collisions(texts)
        width, height = figure.canvas.get_width_height()
        for text in texts:
            box = text.get_window_extent()
            inside = box.x0 >= -2 and box.y0 >= -2 and box.x1 <= width + 2 and box.y1 <= height + 2
            assert inside, text
        # Some room is left for the plot itself.
        assert axes.get_position().width > 0.3 and axes.get_position().height > 0.25


def test_variants_are_told_apart_by_shape_too():
    from hopline.plot._style import look

    looks = [look(number) for number in range(35)]
    assert len({(one.colour, one.marker) for one in looks}) == 35
    assert len({(one.colour, str(one.dashes)) for one in looks}) == 35
    assert len({one.marker for one in looks[:8]}) == 8


def test_axes_of_ones_own_are_drawn_on(windows):
    figure, (left, right) = hl.plot.figure("ieee-page", columns=2)
    assert hl.plot.gain(windows, left) is left
    assert hl.plot.cdf(windows, ax=right) is right
    assert figure.get_size_inches()[0] == 7.16
    with hl.plot.style("slide", font_family="DejaVu Serif"):
        assert matplotlib.rcParams["font.size"] == 18
        assert matplotlib.rcParams["font.family"] == ["DejaVu Serif"]
    assert matplotlib.rcParams["font.family"] != ["DejaVu Serif"]


def test_names_are_those_of_the_report(twenty):
    names = [label.get_text().replace("\n", " ") for label in hl.plot.means(twenty).get_yticklabels()]
    assert names[:2] == ["newreno discipline=drop-tail", "newreno discipline=red"]
    page = twenty._repr_html_()
    assert all(name in page for name in names)


def test_variants_can_be_chosen_and_keep_their_looks_and_intervals(windows):
    axes = hl.plot.gain(windows, variants=["tcp.window=8"])
    assert drawn(axes) == [drawn(hl.plot.gain(windows))[1]]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["window=8"]
    colours = [line.get_color() for line in hl.plot.series(windows).lines]
    assert [line.get_color() for line in hl.plot.series(windows, variants=["tcp.window=8"]).lines] == colours[2:3]


def test_names_are_taken_literally(tmp_path):
    scenario = hl.Scenario(
        duration_s=3,
        radio={},
        nodes={"layout": "chain", "count": 3, "spacing_m": 200},
        flow=[{"name": "$x_$", "src": "n0", "dst": "n2"}, {"name": "_b", "src": "n2", "dst": "n0"}],
    )
    run = hl.run(scenario)
    axes = hl.plot.series(run)
    assert len(axes.get_legend().get_texts()) == 2
    for number, drawn_on in enumerate((axes, hl.plot.map(run), hl.plot.cdf(run, of="$x_$"))):
        hl.plot.save(drawn_on, tmp_path / f"{number}.pdf")


@pytest.mark.parametrize(
    ("draw", "error", "says"),
    [
        (lambda r: hl.plot.gain(r["one"]), ValueError, "nothing that it could gain over.*hl.plot.means"),
        (lambda r: hl.plot.gain(r["run"]), TypeError, "single run: hl.compare"),
        (lambda r: hl.plot.gain(42), TypeError, "hl.compare, hl.sweep or hl.report return, not int"),
        (lambda r: hl.plot.gain(r["windows"], metric="dely"), hl.ScenarioError, "dely"),
        (lambda r: hl.plot.gain(r["windows"], size="a4"), ValueError, "there are ieee-column"),
        (lambda r: hl.plot.gain(r["windows"], labels=["x"]), ValueError, "1 labels for 4 variants"),
        (
            lambda r: hl.plot.gain(r["windows"], labels={"x": "y"}),
            ValueError,
            "no such variant; there are tcp.window=2",
        ),
        (lambda r: hl.plot.gain(r["windows"], metric="timeouts"), ValueError, "no variant has a gain in timeouts"),
        (
            lambda r: hl.plot.gain(r["windows"], variants=["tcp.window=2"]),
            ValueError,
            "none has a baseline other than itself",
        ),
        (lambda r: hl.plot.means(r["windows"], variants=["tcp.window=9"]), ValueError, "no variant 'tcp.window=9'"),
        (lambda r: hl.plot.means(r["crowd"]), ValueError, "61 variants, and a figure has room for 60: variants="),
        (lambda r: hl.plot.means(r["windows"], metric="response_p95"), ValueError, "no run has response p95"),
        (
            lambda r: hl.plot.over(r["windows"], "tcp.windw"),
            ValueError,
            "'tcp.windw' was not varied; there are tcp.window",
        ),
        (lambda r: hl.plot.cdf(r["windows"], "response"), ValueError, "there are delay of all flows"),
        (lambda r: hl.plot.cdf(r["windows"], "speed"), ValueError, "'delay' and 'response'"),
        (lambda r: hl.plot.series(r["windows"], "speed"), ValueError, "there are 'goodput'"),
        (lambda r: hl.plot.series(r["windows"], flow="f9"), ValueError, "there is no flow 'f9'; there are f0"),
        (lambda r: hl.plot.series(r["windows"], variants=["x"]), ValueError, "no variant 'x'"),
        (lambda r: hl.plot.series(r["bare"]), ValueError, "kept no series: a plan says series"),
        (lambda r: hl.plot.save(hl.plot.means(r["one"]), "x.doc"), ValueError, "ends in none of .pdf"),
        (lambda r: hl.plot.style("slide", font_famly="x"), ValueError, "no setting 'font_famly'"),
    ],
)
def test_errors_say_what_would_be_right(results, draw, error, says):
    with pytest.raises(error, match=says):
        draw(results)


def test_of_a_reproduction_a_figure_is_to_be_taken():
    made = hl.reproduce("snoop", "errors", quick=True, set={"duration_s": 2}, progress=False)
    with pytest.raises(TypeError, match=r"result.figures\[…\], of 'errors'"):
        hl.plot.gain(made)
    assert drawn(hl.plot.means(made.figures["errors"]))
    with pytest.raises(ValueError, match="single runs of a reproduced figure are not kept"):
        hl.plot.series(made.figures["errors"])


def test_without_matplotlib_it_says_what_to_install():
    program = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import hopline as hl\n"
        "try: hl.plot\n"
        "except ImportError as error: print(error)\n"
    )
    assert "pip install hopline[plot]" in python(program)


def test_matplotlib_is_loaded_by_those_who_draw():
    assert python("import sys, hopline; print('matplotlib' in sys.modules)").strip() == "False"
