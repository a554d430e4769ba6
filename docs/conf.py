"""How Sphinx builds the site: Markdown as it lies here, and a page for every public name."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))
sys.path.insert(0, str(ROOT / "docs"))

from tables import addresses  # noqa: E402

import calibrant  # noqa: E402

project = "calibrant"
author = "The calibrant authors"
project_copyright = "The calibrant authors, BSD-3-Clause"
version = release = calibrant.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
]
exclude_patterns = ["build"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
suppress_warnings = ["config.cache", "ref.python"]

# Markdown: the same files that a repository browser shows.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
nb_execution_mode = "force"
nb_execution_timeout = 300
nb_execution_raise_on_error = True

# Docstrings in NumPy style, with the types where they stand in the signature.
autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_mock_imports = ["pyspark"]  # 400 MB and a Java that docstrings need none of
napoleon_numpy_docstring = True
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_param = False  # several names with one text stay one entry
napoleon_use_ivar = True
napoleon_attr_annotations = False
add_module_names = False
toc_object_entries = False  # each name has a heading already
default_role = None

html_theme = "pydata_sphinx_theme"
html_title = "calibrant"
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["site.css"]
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "article_footer_items": [],
    "external_links": [{"name": name, "url": url} for name, url in addresses().items()],
}
