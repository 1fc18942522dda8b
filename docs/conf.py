"""The site: pages of this folder, the docstrings of the package, and a gallery of examples/, run when it is built."""

import re
import shutil
from pathlib import Path

from sphinx_gallery.scrapers import figure_rst

import sparsetransport

project = "sparsetransport"
author = copyright = "The sparsetransport authors"
version = release = sparsetransport.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["gallery/*.ipynb"]  # copies of the examples, to download
default_role = "py:obj"
suppress_warnings = [
    "myst.header",  # the tables of the benchmarks begin at the third level
    "config.cache",  # the functions below cannot be pickled
]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # notebooks hold what they show, and tests run them
autosummary_generate = True
autosummary_filename_map = {  # names that differ in case alone would be one file on some systems
    f"sparsetransport.apps.{name}": f"sparsetransport.apps.{name}-class"
    for name in ("network_design.Design", "colour_transfer.Palette")
}
autodoc_typehints = "none"  # docstrings have them in words
autodoc_default_options = {  # what scikit-learn adds to every estimator
    "exclude-members": "set_fit_request, set_predict_request, set_score_request, get_metadata_routing"
}
numpydoc_show_class_members = False  # the template of classes lists them


def pictures(block, block_vars, gallery_conf):
    """The pictures that an example has written, moved to the site."""
    moved = []
    for picture in sorted(Path(block_vars["src_file"]).parent.glob("*.png")):
        moved.append(next(block_vars["image_path_iterator"]))
        shutil.move(picture, moved[-1])
    return figure_rst(moved, gallery_conf["src_dir"])


FIRST = "two_clouds", "budgets", "how_many_links", "bounds", "entropic", "senses", "one_to_many", "network_design"
"""Examples in this order, before the others."""


def place(file):
    """Where an example comes in the gallery."""
    name = file.removeprefix("plot_").removesuffix(".py")
    return FIRST.index(name) if name in FIRST else len(FIRST), name


sphinx_gallery_conf = {
    "within_subsection_order": place,
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "image_scrapers": (pictures,),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 3600,  # seconds: those of a first build are mostly compilation
}

html_theme = "furo"
html_favicon = "images/favicon.svg"
html_title = f"sparsetransport {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]


def public(app, what, name, object, options, signature, returned):
    """No signature for classes that the package makes itself, whose arguments are private."""
    return ("", None) if what == "class" and re.search(r"[(,]\s*_", signature or "") else None


def setup(app):
    app.connect("autodoc-process-signature", public)
