"""Sphinx's configuration: the pages of ``docs/`` and the reference as one site, ``make docs``.

Why Sphinx: docs/decisions/0055-the-documentation-site.md.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]

from reference import escaped, write  # noqa: E402

from stretto._engine import VERSION  # noqa: E402

project = "Stretto"
author = "The Stretto authors"
project_copyright = author
version = release = VERSION
language = "en"  # en_GB has no plural forms, and the search needs them

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
]
root_doc = "index"
exclude_patterns = ["site", "make_*", "**/__pycache__"]

# Pages are Markdown, as they are read without the site.
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4

# The reference: what the docstrings say, in Google's sections.
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_use_type_comments = False
maximum_signature_line_length = 88
python_use_unqualified_type_names = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False

# Nothing is fetched when a page is viewed: fonts and icons are the site's own.
html_theme = "pydata_sphinx_theme"
html_title = "Stretto"
html_static_path = ["static"]
html_css_files = ["stretto.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": [],
    "footer_end": [],
}
html_sidebars = {name: [] for name in ("index", "start", "faq", "glossary", "gallery", "changelog")}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
pygments_style = "friendly"


_OUTSIDE = re.compile(r"\[([^\]]+)\]\(((?:\.\./)+[^)#]*(?:\.md|/))(?:#[^)]*)?\)")


def prepared(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to folders and to pages outside of ``docs/`` work in a checkout, and are words here.

    The empty line that ends an example is for doctest.
    """
    page = ROOT / "docs" / name

    def plain(link: re.Match[str]) -> str:
        target = (page.parent / link[2]).resolve()
        outside = target.exists() and (target.is_dir() or ROOT / "docs" not in target.parents)
        return link[1] if outside else link[0]

    source[0] = _OUTSIDE.sub(plain, source[0]).replace("\n\n```\n", "\n```\n")


def escape(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list) -> None:
    """Docstrings are written to be read in an editor too: ``|x|`` is no markup there."""
    lines[:] = escaped("\n".join(lines)).split("\n")


def titled(app: Sphinx, tree: nodes.document, name: str) -> None:
    """Links within the site say what they lead to: the page, and the part of it if they name one.

    The pointer shows it, and so do screen readers where the words are only "here" or a number.
    """
    for link in tree.findall(nodes.reference):
        target = link.get("refuri", "")
        if link.get("reftitle") or not link.get("internal"):
            continue
        path, _, part = target.partition("#")
        page = posixpath.normpath(posixpath.join(posixpath.dirname(f"/{name}"), path or name))
        page = page.lstrip("/").removesuffix(".html") if path else name
        title = app.env.titles.get(page)
        if title is None:
            continue
        parts = app.env.tocs[page].findall(nodes.reference) if part else ()
        inside = [r.astext() for r in parts if r.get("anchorname") == f"#{part}"]
        link["reftitle"] = ": ".join([title.astext(), *inside[:1]])


def setup(app: Sphinx) -> None:
    """Write the reference's pages before Sphinx looks for pages."""
    write(ROOT / "docs" / "reference")
    app.connect("source-read", prepared)
    app.connect("doctree-resolved", titled, priority=900)  # when all links are resolved
    app.connect("autodoc-process-docstring", escape, priority=400)  # before napoleon, of 500
