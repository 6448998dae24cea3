# SPDX-License-Identifier: Apache-2.0
"""Sphinx' configuration. Warnings are errors, so a link or an anchor that leads nowhere stops the build."""

project = "reward-kit"
project_copyright = "the reward-kit contributors"
extensions = ["myst_parser"]
root_doc = "index"
exclude_patterns = ["files/**"]

# Anchors as the repository's own viewer makes them, so that one link is right in both.
myst_heading_anchors = 5
myst_links_external_new_tab = False

html_theme = "furo"
html_title = "reward-kit"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_last_updated_fmt = None
html_use_index = False
templates_path = ["templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
        "version.html",
    ]
}
