"""Notebooks run from top to bottom, with the expected outputs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
kernelspec = pytest.importorskip("ipykernel.kernelspec")
for needed in ("matplotlib", "pandas", "polars"):
    pytest.importorskip(needed)

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


@pytest.fixture(scope="module", autouse=True)
def _kernel(tmp_path_factory):
    """Kernel `python3` of this interpreter, independent of other kernels on this machine."""
    home = tmp_path_factory.mktemp("jupyter")
    kernelspec.write_kernel_spec(home / "data/kernels/python3")
    folders = {name: str(home / name.lower()) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")}
    own = {
        **folders,
        "JUPYTER_DATA_DIR": str(home / "data"),
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "TMPDIR": str(home),
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in own.items():
            patch.setenv(name, value)
        patch.delenv("MPLBACKEND", raising=False)
        yield


def run(name, folder):
    """Returns the outputs of all code cells, each a dict by media type, with text under `text/plain`."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return [output.data if "data" in output else {"text/plain": output.get("text", "")} for output in outputs]


def shown(outputs, kind, *words):
    """Returns whether an output of this kind has all of these words."""
    return any(all(word in output.get(kind, "") for word in words) for output in outputs)


def test_the_tutorial_answers_which_window(tmp_path):
    outputs = run("tutorial", tmp_path)
    assert shown(outputs, "text/plain", "did you mean `window`?")
    assert shown(outputs, "text/plain", "fingerprint")
    assert shown(outputs, "text/html", "window=2", "wins", "kb/s")
    assert shown(outputs, "text/plain", "Of those that keep goodput above 300 kb/s")
    assert shown(outputs, "text/plain", "tcp.window", "gain_pct")
    assert shown(outputs, "text/plain", "chain.html", "flows.csv", "gain.pdf")
    assert len([output for output in outputs if "image/png" in output]) == 5


def test_the_mesh_is_answered_within_its_bound(tmp_path):
    outputs = run("mesh", tmp_path)
    assert shown(outputs, "text/html", "tpa-star", "is the best of those that keep", "does not keep it", "300")
    assert shown(outputs, "text/plain", f"{'transport=tcp-cubic queue.discipline=drop-tail':50} False")
    assert shown(outputs, "text/plain", f"{'transport=tpa-star queue.discipline=fq-codel':50} True")
    assert len([output for output in outputs if "image/png" in output]) == 3


def test_the_figure_is_drawn_and_its_numbers_told(tmp_path):
    outputs = run("figure", tmp_path)
    assert shown(outputs, "text/plain", "TPA carries", "95 % interval")
    assert shown(outputs, "text/plain", "fingerprint")
    assert len([output for output in outputs if "image/png" in output]) == 2


@pytest.mark.parametrize("path", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_notebooks_are_kept_without_outputs(path):
    notebook = json.loads(path.read_text())
    nbformat.validate(notebook)
    for cell in notebook["cells"]:
        assert not cell.get("outputs") and not cell.get("execution_count")
    assert path.stat().st_size < 20_000
