"""How Sphinx builds the site: ``make docs`` writes it to build/site, without a network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models come from packages, never from a hub
os.environ.setdefault("SPHINX_GALLERY_PLOT", "1")

from numpydoc.xref import DEFAULT_LINKS

import expunge

project = "expunge"
author = "The expunge developers"
project_copyright = author
version = release = expunge.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    # of this project, in docs/_ext
    "api_pages",  # a page for every public name
    "code_pages",  # a page for every script of examples/ and every file that a page links to
    "method_chart",  # "which method" as a picture to click on
    "mathml",  # formulas as MathML: no fonts, no script, no network
    "optional_pages",  # places in the table of contents for pages that may come
    "repo_links",  # links to files beside docs/ lead to pages of the site
]
root_doc = "index"
exclude_patterns = ["_ext", "_static", "_templates", "gallery", "figures", "**/*.ipynb"]
exclude_patterns += ["sg_execution_times.rst", "**/sg_execution_times.rst"]  # they fetch scripts
templates_path = ["_templates"]
nitpicky = False

# -- Markdown ------------------------------------------------------------------------------------

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
html_math_renderer = "mathml"

# -- API -----------------------------------------------------------------------------------------

default_role = "literal"
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say types and shapes
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"
# numpydoc would send these to Python's own site
numpydoc_xref_aliases = {name: name for name in DEFAULT_LINKS}
numpydoc_use_plots = False

# -- gallery -------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["generated/gallery"],
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("expunge",),
    "reference_url": {"expunge": None},
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": False,
    "download_all_examples": False,
    "show_memory": False,
    "min_reported_time": 1_000_000,  # seconds depend on the machine
    "capture_repr": (),  # what is printed, not the name of the last object
    "remove_config_comments": True,
    "image_srcset": ["2x"],
    "copyfile_regex": r".*\.csv\.gz",
}

# -- the look ------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "expunge"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_domain_indices = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": []}
html_theme_options = {
    "logo": {"text": "expunge"},
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
