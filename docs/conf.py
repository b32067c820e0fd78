"""Configuration of the documentation site: ``make docs`` writes it to build/docs, without a network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # notebooks call `spdebench`

os.environ["IPYTHONDIR"] = str(HERE.parent / "build" / "docs-cache" / "ipython")

from handbook import notebook_cache, write_ipython_profile  # noqa: E402

write_ipython_profile(Path(os.environ["IPYTHONDIR"]))

from spdebench import __version__  # noqa: E402

project = "SPDEBench"
author = "The SPDEBench developers"
copyright = "The SPDEBench developers, Apache-2.0"
version = release = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "docstrings", "handbook", "for_the_site", "tables"]
exclude_patterns = ["_ext"]
nitpicky = False

# --- Markdown -----------------------------------------------------------------------------------------------------
myst_enable_extensions = ["dollarmath", "attrs_inline", "deflist"]
myst_heading_anchors = 4
myst_dmath_double_inline = True
myst_links_external_new_tab = False

# --- notebooks: executed again only when their cells, the code or the records have changed --------------------------
nb_execution_mode = "cache"
nb_execution_cache_path = str(notebook_cache(HERE.parent / "build" / "docs-cache"))
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

# --- API ----------------------------------------------------------------------------------------------------------
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_use_legacy_class_based = False
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False

# --- HTML ---------------------------------------------------------------------------------------------------------
html_theme = "furo"
html_title = f"SPDEBench {__version__}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {"navigation_with_keys": True}
mathjax_path = "mathjax/tex-svg.js"  # MathJax 3.2.2 (Apache-2.0), one file with its fonts; see _static/mathjax/LICENSE
mathjax3_config = {"options": {"enableMenu": False}}
highlight_language = "none"  # tables and lists in docstrings are not Python; examples say that they are
pygments_style = "friendly"
pygments_dark_style = "github-dark"
