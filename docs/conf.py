"""How `make docs` makes a site of these pages: no font, script or picture is of another server."""

import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

from consortium import __version__

project = "cape-consortium"
copyright = "the cape-consortium contributors"  # noqa: A001 - Sphinx's name for it
version = release = __version__
extensions = ["myst_parser", "sphinx_gallery.gen_gallery", "sphinxcontrib.mermaid"]
exclude_patterns = ["generators"]

templates_path = ["_templates"]
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme = "pydata_sphinx_theme"
html_title = project
html_copy_source = False
html_show_search_summary = False  # a page that is opened as a file may not read others
html_theme_options = {
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
}
html_sidebars = {"tutorial": []}

myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

# Diagrams become pictures while the site is built.
mermaid_cmd = "mermaidx --quiet"
mermaid_output_format = "svg"

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "within_subsection_order": "FileNameSortKey",
    "show_signature": False,
    "write_computation_times": False,  # that page fetches scripts from elsewhere
}

SECTIONS = ["guides", "analyses", "gallery", "reference", "explanation", "replication"]
_EXAMPLE = re.compile(r"sphx_glr_(plot_\d\d_\w+?)_(?:thumb|\d{3})")
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((\.\./[^)#\s]*)\)")


def setup(app: Sphinx) -> None:
    """Let every page be read as the site needs it; the pages stay as a forge shows them."""
    app.connect("source-read", _read)
    app.connect("doctree-read", _mark_drawn)
    app.connect("doctree-read", _describe_figures)


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    page = Path(app.srcdir, f"{name}.md")
    if not page.exists():
        return
    source[0] = _LINK.sub(lambda link: _link(page, *link.group(0, 1, 2)), source[0])
    if name == "index":
        sections = [f"{name.capitalize()} <{name}/index>" for name in SECTIONS]
        source[0] += _contents("", ["Tutorial <tutorial>", *sections])
    elif page.stem == "index":
        source[0] += _contents(":glob:\n", ["*"])


def _mark_drawn(app: Sphinx, page: nodes.document) -> None:
    """Mark the blocks of code that contain tables, whose lines must not be wrapped."""
    printed = "text" if app.env.docname.startswith("analyses/") else ""
    for block in page.findall(nodes.literal_block):
        if "│" in block.astext() or block.get("language") == printed:
            block["classes"].append("drawn")


def _describe_figures(_: Sphinx, page: nodes.document) -> None:
    """Give each figure of the gallery that has no description its example's title."""
    for figure in page.findall(nodes.Element):
        found = _EXAMPLE.search(str(figure.get("uri", "")))
        if found and figure.get("alt", "") in ("", found[1].replace("_", " ")):
            script = Path(__file__).parents[1] / "examples" / f"{found[1]}.py"
            figure["alt"] = f"Figure: {script.read_text(encoding='utf-8').splitlines()[1]}"


def _link(page: Path, link: str, words: str, target: str) -> str:
    """Lead to the gallery instead of its scripts; folders and pages elsewhere are only named."""
    goal = (page.parent / target).resolve()
    docs = Path(__file__).parent
    if goal == docs.parent / "examples":
        return f"[{words}](/gallery/index.rst)"
    elsewhere = docs not in goal.parents and (goal.is_dir() or goal.suffix == ".md")
    return words if elsewhere else link


def _contents(options: str, pages: list[str]) -> str:
    return "\n".join(["", "```{toctree}", f":hidden:\n{options}", *pages, "```", ""])
