"""`hopline.emulate`, with a script in the place of the command: kernels are not there on every machine."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import hopline as hl

PAIR = {
    "duration_s": 4,
    "nodes": {"layout": "chain", "count": 2, "spacing_m": 200.5},
    "program": [{"name": "client", "node": "n0", "command": ["sh", "-c", 'echo "é\\n"']}],
}

COMMAND = """#!/usr/bin/env python3
import json, pathlib, shutil, sys
words = dict(word.split("=", 1) for word in sys.argv[1:] if word.startswith("--") and "=" in word)
results = pathlib.Path(words["--output"])
results.mkdir()
shutil.copy(sys.argv[3], "scenario.toml")
pathlib.Path("words.json").write_text(json.dumps(sys.argv[1:]))
if "--kernel=/none" in sys.argv:
    sys.exit(print("× there is no user-mode Linux kernel at /none/linux", file=sys.stderr) or 2)
(results / "flows.csv").write_text("id,src,goodput_bps,kind\\nf0,n0,1500.5,program\\n")
(results / "series.csv").write_text("time_s,flow,cwnd_bytes\\n1,f0,\\n")
(results / "client.stdout").write_text("42\\n")
(results / "run.pcapng").write_bytes(b"capture")
pathlib.Path(words["--report"]).write_text("page")
said = {"fingerprint": "0123456789abcdef", "programs": [{"name": "client", "exit_code": 0}]}
pathlib.Path(words["--json"]).write_text(json.dumps(said))
print("said")
print("summary", file=sys.stderr)
print("results in", results, file=sys.stderr)
sys.exit(3)
"""


@pytest.fixture
def command(tmp_path, monkeypatch) -> str:
    path = tmp_path / "hopline"
    path.write_text(COMMAND, encoding="utf-8")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return str(path)


def test_the_result_has_flows_programs_and_what_was_said(command):
    result = hl.emulate(PAIR, program=command)
    assert (result.fingerprint, result.exit_code, result.output) == ("0123456789abcdef", 3, "said\n")
    assert str(result) == "summary\n"
    assert result.flows == [{"id": "f0", "src": "n0", "goodput_bps": 1500.5, "kind": "program"}]
    assert result.series == [{"time_s": 1, "flow": "f0", "cwnd_bytes": None}]
    assert result.programs == [{"name": "client", "exit_code": 0, "stdout": "42\n", "stderr": ""}]
    result.report("report.html")
    assert Path("report.html").read_text(encoding="utf-8") == "page"


def test_the_scenario_and_all_options_reach_the_command(command):
    options = {
        "set": {"mac.data_rate_mbps": 11, "transport": "tcp-bbr"},
        "seed": 5,
        "kernel": "/k",
        "pcap": "my.pcapng",
    }
    tomllib = pytest.importorskip("tomllib", reason="Python before 3.11")
    hl.emulate(PAIR, 7, command=["ping", "n1"], program=command, **options)
    assert tomllib.loads(Path("scenario.toml").read_text(encoding="utf-8")) == PAIR
    words = json.loads(Path("words.json").read_text(encoding="utf-8"))
    assert words[:2] == ["emulate", "--virtual-time"]
    for word in ("--run=7", "--seed=5", "mac.data_rate_mbps=11", "transport=tcp-bbr", "--kernel=/k", "--pcap"):
        assert word in words
    assert words[-3:] == ["--", "ping", "n1"]
    assert Path("my.pcapng").read_bytes() == b"capture"


def test_a_missing_command_or_kernel_is_an_error(command, monkeypatch):
    with pytest.raises(hl.EmulationError, match="there is no user-mode Linux kernel at /none/linux"):
        hl.emulate(PAIR, kernel="/none", program=command)
    monkeypatch.delenv("HOPLINE", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.executable", "/none/python")
    with pytest.raises(hl.EmulationError, match="there is no command `hopline` in PATH"):
        hl.emulate(PAIR)


KERNELS = """#!/usr/bin/env python3
import json, pathlib, sys
request = json.load(sys.stdin)
if request["options"]["kernel"] == "/none":
    sys.exit(print("× there is no user-mode Linux kernel at /none/linux", file=sys.stderr) or 2)
if request["run"] is None:
    sys.exit(print(json.dumps({"Checked": pathlib.Path(sys.argv[0]).with_name("version").read_text()})))
value = 1000.0 * request["run"]
done = {"fingerprint": f"{request['run']:016x}", "events": 9, "sim_s": 4.0, "cpu_s": 0.1, "wall_s": 0.1, "flows": [],
        "metrics": [["run", "", "aggregate_goodput_bps", value], ["group of flows", "program", "goodput_bps", value]], "series": []}
print(json.dumps({"Reached": 1000000000}))
print(json.dumps({"Done": done}))
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch) -> str:
    """A plan, and a command that makes its runs."""
    path = tmp_path / "hopline"
    path.write_text(KERNELS, encoding="utf-8")
    path.chmod(0o755)
    (tmp_path / "version").write_text("6.12.1-hopline.3", encoding="utf-8")
    (tmp_path / "pair.toml").write_text(
        "duration_s = 4\nradio.preset = 'ns2-wavelan'\nnodes = { layout = 'chain', count = 2, spacing_m = 200 }\n"
        "program = [{ name = 'client', node = 'n0', command = ['true'] }]\n",
        encoding="utf-8",
    )
    monkeypatch.setenv("HOPLINE", str(path))
    monkeypatch.chdir(tmp_path)
    return str(path)


PLAN = {"scenario": "pair.toml", "runs": 3, "grid": {"mac.data_rate_mbps": [1, 2]}}


def test_a_sweep_over_kernels_has_the_same_tables_on_threads_and_on_an_executor(kernels):
    here = hl.sweep(PLAN, "here", virtual_time=True, metric="goodput of program")
    assert "over Linux 6.12.1-hopline.3 in virtual time" in str(here)
    with ThreadPoolExecutor(2) as executor:
        hl.sweep(PLAN, "there", virtual_time=True, executor=executor)
    for name in ("runs.csv", "metrics.csv"):
        assert Path("here", name).read_bytes() == Path("there", name).read_bytes()
    assert "2000" in Path("here/metrics.csv").read_text(encoding="utf-8")


def test_results_of_other_kernels_are_not_resumed(kernels):
    hl.sweep(PLAN, "results", virtual_time=True)
    Path("version").write_text("6.18.1-hopline.3", encoding="utf-8")
    with pytest.raises(hl.ResultsError, match=r"it has kernels 6\.12\.1-hopline\.3, this plan has kernels 6\.18"):
        hl.sweep(PLAN, "results", virtual_time=True)


def test_a_machine_without_kernels_makes_no_runs(kernels):
    with pytest.raises(hl.EmulationError, match="there is no user-mode Linux kernel at /none/linux"):
        hl.sweep(PLAN, virtual_time=True, kernel="/none")
    with pytest.raises(ValueError, match="are for virtual_time=True"):
        hl.sweep(PLAN, no_routes=True)
    with pytest.raises(hl.ScenarioError, match="real programs, and a simulation runs none"):
        hl.sweep(PLAN)

    class Elsewhere(ThreadPoolExecutor):
        def submit(self, fn, /, *args, **kwargs):
            Path("version").write_text("6.18.1-hopline.3", encoding="utf-8")
            return super().submit(fn, *args, **kwargs)

    with Elsewhere(1) as executor, pytest.raises(hl.EmulationError, match=r"it has Linux 6\.18\.1"):
        hl.sweep(PLAN, virtual_time=True, executor=executor)
