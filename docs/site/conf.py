"""The documentation as a site: the pages as they are in the repository, and the Python API. `make site` builds it.

The root of the sources is the repository, so that links between pages work here as they do there.
"""

import __future__

import json
import os
import re
import sys
import types
from pathlib import Path

from myst_parser.parsers.sphinx_ import MystParser
from sphinx.ext.napoleon.docstring import GoogleDocstring

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python/hopline"

project = "hopline"
html_title = "hopline"
release = re.search(r'^version = "(.+)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)[1]
copyright = "the authors of hopline"

root_doc = "docs/site/index"
include_patterns = [
    "*.md",
    "docs/*.md",
    "docs/*/*.md",
    "docs/site/*.rst",
    "papers/*.md",
    "papers/*/*.md",
    "scenarios/README.md",
    "scenarios/*/README.md",
    "bench/*/README.md",
    "fuzz/README.md",
    "python/README.md",
    "python/notebooks/*.ipynb",
]
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
napoleon_numpy_docstring = False
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".ipynb": "notebook"}

myst_heading_anchors = 5
# Headings of levels that follow no other are how tables of results are kept short.
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072b2", "color-brand-content": "#0072b2"},
    "dark_css_variables": {"color-brand-primary": "#56b4e9", "color-brand-content": "#56b4e9"},
}
html_static_path = ["static"]
html_css_files = ["site.css"]

autodoc_mock_imports = ["matplotlib"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100


def _stubs_as_the_extension() -> None:
    """Has the stubs stand in for what is written in Rust: the site is built without a compiler."""
    source = (PACKAGE / "_hopline.pyi").read_text()
    module = types.ModuleType("hopline._hopline")
    code = compile(source, "_hopline.pyi", "exec", flags=__future__.annotations.compiler_flag)
    exec(code, module.__dict__)
    for thing in vars(module).values():
        if isinstance(thing, type) and thing.__module__ == "builtins":
            thing.__module__ = module.__name__
    module.__version__ = release
    sys.modules[module.__name__] = module


sys.path.insert(0, str(PACKAGE.parent))
_stubs_as_the_extension()


# A property is described in sentences; what stands before a colon in there is not its type.
GoogleDocstring._parse_attribute_docstring = GoogleDocstring._consume_to_end


class NotebookParser(MystParser):
    """Notebooks as pages: their texts and programs, and what these show where they were run (`HOPLINE_NOTEBOOKS`)."""

    supported = ("notebook",)

    def parse(self, inputstring: str, document: object) -> None:
        name = Path(document.settings.env.docname).name + ".ipynb"
        was_run = Path(os.environ.get("HOPLINE_NOTEBOOKS", ""), name)
        text = was_run.read_text() if "HOPLINE_NOTEBOOKS" in os.environ and was_run.exists() else inputstring
        parts = []
        for cell in json.loads(text)["cells"]:
            source = "".join(cell["source"])
            parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
            parts += filter(None, map(_shown, cell.get("outputs", [])))
        parts.insert(1, f"{{download}}`This page as a notebook, to run <{name}>`")
        super().parse("\n\n".join(parts), document)


def _shown(output):
    """What a cell showed, in the richest of its kinds; nothing of progress."""
    data = {kind: "".join(lines) for kind, lines in output.get("data", {}).items()}
    if output["output_type"] == "stream":
        data = {"text/plain": "".join(output["text"])} if output["name"] == "stdout" else {}
    if "text/html" in data:
        return f"``````{{raw}} html\n<div class=\"shown\">{data['text/html']}</div>\n``````"
    if "image/png" in data:
        picture = data["image/png"].replace("\n", "")
        return f"``````{{raw}} html\n<img class=\"shown\" alt=\"The figure\" src=\"data:image/png;base64,{picture}\">\n``````"
    return f"``````text\n{data['text/plain'].rstrip()}\n``````" if data.get("text/plain", "").strip() else None


def _as_a_page(app, docname, source):
    """What a repository shows and a site cannot: folders, and pages without a title."""
    here = (ROOT / docname).parent

    def link(found):
        text, path, anchor = found[1], found[2], found[3] or ""
        if not (here / path).is_dir():
            return found[0]
        for name in ("README.md", "scenario.toml"):
            if (here / path / name).is_file():
                return f"[{text}]({os.path.join(path, name)}{anchor})"
        return text

    if Path(app.env.doc2path(docname)).suffix == ".md":
        source[0] = re.sub(r"\[([^\]]*)\]\(([^)#:\s]+)(#[^)]*)?\)", link, source[0])
        if not re.search(r"^# ", source[0], re.MULTILINE):
            title = Path(docname).name.replace("-", " ").capitalize()
            source[0] = f"# {title}\n\n{source[0]}"


def _start_page(app, failure):
    """The site begins at its top, wherever its start page lies."""
    if failure is None and app.builder.format == "html":
        page = app.builder.get_target_uri(root_doc)
        text = f'<!doctype html><meta charset="utf-8"><title>hopline</title><meta http-equiv="refresh" content="0; url={page}">'
        (Path(app.outdir) / "index.html").write_text(f'{text}<a href="{page}">hopline</a>\n')


def setup(app):
    app.add_source_parser(NotebookParser)
    app.connect("source-read", _as_a_page)
    app.connect("build-finished", _start_page)
    return {"parallel_read_safe": True}
