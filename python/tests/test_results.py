"""Results: Arrow tables, pages, and errors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from conftest import TWO_HOPS

import hopline as hl


@pytest.fixture(scope="module")
def result():
    return hl.compare(TWO_HOPS, vary={"tcp.window": [2, 8]}, runs=4)


@pytest.fixture(scope="module")
def single():
    return hl.run(TWO_HOPS)


def test_polars_takes_every_table(result, single):
    polars = pytest.importorskip("polars")
    for table in (
        result.flows,
        result.series,
        result.metrics,
        result.runs,
        result.estimates,
        single.flows,
        single.series,
    ):
        frame = polars.DataFrame(table)
        assert frame.shape == table.shape and frame.columns == table.columns
        assert frame.to_dict(as_series=False) == table.to_dict()
    assert polars.DataFrame(result.flows).schema["goodput_bps"] == polars.Float64


def test_pandas_takes_every_table(result, single):
    pandas = pytest.importorskip("pandas")
    for table in (result.flows, result.metrics, single.series):
        frame = pandas.DataFrame(table)
        assert frame.shape == table.shape and list(frame.columns) == table.columns
    flows = pandas.DataFrame(result.flows)
    assert flows.groupby("tcp.window").goodput_bps.mean().to_dict() == pytest.approx(
        {row["tcp.window"]: row["mean"] for row in result.estimates if row["metric"] == "aggregate_goodput_bps"}
    )


def test_duckdb_takes_every_table(result):
    duckdb = pytest.importorskip("duckdb")
    flows = result.flows  # noqa: F841
    try:
        found = duckdb.sql(
            'select "tcp.window", count(*), avg(goodput_bps) from flows group by all order by all'
        ).fetchall()
    except Exception as error:
        if "pyarrow" in str(error):
            pytest.skip(f"this DuckDB wants pyarrow: {error}")
        raise
    assert [row[:2] for row in found] == [(2.0, 4), (8.0, 4)]


def test_a_table_is_a_sequence_of_rows_and_a_mapping_of_columns(single):
    series = single.series
    assert len(series) == series.shape[0] == 5
    assert series["time_s"] == [1.0, 2.0, 3.0, 4.0, 5.0] == [row["time_s"] for row in series]
    assert series[-1] == series[4] and series[0]["flow"] == "f0"
    for wrong, error in ((5, IndexError), (-6, IndexError), ("speed", KeyError)):
        with pytest.raises(error):
            series[wrong]


def test_the_stream_can_be_taken_twice_and_outlives_the_result():
    polars = pytest.importorskip("polars")
    table = hl.run(TWO_HOPS).flows
    one, two = polars.DataFrame(table), polars.DataFrame(table)
    del table
    assert one.equals(two) and one["src"].to_list() == ["n0"]


def test_a_notebook_shows_answer_table_and_charts(result, single):
    html = result._repr_html_()
    assert "window=8" in html and "<table" in html and html.count("<svg") >= 2
    assert "paired run" in html and "<script" not in html and "<html" not in html
    assert "two hops" in single._repr_html_()


def test_names_are_escaped_in_pages():
    html = hl.run(TWO_HOPS, set={"name": "<script>alert(1)</script>"})._repr_html_()
    assert "<script>alert" not in html


def test_a_report_is_a_page_and_replaces_nothing_else(result, tmp_path):
    path = tmp_path / "report.html"
    result.report(path)
    result.report(path)
    assert path.read_text().startswith("<!DOCTYPE html>")
    path.write_text("mine")
    with pytest.raises(hl.ResultsError) as raised:
        result.report(path)
    assert path.read_text() == "mine" and str(raised.value.path) == str(path)


def test_the_same_runs_can_be_asked_something_else(result):
    asked = result.asking("delay_p95", "goodput > 1 kb/s")
    assert asked.question["metric"] == "delay_p95_s"
    assert asked.runs.to_dict() == result.runs.to_dict()
    with pytest.raises(hl.ScenarioError, match="speed"):
        result.asking("speed")


def test_results_are_kept_gone_on_with_and_refused_to_another_plan(tmp_path):
    kept = tmp_path / "kept"
    few = hl.compare(TWO_HOPS, {"tcp.window": [2, 8]}, 2, output=kept)
    more = hl.compare(TWO_HOPS, {"tcp.window": [2, 8]}, 4, output=kept)
    assert (len(few.runs), len(more.runs)) == (4, 8)
    assert hl.report(kept).runs.to_dict() == more.runs.to_dict()
    with pytest.raises(hl.ResultsError, match="another plan") as raised:
        hl.compare(TWO_HOPS, {"tcp.window": [2, 9]}, 4, output=kept)
    assert "force=True" in str(raised.value)
    hl.compare(TWO_HOPS, {"tcp.window": [2, 9]}, 1, output=kept, force=True)
    with pytest.raises(hl.ResultsError):
        hl.report(tmp_path / "nothing")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(hl.ResultsError):
        hl.compare(TWO_HOPS, {"tcp.window": [2]}, output=tmp_path / "mine", force=True)
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_results_of_another_version_are_refused_with_both(tmp_path):
    kept = tmp_path / "kept"
    hl.compare(TWO_HOPS, {"tcp.window": [2]}, 1, output=kept)
    manifest = kept / "manifest.json"
    manifest.write_text(manifest.read_text().replace(f'"version": "{hl.__version__}"', '"version": "0.0.1"'))
    with pytest.raises(hl.VersionError) as raised:
        hl.report(kept)
    assert (raised.value.theirs, raised.value.ours) == ("0.0.1", hl.__version__)


def test_progress_is_told_and_may_end_it():
    told = []
    hl.compare(TWO_HOPS, {"tcp.window": [2, 8]}, 2, progress=lambda *numbers: told.append(numbers))
    done_s, total_s, runs, all_runs = told[-1]
    assert (done_s, total_s, runs, all_runs) == (pytest.approx(20.0), 20.0, 4, 4)

    def enough(*_):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        hl.compare(TWO_HOPS, {"tcp.window": [2, 8]}, 4, set={"duration_s": 100_000}, progress=enough)


LONG = textwrap.dedent("""
    import sys, hopline as hl
    scenario = {"duration_s": 1000000, "radio": {}, "nodes": {"layout": "grid", "columns": 8, "rows": 8, "spacing_m": 200},
                "flow": [{"src": "n0", "dst": "n63"}, {"src": "n7", "dst": "n56"}]}
    print("go", flush=True)
    try:
        hl.compare(scenario, {"tcp.window": [2, 8]}, 4)
    except KeyboardInterrupt:
        print("stopped", flush=True)
        sys.exit(7)
""")


@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")
def test_ctrl_c_stops_within_a_tenth_of_a_second():
    took = []
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", LONG], stdout=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "go\n"
        time.sleep(0.7)
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert process.stdout.readline() == "stopped\n"
        took.append(time.monotonic() - begun)
        assert process.wait(10) == 7
    print(f"Ctrl-C was answered after {', '.join(f'{s * 1e3:.0f} ms' for s in took)}")


def test_other_threads_run_meanwhile():
    import threading

    ticks, stop = [], threading.Event()

    def tick():
        while not stop.wait(0.005):
            ticks.append(time.monotonic())

    thread = threading.Thread(target=tick)
    thread.start()
    begun = time.monotonic()
    hl.compare(TWO_HOPS, {"tcp.window": [2, 8]}, 8, set={"duration_s": 200})
    ended = time.monotonic()
    stop.set()
    thread.join()
    assert any(begun < at < ended for at in ticks), "the interpreter is free while it simulates"
