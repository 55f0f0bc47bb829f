"""`hopline.emulate`, with a script in the place of the command: kernels are not there on every machine."""

from __future__ import annotations

import json
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
    with pytest.raises(hl.EmulationError, match="there is no command `hopline` in PATH"):
        hl.emulate(PAIR)
