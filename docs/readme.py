#!/usr/bin/env python3
"""Put into README.md what the program prints now.

    python3 docs/readme.py target/release/hopline

README.md has one scenario, a ```toml block, and three outputs, ```text blocks: of `make demo`, of a run of
that scenario, and of the same with a slip in it. The report of `make demo` becomes docs/report.png.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"


def printed(program, words, folder):
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    return "\n".join(line.rstrip() for line in (done.stdout + done.stderr).strip("\n").splitlines())


def outputs(program, scenario):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "my-network.toml").write_text(scenario, encoding="utf-8")
        slip = scenario.replace('"ns2-wavelan"', '"ns2-wavlan"')
        Path(folder, "typo.toml").write_text(slip, encoding="utf-8")
        Path(folder, "target").mkdir()
        chain = ["compare", "-q", ROOT / "scenarios/chain/scenario.toml", "--report", "target/demo.html"]
        yield printed(program, chain, folder)
        photograph(Path(folder, "target/demo.html"))
        for file in ("my-network.toml", "typo.toml"):
            yield f"$ hopline run {file}\n" + printed(program, ["run", "-q", file], folder)


def photograph(page):
    """The top of the report, as README shows it; left as it is where there is no Chromium."""
    browser = shutil.which("chromium")
    if browser is None:
        print("chromium is missing: docs/report.png stays as it was", file=sys.stderr)
        return
    quiet = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
    size = ["--hide-scrollbars", "--window-size=1100,1000", f"--screenshot={ROOT / 'docs/report.png'}"]
    profile = f"--user-data-dir={page.parent / 'profile'}"
    subprocess.run([browser, *quiet, *size, profile, page.as_uri()], capture_output=True, check=True)


def main(program):
    text = README.read_text(encoding="utf-8")
    scenario = re.search(r"```toml\n(.*?)```", text, re.DOTALL)[1]
    blocks = list(outputs(Path(program).resolve(), scenario))
    rows = blocks[0].split("\n\n")[1].splitlines()[1:]
    cpu_s = sum(float(row.split()[-2]) for row in rows)
    text = re.sub(r"[0-9.]+ CPU seconds", f"{cpu_s:.1f} CPU seconds", text, count=1)
    fresh = iter(blocks)
    text = re.sub(r"```text\n.*?\n```", lambda _: f"```text\n{next(fresh)}\n```", text, flags=re.DOTALL)
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
