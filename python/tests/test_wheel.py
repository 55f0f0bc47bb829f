"""The installed package is the wheel, complete and small."""

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

import hopline

SCENARIO = """
name = "pair"
duration_s = 1
flow = [{ src = "n0", dst = "n1" }]

[radio]
preset = "ns2-wavelan"

[nodes]
layout = "chain"
count = 2
spacing_m = 200
"""

LARGE = {"numpy", "pandas", "polars", "pyarrow", "duckdb", "matplotlib", "tqdm", "distributed", "ray", "IPython"}


@pytest.fixture
def wheel() -> Path:
    path = os.environ.get("HOPLINE_WHEEL")
    if path is None:
        pytest.skip("HOPLINE_WHEEL does not name a wheel; `make python-test` sets it")
    return Path(path)


@pytest.fixture
def names(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


@pytest.fixture
def program(wheel: Path) -> Path:
    return Path(sys.prefix, "bin", "hopline")


def test_what_is_imported_is_what_was_installed(wheel: Path) -> None:
    assert Path(hopline.__file__).is_relative_to(sys.prefix)


def test_package_and_program_are_of_one_version(program: Path) -> None:
    told = subprocess.run([program, "--version"], capture_output=True, check=True, text=True).stdout
    assert told == f"hopline {hopline.__version__}\n"
    assert metadata.version("hopline") == hopline.__version__


def test_program_runs_a_scenario(program: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "pair.toml"
    scenario.write_text(SCENARIO)
    done = subprocess.run([program, "run", scenario, "--json"], capture_output=True, check=False, text=True)
    assert done.returncode == 0, done.stderr
    assert '"aggregate_goodput_bps"' in done.stdout


def test_wheel_is_below_20_mb(wheel: Path) -> None:
    assert wheel.stat().st_size < 20_000_000


def test_wheel_carries_types_and_licences(names: list[str]) -> None:
    assert {"hopline/py.typed", "hopline/_hopline.pyi"} <= set(names)
    licences = {name.rpartition("/")[2] for name in names if ".dist-info/licenses/" in name}
    assert licences == {"LICENSE-APACHE", "LICENSE-MIT", "LICENSE-THIRD-PARTY"}


def test_wheel_has_one_extension_for_all_versions_of_python(wheel: Path, names: list[str]) -> None:
    assert [name for name in names if name.endswith((".so", ".pyd"))] == ["hopline/_hopline.abi3.so"]
    assert "-cp310-abi3-" in wheel.name


def test_record_lists_all_files_and_the_program_is_one(wheel: Path, names: list[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [record] = [name for name in names if name.endswith(".dist-info/RECORD")]
        recorded = [line.split(",")[0] for line in archive.read(record).decode().splitlines()]
    assert sorted(recorded) == sorted(names)
    assert f"hopline-{hopline.__version__}.data/scripts/hopline" in recorded


def test_wheel_holds_the_package_the_program_and_metadata_only(names: list[str]) -> None:
    version = hopline.__version__
    of_it = ("hopline/", f"hopline-{version}.data/scripts/", f"hopline-{version}.dist-info/")
    assert not [name for name in names if not name.startswith(of_it) or "/sboms/" in name]


def test_import_takes_no_large_library_along() -> None:
    code = "import sys; before = set(sys.modules); import hopline; print(*(set(sys.modules) - before))"
    new = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert "hopline._hopline" in new
    assert not LARGE & {name.partition(".")[0] for name in new}
